"""Where power or heat held a GPU's clock down while it worked, by what the driver says of its clocks.

It says so in two ways: reasons, a bitmask read at each tick (nvml.h, nvmlClocksEventReason*), and counters, the seconds
held since the driver was loaded, read every 10 s. Idle (0x1), application clocks (0x2), sync boost (0x10) and display
(0x100) are no throttling. A clock that fell in training for minutes without any of it is one, too.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

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
from gpu_report.model import HEALTHY_PCT, Gpu, Severity

SW_POWER_CAP, HW_SLOWDOWN, SW_THERMAL, HW_THERMAL, POWER_BRAKE = 0x4, 0x8, 0x20, 0x40, 0x80
POWER_CAP, THERMAL = "power-cap", "thermal"  # the causes (catalogue.CAUSES)
LOWER_CLOCK = "lower-clock"  # likewise, of which the driver gives no reason
APPLICATION_CLOCKS = 0x2
COUNTERS = {POWER_CAP: ("power_cap_s", "power_brake_s"), THERMAL: ("sw_thermal_slowdown_s", "hw_thermal_slowdown_s")}
HARD_COUNTERS = ("power_brake_s", "hw_thermal_slowdown_s")

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Throttle:
    """How one cause held one GPU's clock down; arrays are by row of the GPU's samples table.

    `throttled_s` is the work at a lower clock that a row stands for, 0 where there is none; `lost` the share of the
    typical clock that it lacked, 0 to 1; `hard` marks what the board itself did; `brake` says that mostly an outside
    power signal did it. `spans` are the stretches, longest first. `typical_mhz` is the clock of work of which nothing
    was held down, the card's highest where there was none; `alike` says that work at that clock was as heavy. `share`
    is of all work, 0 to 1. `by_design` says that the card is at the power limit that it came with, in nearly all of its
    work: that is what it can do. `lost_s` is the time lost at most: what was busy, by the clock that it lacked (work
    that waits for memory loses less). `applied` says that application clocks, which somebody sets, lowered it.
    """

    gpu: int
    cause: str
    throttled_s: Floats
    lost: Floats
    hard: Bools
    brake: bool
    spans: tuple[Span, ...]
    typical_mhz: float
    alike: bool
    share: float
    lost_s: float
    by_design: bool = False
    applied: bool = False
    unsure: bool = False

    @property
    def cost_pct(self) -> float:
        """Return the share of the clock that was lost while it was held down, in %."""
        return 100 * float(np.average(self.lost, weights=self.throttled_s))

    @property
    def severity(self) -> Severity:
        """Return how bad it was (thresholds.py); what the board itself halves is worst."""
        hard_s = self.throttled_s[self.hard]
        if self.by_design or self.unsure:
            return "info"
        halved = float((hard_s * self.lost[self.hard]).sum()) >= th.HALVED_PCT / 100 * float(hard_s.sum())
        if float(hard_s.sum()) >= th.THROTTLED_AT_LEAST_S and halved:
            return "critical"
        return "warning" if self.cost_pct >= (th.THROTTLED_COST_PCT if self.alike else th.LOADED_COST_PCT) else "info"


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of one GPU: `work` marks those at work, `says` by cause those at which the driver says it holds."""

    t_s: Floats
    weight_s: Floats
    clock_mhz: Floats
    power_w: Floats
    util_pct: Floats
    work: Bools
    awake: Bools
    hot: Bools
    reported: Bools
    says: Mapping[str, Bools]
    hard: Bools
    brake: Bools
    applied: Bools

    def seconds(self, mask: Bools) -> float:
        """Return how long the marked rows stand for."""
        return float(self.weight_s[mask].sum())


@dataclass(frozen=True)
class Steps:
    """When steps went on, epoch by epoch, and how many batches a second were trained in some spans.

    None of spans in which nobody counted them.
    """

    epochs: tuple[Span, ...]
    batches_per_s: Callable[[Sequence[Span]], float | None]


def throttles(series: GpuSeries, activity: Activity, gpu: Gpu, trained: Steps) -> tuple[Throttle, ...]:
    """Return what held a GPU down for long enough, by reasons and counters, and a clock that fell without either.

    Whether it is by the card's design is judged by the work of its steps: a validation is a lighter load.
    """
    if series.gpu not in activity.used_gpus:
        return ()
    rows = _rows(series, activity)
    is_known = bool(trained.epochs)
    steps = mask_in_any(rows.t_s, trained.epochs) if is_known else np.ones(len(rows.t_s), dtype=np.bool_)
    fell = _fell(series, rows, steps, gpu.power_limit_w, trained)
    typical_mhz = _typical_mhz(rows, gpu) if rows.reported.any() else None
    if typical_mhz is None:
        return () if fell is None else (fell,)
    found = (_throttle(series, rows, steps, cause, typical_mhz, gpu.power_limit_w) for cause in (POWER_CAP, THERMAL))
    work_s = rows.seconds(rows.work & steps)
    held = tuple(
        replace(each, by_design=_by_design(each, gpu, float(each.throttled_s[steps].sum()) / work_s if work_s else 0.0))
        for each in found
        if each is not None
    )
    return _with_fall(held, fell)


