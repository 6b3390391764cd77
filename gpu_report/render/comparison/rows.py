"""A comparison as rows of text, for the terminal, for Markdown and for the page alike."""

import math
from collections.abc import Sequence
from statistics import median

from gpu_report.catalogue import cause_words, rule_words
from gpu_report.gpu_words import gpu_words
from gpu_report.model import Analysis, Comparison, Difference, FindingChange, GateResult, LineChange, MetricComparison
from gpu_report.render.formatting import clean, utc
from gpu_report.render.run_title import run_title
from gpu_report.render.sentence_kinds import own_text
from gpu_report.wording import (
    amount,
    between,
    change,
    counted,
    ends_of_change,
    interval,
    line_change_words,
    lower_first,
    role_words,
    share_change,
)

LABELS = {
    "epoch_time": "Training per epoch",
    "images_per_s": "Images per second",
    "data_wait": "Waiting for data",
    "data_wait_share": "Waiting, share",
    "util": "Steady utilisation",
    "energy": "Energy per epoch",
    "energy.per_image": "Energy per image",
    "preprocess": "Pre-processing, mean",
    "inference": "Inference, mean",
    "postprocess": "Post-processing, mean",
    "validation_time": "Validation",
    "checkpoint_time": "Checkpoint, callbacks",
    "memory_peak": "Peak memory",
    "main_cpu": "CPU, main process",
    "workers_cpu": "CPU, workers",
    "gpu_work": "SM-active time",
    "all_epochs_time": "All epochs",
    "first_epoch_time": "First epoch",
}
TOO_MANY_TIMES = (
    9.995  # from here on a change is reported in the metric's unit: 99,330 % of next to nothing says nothing
)
DROPS = "Unexpected drops"  # of GPU utilisation
INTERVAL = "99 % interval"
ABOUT_INTERVAL = (
    f"{INTERVAL}: the change lies in it with 99 % certainty. Where it reaches from minus to plus, the change may be "
    "chance and fails no gate."
)
KINDS = {"hard": "not comparable", "argument": "argument", "soft": ""}
SHOWN_LINES = 5  # of code: what comes after them is a small part, and the JSON has it
LINES_TITLE = "Lines of code, by idle GPU time per epoch"
ANSWERS = {"failed": "Failed", "passed": "Passed", "not measured": "Not decided"}
TO_DO = frozenset({"fix", "look", "prevent"})  # kinds of sentences of a report's verdict
Row = tuple[str, ...]


def run_name(analysis: Analysis) -> str:
    """Return what a run is called: by its folder, or by its training where that says nothing."""
    return clean(run_title(analysis.run))


def heading(comparison: Comparison) -> str:
    """Return what is compared in a few words."""
    if not comparison.baselines:
        return f"{run_name(comparison.run)}, without a baseline"
    newest, *more = comparison.baselines
    beside = f" and {counted(len(more), 'other')}" if more else ""
    names = [run_name(comparison.run), run_name(newest)]
    if names[0] == names[1]:  # two runs of one training: only their times differ
        names = [names[0], f"the one of {utc(newest.run.start_wall_s)}"]
    return f"{names[0]} compared with {names[1]}{beside}"


def label(metric: MetricComparison) -> str:
    """Return what a metric is called; an untypical statistic is named, and so is a model of several."""
    name = LABELS.get(metric.metric, metric.metric)
    if metric.basis == "calls":
        name = f"{metric.statistic} latency" if metric.metric == "latency" else name
        return f"{name} ({metric.model})" if metric.model else name
    return name if metric.statistic in {"usual", "max"} or metric.basis == "run" else f"{name} ({metric.statistic})"


def values(metric: MetricComparison) -> tuple[str, str]:
    """Return both values with their units."""
    return amount(metric.baseline, metric.unit), amount(metric.run, metric.unit)


