"""Epochs that begin without data, one after the other: a loader that starts its workers anew for each of them."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from gpu_report.analyse.causes import Explanation
from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.confidence import SUPPORTED
from gpu_report.analyse.causes.start_work import SPAWNS, work_of
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, intersect, length_s
from gpu_report.catalogue import CAUSES, UNEXPLAINED
from gpu_report.model import Advice, Cause, InsideEpoch

BEGAN_WITHOUT = "epochs began without data: the data loader had no batch ready, as when it restarts its workers"
SPAWNED = "the data loader started its workers one after the other (`spawn`)"
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
    if waited_s < th.OF_THE_WAIT * drop.duration_s:
        return _with_spawning(context, drop, explained)
    cause = Cause("input-start", SUPPORTED, BEGAN_WITHOUT, None if name in {UNEXPLAINED, "input-stalled"} else name)
    numbers = evidence(("waited for the first batch of the epoch", waited_s, "s"))
    return replace(explained, cause=cause, evidence=(*numbers, *explained.evidence), advice=(ADVICE,))


def _with_spawning(context: Context, drop: Drop, explained: Explanation) -> Explanation:
    """Return likewise where main processes started workers by `spawn` meanwhile, in however few epochs."""
    mains = [each for each in context.signals.idle_stacks if not each.process.is_worker]
    spawning_s = max((_spawning_s(each, drop.span) for each in mains), default=0.0)
    if spawning_s < th.OF_THE_WAIT * drop.duration_s:
        return explained
    numbers = evidence(("the main process started workers", spawning_s, "s"))
    cause = Cause("input-start", SUPPORTED, SPAWNED)
    return replace(explained, cause=cause, evidence=(*numbers, *explained.evidence), advice=(SPAWNS.advice,))


def _spawning_s(main: IdleStacks, span: Span) -> float:
    """Return for how long a main process started workers in a span (s)."""
    rows, share = main.within([span])
    seconds = np.bincount(main.number[rows], main.seconds(rows) * share)
    known = ((main.process.stacks.get(number, ()), seconds[number]) for number in np.flatnonzero(seconds).tolist())
    return float(sum(stood_s for stack, stood_s in known if work_of(stack) is SPAWNS))


def with_late_first_batches(training: Training, explained: Explanation) -> Explanation:
    """Return why a GPU waits all through a training, where most of what it waits for data is at epochs' beginnings.

    Batches may come in bursts, one of each worker: epochs of no more batches than workers tell nothing.
    """
    name = explained.cause.name
    if name != UNEXPLAINED and not CAUSES[name].is_input:
        return explained
    told = training.rank_group.main.epochs[1:] if training.rank_group else ()
    workers = (training.workers or 0) / training.ranks_here
    epochs = [epoch for epoch in told if epoch.end_t_s is not None and epoch.batches > workers > 0]
    waits = [end - start for start, end in _late(epochs, th.LATE_STARTS_S)]
    if sum(waits) < th.OF_THE_WAIT * sum(epoch.data_wait_s for epoch in epochs) or not waits:
        return explained
    cause = Cause("input-start", SUPPORTED, BEGAN_WITHOUT, None)
    numbers = evidence(("waited for the first batch of an epoch (median)", median(waits), "s"))
    return replace(explained, cause=cause, evidence=(*numbers, *explained.evidence), advice=(ADVICE,))


def _late_starts(context: Context) -> IntervalIndex[Span]:
    """Return when epochs waited for their first batch, of processes in which most do, the first epoch left out."""
    processes = [[epoch for epoch in process.epochs if epoch.end_t_s is not None] for process in context.run.inside]
    late = [span for epochs in processes for span in _late(epochs[1:], th.LATE_START_S)]
    return IntervalIndex(sorted(late), lambda span: span)


def _late(epochs: Sequence[InsideEpoch], least_s: float) -> list[Span]:
    """Return the waits for a first batch that took most of what an epoch waited; none where few epochs have one."""
    late = [
        (epoch.start_t_s, epoch.start_t_s + epoch.first_wait_s)
        for epoch in epochs
        if epoch.first_wait_s >= max(least_s, th.OF_THE_WAIT * epoch.data_wait_s)
    ]
    return late if len(late) >= max(th.LATE_EPOCHS, len(epochs) / 2) else []
