"""Where power or heat held a GPU's clock down while it worked, by what the driver says of its clocks.

A clock that fell in training for minutes without a word of the driver is throttled, too (`clock_fall`).
"""

from dataclasses import replace

import numpy as np
import pandas as pd

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.gpu.clock_fall import TrainedSteps, clock_fall
from gpu_report.analyse.signals.gpu.clock_rows import (
    POWER_CAP,
    THERMAL,
    ClockRows,
    clock_rows,
    is_alike,
    is_as_busy,
    long_spans,
)
from gpu_report.analyse.signals.gpu.throttle import Throttle
from gpu_report.analyse.timeline.activity import Activity
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, mask_in_any
from gpu_report.median import median_of
from gpu_report.model import HEALTHY_PCT, Gpu


def throttles(series: GpuSeries, activity: Activity, gpu: Gpu, trained: TrainedSteps) -> tuple[Throttle, ...]:
    """Return what held a GPU down for long enough, by reasons and counters, and a clock that fell without either.

    Whether it is by the card's design is judged by the work of its steps: a validation is a lighter load.
    """
    if series.gpu not in activity.used_gpus:
        return ()
    rows = clock_rows(series, activity)
    is_known = bool(trained.epochs)
    steps = mask_in_any(rows.t_s, trained.epochs) if is_known else np.ones(len(rows.t_s), dtype=np.bool_)
    found = _throttles(series, rows, steps, gpu, trained)
    return tuple(replace(each, other_limit_w=_other_limit_w(each, rows, gpu.power_limit_w)) for each in found)


def _throttles(
    series: GpuSeries, rows: ClockRows, steps: Bools, gpu: Gpu, trained: TrainedSteps
) -> tuple[Throttle, ...]:
    fell = clock_fall(series, rows, steps, gpu.power_limit_w, trained)
    typical_mhz = _typical_mhz(rows, gpu) if rows.reported.any() else None
    if typical_mhz is None:
        return () if fell is None else (fell,)
    found = (_throttle(series, rows, steps, cause, typical_mhz, gpu.power_limit_w) for cause in (POWER_CAP, THERMAL))
    held = tuple(
        replace(
            each,
            by_design=_by_design(each, gpu, _share_of_busy(rows, steps, each)),
            unseen=_is_unseen(rows, typical_mhz),
            own_limit=gpu.power_limit_default_w is not None and _by_own_limit(each, gpu),
        )
        for each in found
        if each is not None
    )
    return _with_fall(held, fell)


def _is_unseen(rows: ClockRows, typical_mhz: float) -> bool:
    """Tell whether a GPU never ran near a clock, not even while it did little."""
    return not (rows.clock_mhz > (1 - th.CLOCK_DOWN_SHARE) * typical_mhz).any()


def _with_fall(held: tuple[Throttle, ...], fell: Throttle | None) -> tuple[Throttle, ...]:
    """Return what held a clock down, with a fall of it; of one cause the one that tells of more."""
    if fell is None or any(each.cause == fell.cause and each.lost_s >= fell.lost_s for each in held):
        return held
    return (*(each for each in held if each.cause != fell.cause), fell)


def _by_design(throttle: Throttle, gpu: Gpu, share: float) -> bool:
    """Tell whether nothing but the card's own power limit held it down, in nearly all of its work.

    `share` (0 to 1) is how much of it that was.
    """
    return _by_own_limit(throttle, gpu) and not throttle.alike and share >= th.BY_DESIGN_SHARE


def _share_of_busy(rows: ClockRows, steps: Bools, throttle: Throttle) -> float:
    """Return the share (0 to 1) of steps that were held down, of those as busy as these.

    A GPU that waits for data in between draws less, and its clock says nothing of what it can do.
    """
    busy = steps & is_as_busy(rows, throttle.throttled_s > 0)
    work_s = rows.seconds(rows.work & busy)
    return float(throttle.throttled_s[busy].sum()) / work_s if work_s else 0.0


def _by_own_limit(throttle: Throttle, gpu: Gpu) -> bool:
    """Tell whether nothing but the card's own power limit held it down.

    A limit that somebody has lowered is none of the card's; where nobody asked for its default, it is taken to be that.
    """
    limit_w, default_w = gpu.power_limit_w, gpu.power_limit_default_w
    lowered = limit_w is not None and default_w is not None and limit_w < th.LOWERED_SHARE * default_w
    return throttle.cause == POWER_CAP and not throttle.brake and not throttle.hard.any() and not lowered


