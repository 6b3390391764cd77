"""The page docs/accuracy.md: judged runs as Markdown tables, one a set, and what falls short."""

import statistics
from collections.abc import Callable, Iterator, Sequence

from support.confidence import count_at_most, share_at_least
from support.labels import SETS
from support.matching import Judged, Verdict, judge
from support.samples import NAMES, analysis_of, labels_of, run_of
from support.shortfalls import CAUSE, EDGES, FALSE_ALARM, KNOWN, MISSED

EDGE_S = 2.0  # an edge further off than this falls short (issue 5)
BEGIN, END = "<!-- begin: make accuracy -->", "<!-- end: make accuracy -->"
HEAD = """\
| cause | faults | found | cause right | start off (s): median | worst | end off (s): median | worst |
|---|---:|---:|---:|---:|---:|---:|---:|"""

Shortfall = tuple[str, str]  # whose it is, and what of it: a key of KNOWN


def judge_all() -> list[Judged]:
    """Return every sample run, analysed and judged."""
    return [judge(labels_of(name), analysis_of(name).findings, run_of(name).duration_s) for name in NAMES]


def in_set(judged: Sequence[Judged], of: str) -> list[Judged]:
    """Return the runs of one set."""
    return [one for one in judged if one.labels.of == of]


def verdicts_of(judged: Sequence[Judged]) -> list[Verdict]:
    """Return the verdicts on all counted faults."""
    return [verdict for one in judged for verdict in one.verdicts]


def alarms_per_hour(judged: Sequence[Judged]) -> float:
    """Return false alarms per hour of run, over runs of any length together."""
    return sum(len(one.false_alarms) for one in judged) / hours(judged)


def hours(judged: Sequence[Judged]) -> float:
    """Return how long the runs took together; GPUs of one run count once."""
    return sum(one.duration_s for one in judged) / 3600


def shortfalls(judged: Sequence[Judged]) -> list[Shortfall]:
    """Return what falls short: faults missed, causes wrong, edges too far off, false alarms."""
    of_faults = [(v.fault.name, what) for v in verdicts_of(judged) for what in _short_in(v)]
    alarms = [(f"{one.labels.run}: {alarm.id}", FALSE_ALARM) for one in judged for alarm in one.false_alarms]
    return [*of_faults, *alarms]


def _short_in(verdict: Verdict) -> Iterator[str]:
    if not verdict.is_found:
        yield MISSED
        return
    if not verdict.is_named:
        yield CAUSE
    if any(off is not None and abs(off) > EDGE_S for off in (verdict.start_off_s, verdict.end_off_s)):
        yield EDGES


def page(judged: Sequence[Judged], as_other_gpus: str) -> str:
    """Return the generated part of the page; `as_other_gpus` is the table of other_gpus.py."""
    parts = [_of_set(of, in_set(judged, of)) for of in SETS if in_set(judged, of)]
    return "\n\n".join([*parts, "### As another GPU", as_other_gpus, _list_of(judged)])


def written_into(text: str, generated: str) -> str:
    """Return a document with the part between its marker lines replaced."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n{generated}\n{END}{after}"


def _of_set(of: str, judged: Sequence[Judged]) -> str:
    verdicts = verdicts_of(judged)
    causes = sorted({str(v.fault.cause) for v in verdicts})
    rows = [_row(cause, [v for v in verdicts if v.fault.cause == cause]) for cause in causes]
    return "\n".join([f"### {of.capitalize()}", "", _about(judged), "", HEAD, *rows, _row("**together**", verdicts)])


def _about(judged: Sequence[Judged]) -> str:
    """Return what a set holds, its false alarms, and what so few runs can show."""
    verdicts = verdicts_of(judged)
    alarms, found = sum(len(one.false_alarms) for one in judged), sum(v.is_found for v in verdicts)
    return (
        f"{len(judged)} runs, {60 * hours(judged):.0f} minutes; false alarms: {alarms}, that is "
        f"{alarms_per_hour(judged):.1f} an hour. So few runs show (95 % confidence) that at least "
        f"{100 * share_at_least(found, len(verdicts)):.0f} % of such faults are found, and at most "
        f"{count_at_most(alarms) / hours(judged):.1f} false alarms come in an hour."
    )


def _row(name: str, verdicts: Sequence[Verdict]) -> str:
    counts = [len(verdicts), sum(v.is_found for v in verdicts), sum(v.is_named for v in verdicts)]
    offs = [*_off(verdicts, lambda v: v.start_off_s), *_off(verdicts, lambda v: v.end_off_s)]
    return f"| {' | '.join([name, *map(str, counts), *offs])} |"


def _off(verdicts: Sequence[Verdict], edge: Callable[[Verdict], float | None]) -> tuple[str, str]:
    """Return the median size of the errors and the worst one with its sign (late is positive)."""
    offs = [off for v in verdicts if (off := edge(v)) is not None]
    if not offs:
        return "-", "-"
    return f"{statistics.median(map(abs, offs)):.1f}", f"{max(offs, key=abs):+.1f}"


def _list_of(judged: Sequence[Judged]) -> str:
    details = {v.fault.name: _detail(v) for v in verdicts_of(judged)}
    rows = [
        f"| {whose} | {what}{details.get(whose, {}).get(what, '')} | {KNOWN.get((whose, what), '**not explained**')} |"
        for whose, what in shortfalls(judged)
    ]
    head = ["### Where it falls short", "", "| what | falls short in | why |", "|---|---|---|"]
    return "\n".join([*head, *rows])


def _detail(verdict: Verdict) -> dict[str, str]:
    """Return what to add to each word of what falls short."""
    if verdict.finding is None:
        return {}
    told = verdict.finding.cause.name if verdict.finding.cause else verdict.finding.rule
    offs = [f"{off:+.1f} s" for off in (verdict.start_off_s, verdict.end_off_s) if off is not None]
    return {CAUSE: f": {told}, not {verdict.fault.cause}", EDGES: f": {' and '.join(offs)}"}
