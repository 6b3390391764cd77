"""Comparison -> ComparisonView: everything the comparison page says, put into words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpu_report import __version__
from gpu_report.model import Analysis, Comparison, MetricComparison
from gpu_report.render.comparison.charts import charts
from gpu_report.render.comparison.rows import (
    DROPS,
    about_intervals,
    band_head,
    change_words,
    code_line_rows,
    difference_values,
    finding_rows,
    gate_word,
    heading,
    interval_words,
    judgement_words,
    label,
    nothing_measured,
    one_more_words,
    ordered,
    outcome_words,
    range_words,
    run_name,
    shown,
    values,
)
from gpu_report.render.comparison.view import (
    ComparisonView,
    DifferenceRow,
    FindingRow,
    GateRow,
    LineRow,
    MetricRow,
    RunView,
    Whisker,
)
from gpu_report.render.formatting import first_sentence, sentence, share, utc, with_amounts_unbroken
from gpu_report.wording import counted, ending_words

SCALES = (0.1, 0.25, 0.5, 1.0)  # how far a whisker's scale may reach, as a share of the baseline
HALF = 100.0  # of a whisker's scale
STATUSES = {"better": "good", "worse": "critical", "same": "good", "mixed": "warning", None: "unknown"}
GATE_STATUSES = {
    "failed": "critical",
    "warning": "warning",
    "undecided": "warning",
    "unsure": "warning",
    "not measured": "skipped",
}


def compose_comparison(comparison: Comparison) -> ComparisonView:
    """Return what the page says about a comparison."""
    reach = _reach(comparison.metrics)
    lead, rest = first_sentence(comparison.verdict)
    return ComparisonView(
        title=heading(comparison),
        status=_status(comparison),
        verdict=with_amounts_unbroken(lead),
        verdict_rest=with_amounts_unbroken(rest),
        outcome=outcome_words(comparison),
        obstacles=tuple(sentence(obstacle.text) for obstacle in comparison.obstacles),
        runs=(*(_run("Baseline", newest) for newest in comparison.baselines[:1]), _run("Run", comparison.run)),
        baselines=_several(comparison),
        band=band_head(comparison),
        metrics=(*(_metric(metric, reach) for metric in shown(comparison)), *_drop_time(comparison)),
        whiskers=f"\u2212{share(reach)} to +{share(reach)}" if reach else "",
        gates=() if nothing_measured(comparison) else _gates(comparison),
        differences=tuple(DifferenceRow(d.name, *difference_values(d), d.kind) for d in comparison.differences),
        findings=tuple(_findings(comparison)),
        lines=None if comparison.code_lines is None else tuple(LineRow(*row) for row in code_line_rows(comparison)),
        charts=charts(comparison),
        notes=(*about_intervals(comparison), *comparison.notes),
        tool=f"gpu-report {__version__}",
    )


def _status(comparison: Comparison) -> str:
    """Return the colour of the verdict: the gates' where there are any that decided, else that of what changed."""
    if comparison.gates and comparison.outcome == "failed":
        return "critical"
    if comparison.obstacles:
        return "unknown"
    if comparison.gates and comparison.outcome == "not measured":
        return "warning"
    warned = any(gate_word(result) == "warning" for result in comparison.gates)
    return "warning" if warned else STATUSES[comparison.judgement]


def _gates(comparison: Comparison) -> tuple[GateRow, ...]:
    """Return a row for each gate, those after each other of which the same is to be said in one."""
    rows: list[GateRow] = []
    for result in ordered(comparison):
        word, summary = gate_word(result), with_amounts_unbroken(result.summary)
        if rows and (rows[-1].word, rows[-1].summary) == (word, summary):
            rows[-1] = replace(rows[-1], gates=(*rows[-1].gates, result.gate.text))
        else:
            rows.append(GateRow(word, GATE_STATUSES.get(word, "good"), (result.gate.text,), summary))
    return tuple(rows)


def _several(comparison: Comparison) -> str:
    """Return which baselines there are, empty with one of which all is said beside the run."""
    named = [f"{run_name(each)} ({utc(each.run.start_wall_s)})" for each in comparison.baselines]
    if len(named) < 2:
        return ""
    return (
        f"{counted(len(named), 'baseline')}, of which the median is compared and the newest drawn: {', '.join(named)}"
    )


def _run(role: str, analysis: Analysis) -> RunView:
    ending = sentence(ending_words(analysis.ending)) if analysis.ending else ""
    return RunView(
        role, run_name(analysis), utc(analysis.run.start_wall_s), ending, with_amounts_unbroken(analysis.verdict.text)
    )


def _metric(metric: MetricComparison, reach: float) -> MetricRow:
    judgement, in_band = judgement_words(metric), metric.in_band and metric.judgement == "unknown"
    return MetricRow(
        label(metric),
        *values(metric),
        change_words(metric),
        interval_words(metric),
        judgement,
        "in-band" if in_band else judgement,
        "" if in_band else sentence(metric.note),  # the word says it, and a note below
        _whisker(metric, reach),
        (range_words(metric), one_more_words(metric)),
    )


def _drop_time(comparison: Comparison) -> list[MetricRow]:
    return [MetricRow(DROPS, *comparison.drop_time, "", "", "", "", "")] if comparison.drop_time[1] else []


def _reach(metrics: Sequence[MetricComparison]) -> float:
    """Return how far the scale of the whiskers reaches: the least that holds all changes, 100 % at most."""
    changes = [abs(m.change_share) for m in metrics if _is_drawn(m) and m.change_share is not None]
    return next((scale for scale in SCALES if max(changes, default=0.0) <= scale), SCALES[-1]) if changes else 0.0


def _is_drawn(metric: MetricComparison) -> bool:
    """Tell whether a change is drawn: as a share of the baseline, which of a wait near zero would dwarf all others."""
    return metric.unit != "%" and metric.metric != "data_wait" and metric.interval_share is not None


def _whisker(metric: MetricComparison, reach: float) -> Whisker | None:
    if not _is_drawn(metric) or metric.change_share is None or metric.interval_share is None or not reach:
        return None
    ends = [HALF + HALF * min(max(share / reach, -1.0), 1.0) for share in (*metric.interval_share, metric.change_share)]
    return Whisker(*(round(end, 1) for end in ends))


def _findings(comparison: Comparison) -> list[FindingRow]:
    return [
        FindingRow(status, change.severity, title, before, after, sentence(change.summary))
        for change, (status, title, before, after) in zip(comparison.findings, finding_rows(comparison), strict=True)
    ]
