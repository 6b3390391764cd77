"""Epochs that begin without data, one after the other: a loader that starts its workers anew for each of them."""

from collections.abc import Sequence
from dataclasses import replace

from gpu_report.analyse.causes import Explanation
from gpu_report.analyse.causes.confidence import SUPPORTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.utilisation_drops import Drop
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, intersect, length_s
from gpu_report.catalogue import CAUSES, UNEXPLAINED
from gpu_report.model import Advice, Cause, InsideEpoch

SHORT = "Keep the data-loader workers alive from epoch to epoch"
ADVICE = Advice(
    f"{SHORT}. YOLO's own loader keeps them, unless a callback calls `train_loader.reset()`. A loader of your own "
    "needs `persistent_workers=True`. Where they have to start anew, let each load less then (labels, a model)",
    short=SHORT,
)


def with_late_first_batch(context: Context, drop: Drop, explained: Explanation) -> Explanation:
    """Return why utilisation fell where that is an epoch's first batch, and most epochs begin without data.

    Whatever workers lacked then, they lacked it as they started: epochs go on without them waiting. Causes outside the
    loader stay.
    """
    name = explained.cause.name
    if name != UNEXPLAINED and not CAUSES[name].is_input:
        return explained
    waited_s = length_s(intersect([drop.span], context.cached(_late_starts)(*drop.span)))
    if waited_s < th.EXPLAINED_SHARE * drop.duration_s:
        return explained
    text = "most epochs began without data, as where the loader starts its workers anew"
    cause = Cause("input-start", SUPPORTED, text, None if name in {UNEXPLAINED, "input-stalled"} else name)
    numbers = evidence(("waited for the first batch of the epoch", waited_s, "s"))
    return replace(explained, cause=cause, evidence=(*numbers, *explained.evidence), advice=(ADVICE,))


def _late_starts(context: Context) -> IntervalIndex[Span]:
    """Return when epochs waited for their first batch, of processes in which most do, the first epoch left out."""
    processes = [[epoch for epoch in process.epochs if epoch.end_t_s is not None] for process in context.run.inside]
    late = [span for epochs in processes for span in _late(epochs[1:])]
    return IntervalIndex(sorted(late), lambda span: span)


def _late(epochs: Sequence[InsideEpoch]) -> list[Span]:
    """Return the waits for a first batch that took most of what an epoch waited; none where few epochs have one."""
    late = [
        (epoch.start_t_s, epoch.start_t_s + epoch.first_wait_s)
        for epoch in epochs
        if epoch.first_wait_s >= max(th.LATE_START_S, th.EXPLAINED_SHARE * epoch.data_wait_s)
    ]
    return late if len(late) >= max(th.LASTING_EPOCHS, len(epochs) / 2) else []
