"""Rule: what a program that validates does between validations: it checks the data again, or runs code of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, pairwise
from typing import NamedTuple

from gpu_report.analyse.causes.confidence import SUPPORTED
from gpu_report.analyse.causes.start_work import SCANS, StartWork, work_of
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.code.stack_kinds import kind_of, location_of
from gpu_report.analyse.timeseries.intervals import Span, length_s
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.analyse.validations import is_validation, validations
from gpu_report.model import Advice, Cause, CodeLocation, Finding, Frame, Stack, recurring
from gpu_report.wording import amount, place_words, where_it_is

CAUSE = "between-validations"
LISTS = Advice(
    "Give each list of images a folder of its own, with its labels. Lists of one folder share one `labels.cache`: each "
    "check overwrites that of another list",
    short="Give each list of images a folder of its own",
)
KEEP = Advice(
    "Let YOLO keep its `labels.cache` beside the labels: it checked the same data again. Look whether it may write "
    "there",
    short="Let YOLO keep its `labels.cache` beside the labels",
)


class ValidationGap(NamedTuple):
    """The time between a validation's end and the next one's start, in one process.

    `data` is that of the next one, empty where not known; `again` says that it was validated before in this run.
    `whole_s` is the gap's length and that of the next validation.
    """

    span: Span
    pid: int
    data: str
    again: bool
    whole_s: float


class GapWork(NamedTuple):
    """What most of the gaps went to: a kind of work, None of any other; its line and, of YOLO's, the user's that asked.

    `share` (0 to 1) is that of the kind of work, or of the function, of what was noted.
    """

    work: StartWork | None
    share: float
    lines: tuple[CodeLocation, ...]


def between_validations(context: Context) -> list[Finding]:
    """Report what a program does between validations, where that is BETWEEN_SHARE of its time or more.

    It needs stack samples. That it sleeps is no cause.
    """
    gaps = list(_gaps(context)) if is_validation(context) else []
    gap_s, whole_s = length_s([gap.span for gap in gaps]), sum(gap.whole_s for gap in gaps)
    did = _did(_stack_times(context, gaps), gap_s) if gap_s >= max(th.BETWEEN_S, th.BETWEEN_SHARE * whole_s) else None
    return [] if did is None else [_finding(context, gaps, did)]


def _gaps(context: Context) -> Iterator[ValidationGap]:
    """Yield the time before each validation but the first of each process."""
    found = sorted(validations(context), key=lambda each: each[0].pid)  # of each process they stay in order
    for pid, mine in groupby(found, key=lambda each: each[0].pid):
        validated = list(mine)
        seen = {str(validated[0][0].settings.get("data", ""))}
        for (_, before), (run, phase) in pairwise(validated):
            data = str(run.settings.get("data", ""))
            span = before.end_t_s, max(phase.start_t_s, before.end_t_s)
            yield ValidationGap(span, pid, data, bool(data) and data in seen, span[1] - span[0] + phase.duration_s)
            seen.add(data)


def _stack_times(context: Context, gaps: Sequence[ValidationGap]) -> dict[Stack, float]:
    """Return how long processes stood in each stack between validations (s), but for sleep."""
    mains = (each for each in context.signals.idle_stacks if not each.process.is_worker)
    spans = ((each, [gap.span for gap in gaps if gap.pid == each.process.pid]) for each in mains)
    noted = (pair for each, mine in spans if mine for pair in each.stood(mine))
    return sums_by_key((stack, spent) for stack, spent in noted if stack and stack[0].called != "sleep")


def _did(stood: Mapping[Stack, float], gap_s: float) -> GapWork | None:
    """Return what most of the gaps went to, None where too little of them was noted."""
    noted_s = sum(stood.values())
    if noted_s < th.BETWEEN_NOTED * gap_s:
        return None
    works = sums_by_key((work_of(stack), spent) for stack, spent in stood.items())
    work = max(works, key=lambda each: works[each])
    if work is not None and works[work] > noted_s / 2:
        of_work = {stack: spent for stack, spent in stood.items() if work_of(stack) is work}
        return GapWork(work, works[work] / noted_s, _lines(of_work, noted_s))
    functions = sums_by_key((_function(stack), spent) for stack, spent in stood.items())
    most = max(functions, key=lambda each: functions[each])
    mine = {stack: spent for stack, spent in stood.items() if _function(stack) == most}
    return GapWork(None, functions[most] / noted_s, _lines(mine, noted_s))


def _function(stack: Stack) -> tuple[str, str] | None:
    line = location_of(stack)
    return None if line is None else (line.file, line.function)


def _lines(stood: Mapping[Stack, float], noted_s: float) -> tuple[CodeLocation, ...]:
    """Return the line that stacks stood in longest, and the user's that has YOLO do that."""
    found = []
    for line_of in (location_of, _asks):
        lines = sums_by_key((line_of(stack), spent) for stack, spent in stood.items())
        line = max(lines, key=lambda each: lines[each], default=None)
        if line is not None:
            found.append(CodeLocation.in_main(line, lines[line] / noted_s))
    return tuple(dict.fromkeys(found))


