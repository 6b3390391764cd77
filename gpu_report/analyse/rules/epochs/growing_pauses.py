"""Rule: what runs between the last batch of an epoch and its validation takes longer each time: a callback's growth.

Each of these pauses is a drop, and their causes are one: what goes over all earlier epochs, as a plot of them does.
"""

from collections.abc import Sequence
from itertools import groupby

from gpu_report.analyse.causes import Explanation, explain
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.comparable_epochs import KnownSlowdowns, TrainedEpoch
from gpu_report.analyse.rules.epochs.growth import lost_gpu_s
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, intersect, length_s
from gpu_report.analyse.timeseries.trend import Trend, mann_kendall_rise
from gpu_report.catalogue import GREW_COST_KEY, GROWTH_KEY, PAUSES_KEY, RULES
from gpu_report.model import Advice, Evidence, Finding, recurring
from gpu_report.wording import about_length

SHORT = "Find what grows at the end of each epoch's training"
WHY = "work over all earlier epochs, such as plots of them. Do it for the latest alone, or in another process"


def growing_pauses(context: Context, epochs: Sequence[TrainedEpoch], held_up: KnownSlowdowns) -> list[Finding]:
    """Report pauses before validations that rise all along, and take STALLS_SHARE of their epochs or more."""
    found = []
    for _, of_process in groupby(epochs, key=lambda epoch: epoch.group[:2]):
        siblings = list(of_process)  # the first, and one that makes the loader anew, pause as others do
        paused = [each for each in siblings if _pause_s(each) is not None and not held_up.others.touches(_span(each))]
        grown = mann_kendall_rise([_pause_s(each) or 0.0 for each in paused])
        if grown is not None and grown.is_gradual and _matters(siblings, paused):
            found.append(_finding(context, paused, grown))
    return found


def _pause_s(epoch: TrainedEpoch) -> float | None:
    return None if epoch.trained_t_s is None else max(epoch.span[1] - epoch.trained_t_s, 0.0)


def _span(epoch: TrainedEpoch) -> Span:
    """Return when an epoch paused: from its last batch to what comes after its training."""
    end_s = epoch.span[1]
    return (end_s if epoch.trained_t_s is None else epoch.trained_t_s), end_s


def _lost_s(epochs: Sequence[TrainedEpoch]) -> float:
    return sum(_pause_s(each) or 0.0 for each in epochs)


def _matters(siblings: Sequence[TrainedEpoch], paused: Sequence[TrainedEpoch]) -> bool:
    whole_s = sum(each.train_s + each.validation_s + each.checkpoint_s for each in siblings)
    return _lost_s(paused) >= max(th.STALLS_SHARE * whole_s, th.SLOW_AT_LEAST_S)


def _finding(context: Context, epochs: Sequence[TrainedEpoch], grown: Trend) -> Finding:
    spans, lost_s = [_span(each) for each in epochs], _lost_s(epochs)
    first_s, last_s = (end - start for start, end in (spans[0], spans[-1]))
    grew = f"A pause after each epoch's training grew from {about_length(first_s)} to {about_length(last_s)}"
    each_s = grown.by_the_end / max(epochs[-1].epoch - epochs[0].epoch, 1)
    explained = _explained(context, spans)
    return context.finding(
        "epochs-slowing",
        "warning",
        (spans[0][0], spans[-1][1]),
        f"{grew}, {about_length(lost_s)} in all. Each is about {about_length(each_s)} longer than the one before",
        evidence=(
            Evidence("pause before the validation, at first", first_s, "s", "pause before the validation"),
            Evidence("pause before the validation, at last", last_s, "s", "pause before the validation"),
            Evidence("longer in the last epoch than in the first", grown.by_the_end, "s", key=GROWTH_KEY),
            Evidence("all of these pauses", lost_s, "s", key=GREW_COST_KEY),
            Evidence("epochs with such a pause", len(spans), "", key=PAUSES_KEY),
            *(explained.evidence if explained else ()),
        ),
        cause=explained.cause if explained else None,
        advice=(Advice(f"{SHORT}: {WHY}", short=SHORT),),
        epoch=None,
        phase=None,
        occurrences=recurring(spans),
        lost_gpu_s=lost_gpu_s(context, epochs, lost_s),
    )


def _explained(context: Context, spans: Sequence[Span]) -> Explanation | None:
    """Return why GPUs waited in the longest pause, None where that is not known."""
    longest = max(spans, key=lambda span: span[1] - span[0])
    training = context.training_at(longest[0])
    gpu = min(training.gpus, default=None) if training is not None else None
    explained = None if gpu is None else explain(context.signals.of(gpu, *longest), fell=True)
    return explained if explained is not None and explained.cause.confidence > 0 else None


def without_growing_pauses(found: Sequence[Finding]) -> list[Finding]:
    """Return what was found without what lies in pauses that grow, and is a part of them."""
    spans = [each.span for f in found if f.number(PAUSES_KEY) is not None for each in f.each]
    pauses = IntervalIndex(spans, lambda span: span)
    return [each for each in found if not (RULES[each.rule].drop and _lies_in(each.span, pauses))]


def _lies_in(span: Span, pauses: IntervalIndex[Span]) -> bool:
    return length_s(intersect([span], list(pauses(*span)))) > (span[1] - span[0]) / 2