def change_words(metric: MetricComparison) -> str:
    """Return a change: of a percentage in percentage points, of all else in percent of the baseline."""
    if metric.change is None:
        return ""
    return share_change(metric.change_share) if _in_percent(metric) else change(metric.change, metric.unit)


def interval_words(metric: MetricComparison) -> str:
    """Return the interval of a change in the same terms, empty without one."""
    if metric.interval is None:
        return ""
    if not all(map(math.isfinite, metric.interval)):
        return _open_interval(metric, metric.interval)
    if _in_percent(metric) and metric.interval_share is not None:
        return interval(metric.interval_share)
    return ends_of_change(*(change(end, metric.unit) for end in metric.interval))


def _open_interval(metric: MetricComparison, ends: tuple[float, float]) -> str:
    """Return an interval of which only one end is known."""
    low, high = (f"{share_change(share)}" for share in metric.interval_share or ends)
    return f"over {low}" if math.isfinite(ends[0]) else f"under {high}"


def _in_percent(metric: MetricComparison) -> bool:
    """Tell whether a change is reported as a share of the baseline."""
    shares = [metric.change_share, *(share for share in metric.interval_share or () if math.isfinite(share))]
    return metric.unit != "%" and all(share is not None and abs(share) < TOO_MANY_TIMES for share in shares)


def judgement_words(metric: MetricComparison) -> str:
    """Return what a change comes to, empty where nobody judges it."""
    if metric.judgement == "unknown":
        return "within the band" if metric.in_band else ""
    return metric.judgement


def band_words(metric: MetricComparison) -> str:
    """Return what several baselines differ by, and where one more like them may lie; empty with one."""
    return " ".join(part for part in (range_words(metric), one_more_words(metric)) if part)


def range_words(metric: MetricComparison) -> str:
    """Return from where to where several baselines reach; empty with one."""
    return between((min(metric.each), max(metric.each)), metric.unit) if metric.each else ""


def one_more_words(metric: MetricComparison) -> str:
    """Return where one more like several baselines may lie, in brackets; empty without a band."""
    return "" if metric.band is None else f"({between(metric.band, metric.unit)})"


def band_head(comparison: Comparison) -> str:
    """Return what the column of band_words is called, empty where there is nothing for it."""
    known = [metric for metric in comparison.metrics if metric.each]
    if not known:
        return ""
    return "baselines (one more, 95 %)" if any(metric.band for metric in known) else "baselines"


def metric_rows(comparison: Comparison) -> list[Row]:
    """Return a row for each metric: label, both values, change, interval, judgement."""
    rows: list[Row] = [
        (label(m), *values(m), change_words(m), interval_words(m), judgement_words(m)) for m in shown(comparison)
    ]
    return [*rows, (DROPS, *comparison.drop_time, "", "", "")] if comparison.drop_time[1] else rows


def filled(header: Row, rows: Sequence[Row]) -> tuple[Row, list[Row]]:
    """Return a table without the columns in which no row has anything."""
    kept = [place for place in range(len(header)) if any(row[place] for row in rows)]
    return tuple(header[place] for place in kept), [tuple(row[place] for place in kept) for row in rows]


def metric_notes(comparison: Comparison) -> list[str]:
    """Return what is to be said about metrics, in order; what is the same of several is said once."""
    notes: dict[str, list[str]] = {}
    for metric in shown(comparison):
        if metric.note:
            notes.setdefault(metric.note, []).append(label(metric))
    return [*about_intervals(comparison), *(f"{'; '.join(labels)}: {note}." for note, labels in notes.items())]


def about_intervals(comparison: Comparison) -> list[str]:
    """Return what the intervals of changes mean, nothing where none is shown."""
    return [ABOUT_INTERVAL] if any(metric.interval for metric in shown(comparison)) else []


def shown(comparison: Comparison) -> list[MetricComparison]:
    """Return the metrics, then all epochs with what was set aside of them, and the first epochs."""
    return [*comparison.metrics, *(m for m in (comparison.all_epochs, comparison.first_epochs) if m)]


