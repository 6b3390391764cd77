"""The verdict on calls in a few sentences: what became of latency and why, what else changed, what was set up so."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from gpu_report.analyse.compare.calls.cause import because
from gpu_report.analyse.compare.metrics import IMAGES, LATENCY, PARTS, name_of
from gpu_report.analyse.compare.verdict import Whole, mentions, settings_words
from gpu_report.model import CallCause, Difference, MetricComparison, Obstacle
from gpu_report.wording import amount, speed_change

LEADS: Final = ("p95", "p50")  # the percentile that a verdict begins with, where calls are enough for it


def leading(metrics: Sequence[MetricComparison]) -> MetricComparison | None:
    """Return the latency that a comparison is about: of the model with the most images, None where none is known."""
    latencies = [each for each in metrics if each.metric == LATENCY]
    known = [each for each in latencies if each.model == latencies[0].model and each.run is not None]
    compared = [each for each in known if each.change is not None] or known
    return next((each for lead in LEADS for each in compared if each.statistic == lead), None)


def judgement_of_calls(metrics: Sequence[MetricComparison]) -> Whole | None:
    """Return what a run comes to, by latency and throughput, else by all else together.

    A larger batch makes calls slower and images faster: that is mixed. None where latency may have changed, and nothing
    is certain.
    """
    first = [each.judgement for each in metrics if each.metric in {LATENCY, IMAGES}]
    decided = {*first} & {"better", "worse"} or {each.judgement for each in metrics} & {"better", "worse"}
    if not decided:
        lead = leading(metrics)
        return None if lead is None or lead.judgement == "unknown" else "same"
    return "mixed" if len(decided) == 2 else decided.pop()  # type: ignore[return-value]


def verdict_of_calls(
    obstacles: Sequence[Obstacle],
    metrics: Sequence[MetricComparison],
    unlike: Sequence[Difference],
    cause: CallCause | None,
    *,
    baselines: int,
) -> str:
    """Return the verdict; with obstacles why there is none, without baselines the run's own figures."""
    if obstacles:
        why = ". ".join(obstacle.text for obstacle in obstacles)
        only_short = all(obstacle.kind == "too little data" for obstacle in obstacles)
        return f"{'' if only_short else 'Not comparable. '}{why}."
    if not baselines:
        return _alone(metrics)
    return " ".join(_compared(metrics, unlike, cause))


def _compared(
    metrics: Sequence[MetricComparison], unlike: Sequence[Difference], cause: CallCause | None
) -> Iterator[str]:
    lead = leading(metrics)
    if lead is not None:
        yield _lead(lead, cause)
    others = [each for each in metrics if each is not lead and not _is_said(each, cause)]
    words = {"worse": "Worse", "better": "Better", "changed": "Also changed"}
    for judgement, word in words.items():
        if named := mentions(others, judgement):
            yield f"{f'Also {judgement}' if lead and lead.judgement == judgement else word}: {named}."
    changed = any(each.judgement in {"better", "worse"} for each in metrics)
    if said := settings_words(unlike, likely=changed):
        yield said
    elif changed:
        yield "No setting of the model was changed."


def _is_said(metric: MetricComparison, cause: CallCause | None) -> bool:
    """Tell whether a metric is another view of what the first sentence says."""
    return cause is not None and metric.metric in PARTS and metric.metric == cause.kind


def _lead(lead: MetricComparison, cause: CallCause | None) -> str:
    """Return what became of latency."""
    name = name_of(lead)
    before, after = amount(lead.baseline, lead.unit), amount(lead.run, lead.unit)
    went = f"{name} went from {before} to {after}"
    share = lead.change_share or 0.0
    if lead.judgement in {"better", "worse"}:
        return f"{went} ({speed_change(share)}){because(cause, slower=share > 0)}"
    if lead.in_band:
        return f"{went}, but the baselines differ by as much."
    if lead.judgement == "unknown" and lead.enough is not None:
        few = f"About {lead.enough:,} calls of each run would be enough"
        return f"{went} ({speed_change(share)}), but there are too few calls to be sure. {few}."
    return f"No certain change: {name} went from {before} to {after}."


def _alone(metrics: Sequence[MetricComparison]) -> str:
    """Return a run's own figures."""
    lead = leading(metrics)
    known = [each for each in metrics if lead is not None and each.model == lead.model and each.run is not None]
    latencies = [f"{amount(each.run, each.unit)} ({each.statistic})" for each in known if each.metric == LATENCY]
    rates = [amount(each.run, each.unit) for each in known if each.metric == IMAGES]
    if lead is None:
        return "There are too few calls to say how long one takes."
    of = f" of {lead.model}" if lead.model else ""
    return f"A call{of} took {', '.join(latencies)}{f': {rates[0]} in all' if rates else ''}."