def _with_fall(held: tuple[Throttle, ...], fell: Throttle | None) -> tuple[Throttle, ...]:
    """Return what held a clock down, with a fall of it; of one cause the one that tells of more."""
    if fell is None or any(each.cause == fell.cause and each.lost_s >= fell.lost_s for each in held):
        return held
    return (*(each for each in held if each.cause != fell.cause), fell)


def _fell(series: GpuSeries, rows: _Rows, steps: Bools, limit_w: float | None, trained: Steps) -> Throttle | None:
    """Return the clock that fell in training for minutes, though the GPU was as busy, and what the driver says of it.

    Mostly that is nothing. It may say so at a tick now and then, where reasons come and go. Levels are medians of a
    minute: clocks that wander from second to second have one. A GPU that waits lowers its clock by itself, and one that
    draws its power limit, where no reasons were logged, is held by that.
    """
    work = rows.work & steps & (rows.clock_mhz > 0)
    level_mhz = _levels(rows, work)
    full_mhz = _held_for(level_mhz[work], rows.weight_s[work], th.LOWER_AT_LEAST_S)
    line_mhz = (1 - th.LOWER_SHARE) * full_mhz
    low = work & (level_mhz <= line_mhz)
    long = [span for span in _spans(rows, low, series.tick_s) if span[1] - span[0] >= th.LOWER_AT_LEAST_S]
    near = mask_in_any(rows.t_s, [(start - th.LOWER_LEVEL_S, end + th.LOWER_LEVEL_S) for start, end in long])
    down = work & near & (rows.clock_mhz <= line_mhz)
    full = work & (level_mhz > line_mhz) & ~down
    spans = _spans(rows, down, series.tick_s)
    if not spans or not _as_busy(rows, down, full) or _at_its_limit(rows, down, full, limit_w):
        return None
    cause = _said_of(rows, down, full)
    if cause is None or not _alike(rows, steps, down, full_mhz, any_load=cause != POWER_CAP):
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
        unsure=cause == LOWER_CLOCK and not _was_slower(rows, down, full, trained, float(lost[down].mean())),
    )


def _was_slower(rows: _Rows, down: Bools, full: Bools, trained: Steps, lost: float) -> bool:
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


def _longer(rows: _Rows, trained: Sequence[Span], down: Bools, full: Bools) -> float | None:
    """Return how many times as long as at the full clock epochs trained at the lower one; the first one warms up."""
    then_s, before_s = (_lengths_at(rows, trained[1:], mask) for mask in (down, full))
    return float(np.median(then_s) / np.median(before_s)) if then_s and before_s else None


def _longer_steps(rows: _Rows, trained: Steps, down: Bools, full: Bools) -> float | None:
    """Return how many times as long as at the full clock a batch took at the lower one; None if nobody counted."""
    then, before = (trained.batches_per_s(_spans_of(rows, mask)) for mask in (down, full))
    return before / then if then and before else None


def _spans_of(rows: _Rows, marked: Bools) -> list[Span]:
    firsts, ends = _stretches(rows, marked)
    return list(zip(rows.t_s[firsts].tolist(), (rows.t_s + rows.weight_s)[ends - 1].tolist(), strict=True))


def _lengths_at(rows: _Rows, spans: Sequence[Span], marked: Bools) -> list[float]:
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


def _said_of(rows: _Rows, down: Bools, full: Bools) -> str | None:
    """Return what lowered a clock, by what the driver says while it is down; None where it says as much at full clock.

    Where nobody said anything, it is heat if the GPU was hot, and cool at full clock.
    """
    unsaid = ~rows.reported & rows.hot
    for cause, says in ((THERMAL, rows.says[THERMAL] | unsaid), (POWER_CAP, rows.says[POWER_CAP])):
        then, typical = (rows.seconds(mask & says) / rows.seconds(mask) for mask in (down, full))
        if then >= th.SAID_SHARE:
            return cause if typical < then / 2 else None
    return LOWER_CLOCK