def code_line_rows(comparison: Comparison) -> list[Row]:
    """Return a row for each of the first lines of code: status, line, idle GPU time per epoch in both runs, change.

    Its process is named where several are shown.
    """
    shown_lines = (comparison.code_lines or ())[:SHOWN_LINES]
    several = len({line.process for line in shown_lines}) > 1
    return [(line.status, _line_words(line, several=several), *_line_values(line)) for line in shown_lines]


def code_line_sentences(comparison: Comparison) -> list[str]:
    """Return the same as text: slower: log_images (callbacks.py:41): idle GPU time per epoch 0.2 s → 1.6 s."""
    return [
        f"{status}: {line}: idle GPU time per epoch {before} \u2192 {after}"
        for status, line, before, after, _ in code_line_rows(comparison)
    ]


def _line_words(line: LineChange, *, several: bool) -> str:
    return f"{role_words(line.process)}: {line_change_words(line)}" if several else line_change_words(line)


def _line_values(line: LineChange) -> tuple[str, str, str]:
    before = "none" if line.baseline_line is None else amount(line.baseline_idle_gpu_s, "s")
    after = "none" if line.run_line is None else amount(line.run_idle_gpu_s, "s")
    return before, after, change(line.change_gpu_s, "s")


def difference_rows(comparison: Comparison) -> list[Row]:
    """Return a row for each difference of the set-ups: name, both values, what it means."""
    return [(d.name, *difference_values(d), KINDS[d.kind]) for d in comparison.differences]


def difference_values(difference: Difference) -> tuple[str, str]:
    """Return both values of a difference; one that is not known says so."""
    return difference.baseline or "not known", difference.run or "not known"


def finding_rows(comparison: Comparison) -> list[Row]:
    """Return a row for each kind of finding: status, what it is, how often and long in the baseline and in the run."""
    return [
        (c.status, finding_words(c), _in_baselines(c), _times(c.counts[1], c.seconds[1])) for c in comparison.findings
    ]


def finding_words(finding: FindingChange) -> str:
    """Return what a kind of finding is: rule, cause, GPU."""
    cause = f": {lower_first(cause_words(finding.cause))}" if finding.cause and finding.cause != finding.rule else ""
    gpu = "" if finding.gpu is None else f" ({gpu_words(finding.gpu)})"
    return f"{rule_words(finding.rule)}{cause}{gpu}"


def gate_rows(comparison: Comparison) -> list[Row]:
    """Return a row for each gate: what came of it, the gate, in words; those that decide first.

    What keeps all of them from being measured stands in the verdict, and the gates by name in outcome_words. Where it
    keeps some of them, each says it in short.
    """
    if nothing_measured(comparison):
        return []
    return [(gate_word(r), r.gate.text, _came_of(comparison, r)) for r in ordered(comparison)]


def _came_of(comparison: Comparison, result: GateResult) -> str:
    stands_above = bool(comparison.obstacles) and result.outcome == "not measured" and not result.undecided
    return result.why if stands_above and result.why else result.summary


def nothing_measured(comparison: Comparison) -> bool:
    """Tell whether no gate has a figure, for a reason that the verdict gives."""
    return bool(comparison.obstacles) and all(r.outcome == "not measured" and not r.undecided for r in comparison.gates)


def ordered(comparison: Comparison) -> list[GateResult]:
    """Return the results of the gates, the worst first."""
    order = ("failed", "warning", "undecided", "not measured", "unsure", "passed")
    return sorted(comparison.gates, key=lambda result: order.index(gate_word(result)))


def gate_word(result: GateResult) -> str:
    """Return what came of a gate in one word; a gate of level warn that failed is a warning.

    Undecided is one that has a figure and no meaning; not measured has none.
    """
    if result.outcome == "failed":
        return "failed" if result.gate.level == "fail" else "warning"
    if result.undecided:
        return "undecided"
    return "unsure" if result.unsure and result.outcome == "passed" else result.outcome