def counted_s(rows: pd.DataFrame, column: str, span: Span) -> float | None:
    """Return by how much a counter of seconds grew around a span, None where it was not read before and after."""
    t_s, values = rows["t_s"].to_numpy(dtype=float), rows[column].to_numpy()
    known = ~np.isnan(values)
    t_s, values = t_s[known], values[known]
    last, first = int(np.searchsorted(t_s, span[0], side="right")) - 1, int(np.searchsorted(t_s, span[1]))
    if last < 0 or first == len(t_s):
        return None
    return max(float(values[first] - values[last]), 0.0)


def _throttle(  # noqa: PLR0913, PLR0917 - what is held down, by what, and beside what
    series: GpuSeries, rows: ClockRows, steps: Bools, cause: str, typical_mhz: float, limit_w: float | None
) -> Throttle | None:
    down = rows.work & rows.says[cause] & (rows.clock_mhz <= (1 - th.CLOCK_DOWN_SHARE) * typical_mhz)
    spans, throttled = long_spans(rows, down, series.tick_s), down
    if not spans and cause == THERMAL:  # hot for long, at no cost
        spans, throttled = long_spans(rows, rows.work & rows.hot, series.tick_s), rows.work & rows.hot
    if not spans:
        return None
    throttled = throttled & mask_in_any(rows.t_s, spans)
    lost = np.where(down & throttled, 1 - rows.clock_mhz / typical_mhz, 0.0)
    brake = rows.seconds(throttled & rows.brake) >= rows.seconds(throttled) / 2
    found = Throttle(
        gpu=series.gpu,
        cause=cause,
        throttled_s=np.where(throttled, rows.weight_s, 0.0),
        lost=lost,
        hard=rows.hard & throttled,
        brake=brake,
        spans=spans,
        typical_mhz=typical_mhz,
        alike=is_alike(rows, steps, throttled, typical_mhz, any_load=cause == THERMAL or brake, limit_w=limit_w),
        share=rows.seconds(throttled) / rows.seconds(rows.work),
        lost_s=float((rows.weight_s * lost * rows.util_pct / 100)[throttled].sum()),
    )
    if cause == POWER_CAP and not found.hard.any() and _is_far_below(limit_w, rows, throttled, alike=found.alike):
        return None
    reported = found.alike or found.cost_pct >= th.LOADED_LEAST_PCT or not (down & throttled).any()
    return found if reported else None


def _is_far_below(limit_w: float | None, rows: ClockRows, throttled: Bools, *, alike: bool) -> bool:
    """Tell whether a GPU drew far less than its power limit while the driver said that this held it down.

    Peaks between readings touched it then, if anything did.
    """
    power_w = rows.power_w[throttled]
    known = np.isfinite(power_w)
    if not limit_w or not known.any() or (alike and _lowered_to_w(limit_w, rows, throttled) is not None):
        return False
    return median_of(power_w[known]) < th.NEAR_LIMIT_SHARE * limit_w


def _other_limit_w(throttle: Throttle, rows: ClockRows, limit_w: float | None) -> float | None:
    """Return at what power a limit acted far below the recorded one, though the same work drew more; None elsewhere."""
    by_board = throttle.brake or throttle.hard.any()
    if throttle.cause != POWER_CAP or by_board or not throttle.alike or not limit_w:
        return None
    return _lowered_to_w(limit_w, rows, throttle.throttled_s > 0)


def _lowered_to_w(limit_w: float, rows: ClockRows, throttled: Bools) -> float | None:
    """Return the power (W) of a limit in force far below the one that was read once; None where none shows.

    A reading of power is a mean over waits, too: divided by utilisation it is the most that the work itself drew. The
    limit is near the highest of the readings at which it acts.
    """
    known = throttled & np.isfinite(rows.power_w)
    power_w, util_pct = rows.power_w[known], rows.util_pct[known]
    if not len(power_w) or median_of(util_pct) < HEALTHY_PCT:
        return None
    drawn_w = float(np.percentile(power_w, th.LIMIT_PERCENTILE))
    works = util_pct > 0
    at_work_w = median_of(power_w[works] / (util_pct[works] / 100))
    return drawn_w if max(drawn_w, at_work_w) < th.NEAR_LIMIT_SHARE * limit_w else None


def _typical_mhz(rows: ClockRows, gpu: Gpu) -> float | None:
    """Return the clock of work of which the driver says nothing, where there was enough; else the card's highest."""
    free = rows.work & rows.reported & ~rows.says[POWER_CAP] & ~rows.says[THERMAL] & ~rows.hot
    free &= rows.clock_mhz > 0
    if rows.seconds(free) >= th.THROTTLED_AT_LEAST_S:
        return median_of(rows.clock_mhz[free])
    return gpu.max_sm_clock_mhz or None
