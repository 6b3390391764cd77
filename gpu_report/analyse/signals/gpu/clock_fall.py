"""A clock that fell in training for minutes, though the GPU was as busy, mostly without a word of the driver."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.gpu.clock_rows import POWER_CAP, THERMAL, ClockRows, is_alike, long_spans, stretches
from gpu_report.analyse.signals.gpu.throttle import Throttle
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, mask_in_any
from gpu_report.median import median_of

LOWER_CLOCK = "lower-clock"  # the cause (catalogue.CAUSES) of which the driver gives no reason


@dataclass(frozen=True)
class TrainedSteps:
    """When steps went on, epoch by epoch, and how many batches a second were trained in some spans.

    None of spans in which nobody counted them.
    """

    epochs: tuple[Span, ...]
    batches_per_s: Callable[[Sequence[Span]], float | None]


def clock_fall(
    series: GpuSeries, rows: ClockRows, steps: Bools, limit_w: float | None, trained: TrainedSteps
) -> Throttle | None:
    """Return the clock that fell in training for minutes, though the GPU was as busy, and what the driver says of it.

    Mostly that is nothing. It may say so at a tick now and then, where reasons come and go. Levels are medians of a
    minute: clocks that wander from second to second have one. A GPU that waits lowers its clock by itself, and one that
    draws its power limit, where no reasons were logged, is held by that.
    """
    work = rows.work & steps & (rows.clock_mhz > 0)
    down, full, full_mhz = _lower_and_full(rows, work, series.tick_s)
    # what is no step, such as a validation, ends no fall, nor does less at full clock than a level takes
    spans = long_spans(replace(rows, work=work), down, series.tick_s, th.LOWER_LEVEL_S)
    if not spans or not _as_busy(rows, down, full) or _at_its_limit(rows, down, full, limit_w):
        return None
    heat_onset_c = _heat_onset_c(rows, down, full)
    cause = _said_of(rows, down, full, is_heat=heat_onset_c is not None)
    if cause is None or not is_alike(rows, steps, down, full_mhz, any_load=cause != POWER_CAP):
        return None
    lost = np.where(down, 1 - rows.clock_mhz / full_mhz, 0.0)
    return Throttle(
        gpu=series.gpu,
        cause=cause,
        throttled_s=np.where(down, rows.weight_s, 0.0),
        lost=lost,
        hard=rows.hard & down,
        brake=rows.seconds(down & rows.brake) >= rows.seconds(down) / 2,
        spans=spans,
        typical_mhz=full_mhz,
        alike=True,
        share=rows.seconds(down) / rows.seconds(rows.work),
        lost_s=float((rows.weight_s * lost * rows.util_pct / 100).sum()),
        applied=rows.seconds(down & rows.applied) >= rows.seconds(down) / 2,
        heat_onset_c=heat_onset_c if cause == THERMAL else None,
        unsure=cause == LOWER_CLOCK and not _was_slower(rows, down, full, trained, float(lost[down].mean())),
    )


def _lower_and_full(rows: ClockRows, work: Bools, tick_s: float) -> tuple[Bools, Bools, float]:
    """Return the rows of work at a clock that fell for minutes, those at the full one, and that in MHz."""
    level_mhz = _levels(rows, work)
    full_mhz = _held_for(level_mhz[work], rows.weight_s[work], th.LOWER_AT_LEAST_S)
    line_mhz = (1 - th.LOWER_SHARE) * full_mhz
    low = work & (level_mhz <= line_mhz)
    long = [span for span in long_spans(rows, low, tick_s) if span[1] - span[0] >= th.LOWER_AT_LEAST_S]
    near = mask_in_any(rows.t_s, [(start - th.LOWER_LEVEL_S, end + th.LOWER_LEVEL_S) for start, end in long])
    down = work & near & (rows.clock_mhz <= line_mhz)
    return down, work & (level_mhz > line_mhz) & ~down, full_mhz


def _was_slower(rows: ClockRows, down: Bools, full: Bools, trained: TrainedSteps, lost: float) -> bool:
    """Tell whether training got slower by the share of its clock that it lost (0 to 1), by half of it at least.

    The lengths of its epochs say so. Where none is all at one clock, its batches do, if they were counted within it;
    else the driver that gives reasons, and has none; else the power, which falls with the clock where the work is the
    same. Where nobody read that, nothing does.
    """
    longer = _longer(rows, trained.epochs, down, full) or _longer_steps(rows, trained, down, full)
    if longer is not None:
        return longer >= 1 / (1 - lost / 2)
    if rows.reported[down].any():
        return True
    then_w, before_w = (rows.power_w[mask & np.isfinite(rows.power_w)] for mask in (down, full))
    if not len(then_w) or not len(before_w):
        return False
    return float(np.median(then_w)) <= (1 - lost / 2) * float(np.median(before_w))


def _longer(rows: ClockRows, trained: Sequence[Span], down: Bools, full: Bools) -> float | None:
    """Return how many times as long as at the full clock epochs trained at the lower one; the first one warms up."""
    then_s, before_s = (_lengths_at(rows, trained[1:], mask) for mask in (down, full))
    return float(np.median(then_s) / np.median(before_s)) if then_s and before_s else None


def _longer_steps(rows: ClockRows, trained: TrainedSteps, down: Bools, full: Bools) -> float | None:
    """Return how many times as long as at the full clock a batch took at the lower one; None if nobody counted."""
    then, before = (trained.batches_per_s(_spans_of(rows, mask)) for mask in (down, full))
    return before / then if then and before else None


def _spans_of(rows: ClockRows, marked: Bools) -> list[Span]:
    firsts, ends = stretches(rows, marked)
    return list(zip(rows.t_s[firsts].tolist(), (rows.t_s + rows.weight_s)[ends - 1].tolist(), strict=True))


def _lengths_at(rows: ClockRows, spans: Sequence[Span], marked: Bools) -> list[float]:
    """Return the lengths (s) of the spans of which nearly all work is marked."""
    ends = np.array(spans, dtype=float).reshape(-1, 2)
    work_s, marked_s = (
        np.concatenate([[0.0], np.cumsum(np.where(rows.work & mask, rows.weight_s, 0.0))]) for mask in (True, marked)
    )
    first, last = np.searchsorted(rows.t_s, ends).T
    all_s, mine_s = (sums[last] - sums[first] for sums in (work_s, marked_s))
    is_mine = (all_s > 0) & (mine_s >= th.LOWER_EPOCH_SHARE * all_s)
    lengths: list[float] = (ends[:, 1] - ends[:, 0])[is_mine].tolist()
    return lengths


def _heat_onset_c(rows: ClockRows, down: Bools, full: Bools) -> float | None:
    """Return from which temperature (°C) on alone a clock was down, though the GPU drew less; None where it is not so.

    That is heat. At a clock that somebody set, or that less power allows, a GPU is cooler than at the full one.
    """
    then, before = (mask & np.isfinite(rows.celsius) & np.isfinite(rows.power_w) for mask in (down, full))
    if not then.any() or not before.any():
        return None
    heat_onset_c = float(np.quantile(rows.celsius[then], th.HEAT_ONSET_SHARE))
    passes = float(np.mean(rows.celsius[before] >= heat_onset_c)) <= th.HEAT_ONSET_SHARE
    draws_less = median_of(rows.power_w[then]) <= th.SAME_POWER_SHARE * median_of(rows.power_w[before])
    return heat_onset_c if heat_onset_c >= th.HEAT_ONSET_LEAST_C and passes and draws_less else None


def _said_of(rows: ClockRows, down: Bools, full: Bools, *, is_heat: bool) -> str | None:
    """Return what lowered a clock, by what the driver says while it is down; None where it says as much at full clock.

    Where nobody said anything, it is heat if the GPU was hot, and cool at full clock, or if temperature alone says so
    (`is_heat`).
    """
    unsaid = ~rows.reported & (rows.hot | (down & is_heat))
    for cause, says in ((THERMAL, rows.says[THERMAL] | unsaid), (POWER_CAP, rows.says[POWER_CAP])):
        then, typical = (rows.seconds(mask & says) / rows.seconds(mask) for mask in (down, full))
        if then >= th.SAID_SHARE:
            return cause if typical < then / 2 else None
    return LOWER_CLOCK


def _levels(rows: ClockRows, free: Bools) -> Floats:
    """Return for each row the median clock of what is free in its stretch of LOWER_LEVEL_S, NaN where nothing is."""
    number = np.floor(rows.t_s / th.LOWER_LEVEL_S)
    medians = pd.Series(np.where(free, rows.clock_mhz, np.nan)).groupby(number).transform("median")
    return medians.to_numpy(dtype=float)


def _held_for(values: Floats, seconds: Floats, least_s: float) -> float:
    """Return the highest value that others of `least_s` in all are not below; NaN where there are not so many."""
    order = np.argsort(-values)
    enough = np.flatnonzero(np.cumsum(seconds[order]) >= least_s)
    return float(values[order][enough[0]]) if len(enough) else float("nan")


def _as_busy(rows: ClockRows, down: Bools, full: Bools) -> bool:
    """Tell whether a GPU was about as busy at the lower clock as at the full one, where there was enough of that."""
    if rows.seconds(full) < th.LOWER_AT_LEAST_S:
        return False
    then, typical = (float(np.average(rows.util_pct[mask], weights=rows.weight_s[mask])) for mask in (down, full))
    return then >= (1 - th.BUSIER_SHARE) * typical


def _at_its_limit(rows: ClockRows, down: Bools, full: Bools, limit_w: float | None) -> bool:
    """Tell whether a GPU drew its power limit while nobody said what held it down.

    Where the limit was not logged, that is what it draws at its full clock: at a lower one the same work takes less.
    """
    power_w, full_w = (mask[np.isfinite(mask)] for mask in (rows.power_w[down], rows.power_w[full]))
    if rows.reported[down].any() or not len(power_w) or not (limit_w or len(full_w)):
        return False
    if limit_w:
        return median_of(power_w) >= th.NEAR_LIMIT_SHARE * limit_w
    return median_of(power_w) >= th.SAME_POWER_SHARE * median_of(full_w)