def outcome_words(comparison: Comparison) -> str:
    """Return what the gates come to."""
    if not comparison.gates:
        return ""
    failed = [r for r in comparison.gates if gate_word(r) == "failed"]
    warnings = f" {counted(_warned(comparison), 'warning')}." if _warned(comparison) else ""
    if comparison.outcome == "failed":
        return f"Failed: {', '.join(r.gate.text for r in failed)}.{warnings}"
    if comparison.outcome == "passed":
        unsure = [r.gate.text for r in comparison.gates if r.unsure]
        doubt = f", {len(unsure)} unsure ({', '.join(unsure)})" if unsure else ""
        measured = _measured(comparison)
        rest = f", {len(comparison.gates) - measured} not measured" if measured < len(comparison.gates) else ""
        return f"Passed: {counted(measured, 'gate')} measured{rest}{doubt}.{warnings}"
    if nothing_measured(comparison):
        gates = ", ".join(r.gate.text for r in ordered(comparison))
        return f"Not decided: {counted(len(comparison.gates), 'gate')} not measured, for the reason above ({gates})."
    return f"Not decided: {_why(comparison)}.{warnings}"


def first_words(comparison: Comparison) -> str:
    """Return the gates' answer and the verdict: whoever reads the first line alone is to know how it went.

    A verdict that begins with what failed needs no answer before it.
    """
    is_cut_short = any(obstacle.kind == "cut short" for obstacle in comparison.obstacles)  # which comes first then
    says_it = any(result.fails_without_metric for result in comparison.gates) and not is_cut_short
    if not comparison.gates or says_it:
        return comparison.verdict
    unsure = sum(r.unsure for r in comparison.gates) if comparison.outcome == "passed" else 0
    warnings = counted(_warned(comparison), "warning") if _warned(comparison) else ""
    beside = ", ".join(filter(None, (warnings, f"{unsure} unsure" if unsure else "")))
    return f"{ANSWERS[comparison.outcome]}{f' ({beside})' if beside else ''}. {comparison.verdict}"


def to_do(comparison: Comparison) -> str:
    """Return what to do first about a run without a baseline that a gate fails or warns of, empty where all passed."""
    if comparison.baselines or not comparison.gates or not (comparison.outcome == "failed" or _warned(comparison)):
        return ""
    said = (own_text(each) for each in comparison.run.verdict.sentences if each.kind in TO_DO)
    first = next(said, "")
    return f"What to do: {first}" if first else ""


def _warned(comparison: Comparison) -> int:
    return sum(gate_word(r) == "warning" for r in comparison.gates)


def _measured(comparison: Comparison) -> int:
    return sum(r.outcome != "not measured" for r in comparison.gates)


def _why(comparison: Comparison) -> str:
    """Return which gates kept the rest from passing, each reason once."""
    unmeasured = [r for r in comparison.gates if r.outcome == "not measured"]
    missing = [r for r in unmeasured if r.gate.level == "fail" and (not r.gate.optional or r.undecided)] or unmeasured
    reasons: dict[str, list[str]] = {}
    for result in missing:
        reasons.setdefault(result.why or result.summary, []).append(result.gate.text)
    return "; ".join(f"{', '.join(gates)} ({why})" for why, gates in reasons.items())


def _in_baselines(finding: FindingChange) -> str:
    """Return how often and how long a finding was in the baseline; of several in how many, and the median of these.

    The median of all would be none where less than half of them have it.
    """
    had, of = finding.in_baselines, len(finding.each)
    if of < 2 or not had:
        return _times(finding.counts[0], finding.seconds[0])
    times = _times(median(count for count, _ in had), median(seconds for _, seconds in had))
    return f"in {len(had)} of {of}: {times}"


def _times(count: float, seconds: float) -> str:
    if not count:
        return "none"
    return f"{count:g}, {amount(seconds, 's')}" if seconds else f"{count:g}"