def _asks(stack: Stack) -> Frame | None:
    own = next((frame for frame in stack if kind_of(frame) == "own"), None)
    return own and own._replace(called="")


def _finding(context: Context, gaps: Sequence[ValidationGap], did: GapWork) -> Finding:
    gap_s, whole_s = length_s([gap.span for gap in gaps]), sum(gap.whole_s for gap in gaps)
    again = [gap for gap in gaps if gap.again] if did.work is SCANS else []
    line = ", for ".join(where_it_is(each) for each in did.lines)
    what = "" if did.work is None else f" {did.work.words}{_times(gaps, again)}"
    advice = tuple(_ways(context, gaps, again, did))
    return context.finding(
        "between-validations",
        "warning" if advice and (again or did.work is not SCANS) else "info",
        (gaps[0].span[0], gaps[-1].span[1]),
        f"Between validations {amount(gap_s, 's')} of {amount(whole_s, 's')} passed, "
        f"{100 * did.share:.0f} % of it{what}: {line}",
        epoch=None,
        evidence=evidence(
            ("between validations", gap_s, "s"),
            ("validations after them", whole_s - gap_s, "s"),
            ("of data that was validated before", len(again) or None, ""),
        ),
        cause=Cause(CAUSE, SUPPORTED, f"by stack samples: {100 * did.share:.0f} % of it"),
        where=did.lines,
        advice=advice,
        occurrences=recurring([gap.span for gap in gaps]),
    )


def _times(gaps: Sequence[ValidationGap], again: Sequence[ValidationGap]) -> str:
    """Return that what was checked had been checked before, as the end of a phrase."""
    return "" if not again else " again" if len(again) == len(gaps) else f", {len(again)} of {len(gaps)} times again"


def _ways(
    context: Context, gaps: Sequence[ValidationGap], again: Sequence[ValidationGap], did: GapWork
) -> Iterator[Advice]:
    """Yield what to do: of a check that is made again to keep what it wrote, which is as much of each validation."""
    if again:
        checked_s, whole_s = _checked_s(context, again), sum(gap.whole_s for gap in again)
        each, then = (amount(seconds / len(again), "s") for seconds in (whole_s, whole_s - checked_s))
        what = LISTS if len({gap.data for gap in gaps}) > 1 else KEEP
        short = f"{what.short}: {each} a validation become {then} at least"
        yield replace(what, gain_at_most=checked_s / whole_s, short=short)
    elif did.work is not None:
        yield did.work.advice
    elif not did.lines[0].is_yolo:
        text = f"Look at {place_words(did.lines[0])}"
        yield Advice(text, gain_at_most=_share(gaps, did), short=text)


def _share(gaps: Sequence[ValidationGap], did: GapWork) -> float:
    return did.share * length_s([gap.span for gap in gaps]) / sum(gap.whole_s for gap in gaps)


def _checked_s(context: Context, gaps: Sequence[ValidationGap]) -> float:
    """Return how long processes checked images and labels in some gaps."""
    stood = _stack_times(context, gaps)
    return sum(spent for stack, spent in stood.items() if work_of(stack) is SCANS)
