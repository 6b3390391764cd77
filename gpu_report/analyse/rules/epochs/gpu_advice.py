"""What on a GPU made epochs longer: a lower clock, or memory that is full."""

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.epochs.changed_signals import of_gpus, utilisation
from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch
from gpu_report.analyse.signals.thresholds import PHASE_EDGE_S
from gpu_report.analyse.timeseries.columns import column_median
from gpu_report.analyse.timeseries.intervals import as_array, mask_in_any
from gpu_report.gpu_words import gpus_words
from gpu_report.model import Advice
from gpu_report.wording import memory_words


class LostTime(NamedTuple):
    """What some epochs, one after the other, took longer in all (s)."""

    epochs: Sequence[TrainedEpoch]
    seconds: float


def advice_on_gpu(
    context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch], slower: float, lost: LostTime
) -> Advice | None:
    """Return what to look at on the GPU, where that is why training is `slower` (a share of its speed)."""
    return _on_clock(context, before, after, slower) or _on_retries(context, lost) or _on_paging(context, before, after)


def _on_retries(context: Context, lost: LostTime) -> Advice | None:
    """Return to take less GPU memory, where PyTorch emptied its cache so often that this may be most of a loss.

    The main process computes meanwhile, and the GPU waits: it looks like a callback. An epoch's last count is told a
    moment after it.
    """
    start_s, end_s = lost.epochs[0].span[0], lost.epochs[-1].span[1]
    training = context.training_at(start_s)
    retries = training.memory_retries((start_s, end_s + PHASE_EDGE_S)) if training is not None else None
    if not retries or retries * th.RETRY_AT_MOST_S < th.EXPLAINED_SHARE * lost.seconds:
        return None
    short = "Lower `batch`, or set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`"
    why = f"PyTorch emptied its cache {retries:,.0f} times to get memory, and the GPU waits each time"
    return Advice(f"{short}: GPU memory was full. {why}", short=short)


def _on_clock(
    context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch], slower: float
) -> Advice | None:
    """Return to look at the clock, where it fell by enough to be why training is `slower` (a share of its pace).

    That may be the clock of the SMs or of the device memory. A GPU that waits lowers its clocks by itself: so it must
    be as busy as before.
    """
    was_pct, is_pct = utilisation(context, before), utilisation(context, after)
    if was_pct is None or is_pct is None or is_pct < (1 - th.CHANGED_SHARE) * was_pct:
        return None
    for name, column in (("SM", "sm_clock_mhz"), ("memory", "memory_clock_mhz")):
        clocks = _clocks(context, column, before, after)
        fell = [clock for clock in clocks if 1 - clock.after / clock.before >= th.EXPLAINED_SHARE * (1 - slower)]
        if not fell:
            continue
        slowest = min(fell, key=lambda clock: clock.after / clock.before)
        whose = "" if len(fell) == len(clocks) else f" of {gpus_words([clock.gpu for clock in fell])}"
        short = f"Find what lowered the {name} clock{whose} from {slowest.before:,.0f} to {slowest.after:,.0f} MHz"
        return Advice(f"{short}: `nvidia-smi -q -d CLOCK,PERFORMANCE` shows limits that somebody set", short=short)
    return None


class _ClockChange(NamedTuple):
    """The clock of a GPU in the training of some epochs and of later ones (MHz, medians)."""

    gpu: int
    before: float
    after: float


def _clocks(
    context: Context, column: str, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch]
) -> list[_ClockChange]:
    """Return the clocks of the used GPUs: where one of them fell, the others of a training wait for it."""
    was_in, is_in = ([epoch.span for epoch in epochs] for epochs in (before, after))
    found = []
    for series in context.used_series:
        was, now = (column_median(series.samples, column, part) for part in (was_in, is_in))
        if was and now is not None:
            found.append(_ClockChange(series.gpu, was, now))
    return found


def _on_paging(context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch]) -> Advice | None:
    """Return to take less GPU memory, where the card was full and its GPU as busy as before, at far less power.

    That is what paging to host memory looks like, which drivers do on Windows and in WSL instead of failing.
    """
    used, power = of_gpus("memory_used_mib"), of_gpus("power_w")
    then_mib, before_w, then_w = used(context, after), power(context, before), power(context, after)
    was_pct, is_pct = utilisation(context, before), utilisation(context, after)
    known = [context.run.gpu(series.gpu).memory_total_mib for series in context.used_series]
    total_mib = min((mib for mib in known if mib), default=None)
    if not total_mib or then_mib is None or not before_w or then_w is None or was_pct is None or is_pct is None:
        return None
    is_full, as_busy = then_mib >= th.NEAR_LIMIT_PCT / 100 * total_mib, is_pct >= (1 - th.CHANGED_SHARE) * was_pct
    if not is_full or not as_busy or then_w > th.PAGING_POWER_SHARE * before_w:
        return None
    full = f"GPU memory is full, and the busy GPU draws {then_w:.0f} W instead of {before_w:.0f}"
    paging = "On Windows and in WSL the driver then pages to host memory, which is slow"
    if (theirs_mib := _taken_by_others_mib(context, before, after)) is not None:
        short = "Close what else uses the GPU's memory, or lower `batch`"
        whose = f"The training's own memory is as before: something else took {memory_words(theirs_mib)}"
        return Advice(f"{short}: {full}. {whose}. {paging}", short=short)
    short = f"Lower `batch`: {full}"
    return Advice(f"{short}. {paging}", short=short)


def _taken_by_others_mib(
    context: Context, before: Sequence[TrainedEpoch], after: Sequence[TrainedEpoch]
) -> float | None:
    """Return what something else took of GPU memory in some epochs (MiB), None where it may be the training's own.

    The driver names no processes on Windows and in WSL. By PyTorch's counter the training's tensors took no more then.
    PyTorch may keep more than these, and would go on to: the card has to be as empty as before in later epochs.
    """
    later = [epoch for epoch in before if epoch.span > after[-1].span]
    used = of_gpus("memory_used_mib")
    was_mib, then_mib, later_mib = (used(context, epochs) for epochs in (before, after, later))
    own = [_allocated_mib(context, epochs) for epochs in (before, after)]
    if was_mib is None or then_mib is None or later_mib is None or own[0] is None or own[1] is None:
        return None
    grown_mib = then_mib - was_mib
    kept_mib = max(later_mib - was_mib, own[1] - own[0])
    return grown_mib if grown_mib > 0 and kept_mib <= th.OWN_MEMORY_GREW_SHARE * grown_mib else None


def _allocated_mib(context: Context, epochs: Sequence[TrainedEpoch]) -> float | None:
    """Return the GPU memory that a training's tensors had in epochs (MiB, median), None where nobody reported it."""
    training = context.training_at(epochs[0].span[0])
    group = training.rank_group if training is not None else None
    spans = as_array([epoch.span for epoch in epochs])
    known = [each for rank in group.ranks for each in rank.progress if each.allocated_mib is not None] if group else []
    inside = mask_in_any(np.array([each.t_s for each in known]), spans)
    found = [each.allocated_mib or 0.0 for each, is_in in zip(known, inside.tolist(), strict=True) if is_in]
    return median(found) if found else None