def _levels(rows: _Rows, free: Bools) -> Floats:
    """Return for each row the median clock of what is free in its stretch of LOWER_LEVEL_S, NaN where nothing is."""
    number = np.floor(rows.t_s / th.LOWER_LEVEL_S)
    medians = pd.Series(np.where(free, rows.clock_mhz, np.nan)).groupby(number).transform("median")
    return medians.to_numpy(dtype=float)


def _held_for(values: Floats, seconds: Floats, least_s: float) -> float:
    """Return the highest value that others of `least_s` in all are not below; NaN where there are not so many."""
    order = np.argsort(-values)
    enough = np.flatnonzero(np.cumsum(seconds[order]) >= least_s)
    return float(values[order][enough[0]]) if len(enough) else float("nan")


def _as_busy(rows: _Rows, down: Bools, full: Bools) -> bool:
    """Tell whether a GPU was about as busy at the lower clock as at the full one, where there was enough of that."""
    if rows.seconds(full) < th.LOWER_AT_LEAST_S:
        return False
    then, typical = (float(np.average(rows.util_pct[mask], weights=rows.weight_s[mask])) for mask in (down, full))
    return then >= (1 - th.BUSIER_SHARE) * typical


def _at_its_limit(rows: _Rows, down: Bools, full: Bools, limit_w: float | None) -> bool:
    """Tell whether a GPU drew its power limit while nobody said what held it down.

    Where the limit was not logged, that is what it draws at its full clock: at a lower one the same work takes less.
    """
    power_w, full_w = (mask[np.isfinite(mask)] for mask in (rows.power_w[down], rows.power_w[full]))
    if rows.reported[down].any() or not len(power_w) or not (limit_w or len(full_w)):
        return False
    if limit_w:
        return median_of(power_w) >= th.NEAR_LIMIT_SHARE * limit_w
    return median_of(power_w) >= th.SAME_POWER_SHARE * median_of(full_w)


def _by_design(throttle: Throttle, gpu: Gpu, share: float) -> bool:
    """Tell whether nothing but the card's own power limit held it down, in nearly all of its work.

    `share` (0 to 1) is how much of it that was.

    A limit that somebody has lowered is none of the card's; where nobody asked for its default, it is taken to be that.
    """
    limit_w, default_w = gpu.power_limit_w, gpu.power_limit_default_w
    lowered = limit_w is not None and default_w is not None and limit_w < th.LOWERED_SHARE * default_w
    by_power = throttle.cause == POWER_CAP and not throttle.brake and not throttle.hard.any()
    return by_power and not throttle.alike and not lowered and share >= th.BY_DESIGN_SHARE


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
    series: GpuSeries, rows: _Rows, steps: Bools, cause: str, typical_mhz: float, limit_w: float | None
) -> Throttle | None:
    down = rows.work & rows.says[cause] & (rows.clock_mhz <= (1 - th.CLOCK_DOWN_SHARE) * typical_mhz)
    spans, throttled = _spans(rows, down, series.tick_s), down
    if not spans and cause == THERMAL:  # hot for long, at no cost
        spans, throttled = _spans(rows, rows.work & rows.hot, series.tick_s), rows.work & rows.hot
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
        alike=_alike(rows, steps, throttled, typical_mhz, any_load=cause == THERMAL or brake),
        share=rows.seconds(throttled) / rows.seconds(rows.work),
        lost_s=float((rows.weight_s * lost * rows.util_pct / 100)[throttled].sum()),
    )
    if cause == POWER_CAP and not found.hard.any() and _is_far_below(limit_w, rows, throttled, alike=found.alike):
        return None
    reported = found.alike or found.cost_pct >= th.LOADED_LEAST_PCT or not (down & throttled).any()
    return found if reported else None


def _is_far_below(limit_w: float | None, rows: _Rows, throttled: Bools, *, alike: bool) -> bool:
    """Tell whether a GPU drew far less than its power limit while the driver said that this held it down.

    Peaks between readings touched it then, if anything did. The limit was read once: one that was lowered later holds
    a busy GPU at less than that, and at a lower clock than work alike had before.
    """
    power_w, util_pct = rows.power_w[throttled], rows.util_pct[throttled]
    known = np.isfinite(power_w)
    if not limit_w or not known.any() or (alike and median_of(util_pct) >= HEALTHY_PCT):
        return False
    return median_of(power_w[known]) < th.NEAR_LIMIT_SHARE * limit_w


