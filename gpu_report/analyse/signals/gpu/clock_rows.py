"""A GPU's readings beside what its driver says of its clock, row by row.

It says so in two ways: reasons, a bitmask read at each tick (nvml.h, nvmlClocksEventReason*), and counters, the seconds
held since the driver was loaded, read every 10 s. Idle (0x1), application clocks (0x2), sync boost (0x10) and display
(0x100) are no throttling.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.signal_table import LARGEST_MASK
from gpu_report.analyse.timeline.activity import Activity
from gpu_report.analyse.timeline.thresholds import LOW_PCT
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, mask_in_any, rows_before
from gpu_report.analyse.timeseries.thresholds import READING_SLACK
from gpu_report.median import median_of

SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80
POWER_CAP, THERMAL = "power-cap", "thermal"  # the causes (catalogue.CAUSES)
APPLICATION_CLOCKS = 0x2
COUNTERS = {POWER_CAP: ("power_cap_s", "power_brake_s"), THERMAL: ("sw_thermal_slowdown_s", "hw_thermal_slowdown_s")}
HARD_COUNTERS = ("power_brake_s", "hw_thermal_slowdown_s")

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class ClockRows:
    """The rows of one GPU: `work` marks those at work, `says` by cause those at which the driver says it holds."""

    t_s: Floats
    weight_s: Floats
    clock_mhz: Floats
    power_w: Floats
    util_pct: Floats
    work: Bools
    awake: Bools
    celsius: Floats
    hot: Bools
    reported: Bools
    says: Mapping[str, Bools]
    hard: Bools
    brake: Bools
    applied: Bools

    def seconds(self, mask: Bools) -> float:
        """Return how long the marked rows stand for."""
        return float(self.weight_s[mask].sum())


def clock_rows(series: GpuSeries, activity: Activity) -> ClockRows:
    """Return the rows of a GPU, with what the driver says at each."""
    frame = series.samples
    t_s, util_pct = _column(frame, "t_s"), _column(frame, "gpu_util_pct")
    celsius = _column(frame, "temperature_c")
    hot = celsius >= th.HOT_C
    awake = ~mask_in_any(t_s, (*activity.startups, *activity.idle))
    reasons = _column(frame, "clock_event_reasons")
    known = reasons < LARGEST_MASK
    bits = np.where(known, reasons, 0).astype(np.int64)
    # old drivers say no more than that the hardware did it: for heat, or because power rose too fast
    alone = (bits & HW_SLOWDOWN > 0) & (bits & (HW_THERMAL | POWER_BRAKE) == 0)
    counted = {name: _counted(frame, name) for name in (*COUNTERS[POWER_CAP], *COUNTERS[THERMAL])}
    heat = np.where(known, (bits & (SW_THERMAL | HW_THERMAL) > 0) | (alone & hot), _any(counted, COUNTERS[THERMAL]))
    power = np.where(known, (bits & (SW_POWER_CAP | POWER_BRAKE) > 0) | alone, _any(counted, COUNTERS[POWER_CAP]))
    return ClockRows(
        t_s=t_s,
        weight_s=series.sample_weight_s,
        clock_mhz=_column(frame, "sm_clock_mhz"),
        power_w=_column(frame, "power_w"),
        util_pct=util_pct,
        work=awake & (util_pct >= LOW_PCT),
        awake=awake,
        celsius=celsius,
        hot=hot,
        reported=known | np.isfinite(np.array(list(counted.values()))).any(axis=0),
        # beside heat, a word of the power cap says nothing: a loaded card gives it all the time
        says={POWER_CAP: power & ~heat, THERMAL: heat},
        hard=np.where(known, bits & (HW_SLOWDOWN | HW_THERMAL | POWER_BRAKE) > 0, _any(counted, HARD_COUNTERS)),
        brake=np.where(known, bits & POWER_BRAKE > 0, _any(counted, ("power_brake_s",))),
        applied=bits & APPLICATION_CLOCKS > 0,
    )


def is_alike(  # noqa: PLR0913 - what is held down, beside what, and the limit (W) in force
    rows: ClockRows,
    steps: Bools,
    throttled: Bools,
    typical_mhz: float,
    *,
    any_load: bool,
    limit_w: float | None = None,
) -> bool:
    """Tell whether enough of the work at full clock drew as much power as the work that was held down.

    Of steps of training alone: for a moment a validation may draw as much, and is other work. No work draws more than
    the limit but for a moment: what was held down at it has no heavier work beside it.
    """
    full = rows.work & ~rows.hot & (rows.clock_mhz > (1 - th.CLOCK_DOWN_SHARE) * typical_mhz)
    if not any_load:
        power = rows.power_w[throttled]
        known = power[np.isfinite(power)]
        if not len(known):
            return False
        drawn_w = median_of(known)
        full &= steps & (rows.power_w >= th.SAME_LOAD_SHARE * drawn_w)
        at_limit = limit_w is not None and drawn_w >= th.SAME_LOAD_SHARE * limit_w
        more = (rows.power_w >= drawn_w / th.SAME_LOAD_SHARE) & (not at_limit)
        full &= more | is_as_busy(rows, throttled)
    return rows.seconds(full) >= th.THROTTLED_AT_LEAST_S and int(full.sum()) >= th.ALIKE_READINGS


def is_as_busy(rows: ClockRows, throttled: Bools) -> Bools:
    """Tell around which readings the GPU was about as busy as around those that were held down.

    One that waits in between draws less power on average, and reaches a higher clock with the same limit.
    """
    seconds = np.where(np.isfinite(rows.util_pct), rows.weight_s, 0.0)
    so_far_s = np.concatenate([[0.0], np.cumsum(seconds)])
    busy_s = np.concatenate([[0.0], np.cumsum(seconds * np.nan_to_num(rows.util_pct) / 100)])
    first, end = (np.searchsorted(rows.t_s, rows.t_s + by_s) for by_s in (-th.AROUND_S, th.AROUND_S))
    read_s = so_far_s[end] - so_far_s[first]
    share = (busy_s[end] - busy_s[first]) / np.where(read_s > 0, read_s, np.nan)
    as_busy: Bools = share >= th.AS_BUSY_SHARE * float(np.nanmedian(share[throttled]))
    return as_busy


def long_spans(
    rows: ClockRows, throttled: Bools, tick_s: float, join_s: float = th.THROTTLED_JOIN_S
) -> tuple[Span, ...]:
    """Return the stretches that are long enough, longest first: as one where they are most of the work in between.

    Where none is long, all of them together as one, if they are enough of all work.
    """
    least_s = th.THROTTLED_AT_LEAST_S - READING_SLACK * tick_s
    if rows.seconds(throttled) <= 0:
        return ()
    firsts, ends = stretches(rows, throttled, join_s)
    so_far_s = np.concatenate([[0.0], np.cumsum(np.where(throttled, rows.weight_s, 0.0))])
    long = so_far_s[ends] - so_far_s[firsts] >= least_s
    starts_s, ends_s = rows.t_s[firsts], rows.t_s[ends - 1] + rows.weight_s[ends - 1]
    if not long.any():
        enough = rows.seconds(throttled) >= max(least_s, th.SCATTERED_SHARE * rows.seconds(rows.work))
        return ((float(starts_s[0]), float(ends_s[-1])),) if enough else ()
    whole = float(starts_s[long][0]), float(ends_s[long][-1])
    between = mask_in_any(rows.t_s, [whole])
    if rows.seconds(throttled & between) >= th.THROTTLED_SHARE * rows.seconds(rows.work & between):
        return (whole,)
    spans = zip(starts_s[long].tolist(), ends_s[long].tolist(), strict=True)
    return tuple(sorted(spans, key=lambda span: span[0] - span[1]))


def stretches(rows: ClockRows, throttled: Bools, join_s: float = th.THROTTLED_JOIN_S) -> tuple[Indices, Indices]:
    """Return the first of each run of marked rows and the row after its last.

    Runs are joined across less than `join_s` of other work, but across no gap in the rows and no rest.
    """
    at, ends_s = np.flatnonzero(throttled), rows.t_s + rows.weight_s
    if not len(at):
        return at, at
    other_s = np.cumsum(np.where(rows.work & ~throttled, rows.weight_s, 0.0))
    unseen = np.append(rows.t_s[1:] - ends_s[:-1] > 1e-6, False)
    breaks = np.cumsum(unseen) - unseen + np.cumsum(~rows.awake)
    apart = (np.diff(other_s[at]) >= join_s) | (np.diff(breaks[at]) > 0)
    return at[np.concatenate([[True], apart])], at[np.append(apart, True)] + 1


def _counted(frame: pd.DataFrame, name: str) -> Floats:
    """Return the share of time that a counter of seconds grew by, from one reading of it to the next; NaN elsewhere."""
    values, t_s = _column(frame, name), _column(frame, "t_s")
    read = np.flatnonzero(np.isfinite(values))
    grown = np.append(np.diff(values[read]) / np.diff(t_s[read]), np.nan)
    since = rows_before(read, np.arange(len(values)), "right") - 1
    return np.where(since >= 0, grown[since], np.nan) if len(read) else np.full(len(values), np.nan)


def _any(counted: Mapping[str, Floats], names: Sequence[str]) -> Bools:
    found: Bools = np.any([counted[name] >= th.COUNTED_SHARE for name in names], axis=0)
    return found


def _column(frame: pd.DataFrame, name: str) -> Floats:
    return frame[name].to_numpy(dtype=float)