def _rows(series: GpuSeries, activity: Activity) -> _Rows:
    frame = series.samples
    t_s, util_pct = _column(frame, "t_s"), _column(frame, "gpu_util_pct")
    hot = _column(frame, "temperature_c") >= th.HOT_C
    awake = ~mask_in_any(t_s, (*activity.startups, *activity.idle))
    reasons = _column(frame, "clock_event_reasons")
    known = reasons < LARGEST_MASK
    bits = np.where(known, reasons, 0).astype(np.int64)
    # old drivers say no more than that the hardware did it: for heat, or because power rose too fast
    alone = (bits & HW_SLOWDOWN > 0) & (bits & (HW_THERMAL | POWER_BRAKE) == 0)
    counted = {name: _counted(frame, name) for name in (*COUNTERS[POWER_CAP], *COUNTERS[THERMAL])}
    heat = np.where(known, (bits & (SW_THERMAL | HW_THERMAL) > 0) | (alone & hot), _any(counted, COUNTERS[THERMAL]))
    power = np.where(known, (bits & (SW_POWER_CAP | POWER_BRAKE) > 0) | alone, _any(counted, COUNTERS[POWER_CAP]))
    return _Rows(
        t_s=t_s,
        weight_s=series.sample_weight_s,
        clock_mhz=_column(frame, "sm_clock_mhz"),
        power_w=_column(frame, "power_w"),
        util_pct=util_pct,
        work=awake & (util_pct >= LOW_PCT),
        awake=awake,
        hot=hot,
        reported=known | np.isfinite(np.array(list(counted.values()))).any(axis=0),
        # beside heat, a word of the power cap says nothing: a loaded card gives it all the time
        says={POWER_CAP: power & ~heat, THERMAL: heat},
        hard=np.where(known, bits & (HW_SLOWDOWN | HW_THERMAL | POWER_BRAKE) > 0, _any(counted, HARD_COUNTERS)),
        brake=np.where(known, bits & POWER_BRAKE > 0, _any(counted, ("power_brake_s",))),
        applied=bits & APPLICATION_CLOCKS > 0,
    )


def _typical_mhz(rows: _Rows, gpu: Gpu) -> float | None:
    """Return the clock of work of which the driver says nothing, where there was enough; else the card's highest."""
    free = rows.work & rows.reported & ~rows.says[POWER_CAP] & ~rows.says[THERMAL] & ~rows.hot
    free &= rows.clock_mhz > 0
    if rows.seconds(free) >= th.THROTTLED_AT_LEAST_S:
        return median_of(rows.clock_mhz[free])
    return gpu.max_sm_clock_mhz or None


def _alike(rows: _Rows, steps: Bools, throttled: Bools, typical_mhz: float, *, any_load: bool) -> bool:
    """Tell whether enough of the work at full clock drew as much power as the work that was held down.

    Of steps of training alone: for a moment a validation may draw as much, and is other work.
    """
    full = rows.work & ~rows.hot & (rows.clock_mhz > (1 - th.CLOCK_DOWN_SHARE) * typical_mhz)
    if not any_load:
        power = rows.power_w[throttled]
        known = power[np.isfinite(power)]
        if not len(known):
            return False
        full &= steps & (rows.power_w >= th.SAME_LOAD_SHARE * median_of(known))
    return rows.seconds(full) >= th.THROTTLED_AT_LEAST_S and int(full.sum()) >= th.ALIKE_READINGS


def _spans(rows: _Rows, throttled: Bools, tick_s: float) -> tuple[Span, ...]:
    """Return the stretches that are long enough, longest first: as one where they are most of the work in between.

    Where none is long, all of them together as one, if they are enough of all work.
    """
    least_s = th.THROTTLED_AT_LEAST_S - READING_SLACK * tick_s
    if rows.seconds(throttled) <= 0:
        return ()
    firsts, ends = _stretches(rows, throttled)
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


def _stretches(rows: _Rows, throttled: Bools) -> tuple[Indices, Indices]:
    """Return the first of each run of marked rows and the row after its last.

    Runs are joined across less than THROTTLED_JOIN_S of other work, but across no gap in the rows and no rest.
    """
    at, ends_s = np.flatnonzero(throttled), rows.t_s + rows.weight_s
    if not len(at):
        return at, at
    other_s = np.cumsum(np.where(rows.work & ~throttled, rows.weight_s, 0.0))
    unseen = np.append(rows.t_s[1:] - ends_s[:-1] > 1e-6, False)
    breaks = np.cumsum(unseen) - unseen + np.cumsum(~rows.awake)
    apart = (np.diff(other_s[at]) >= th.THROTTLED_JOIN_S) | (np.diff(breaks[at]) > 0)
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
