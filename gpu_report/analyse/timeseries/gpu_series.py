"""One GPU's readings as arrays, each with the time it stands for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.analyse.timeseries import thresholds as th
from gpu_report.analyse.timeseries.intervals import (
    Indices,
    Span,
    Spans,
    length_s,
    mask_of_ranges,
    parts,
    row_ranges,
    union,
)
from gpu_report.analyse.timeseries.steps import ReadingSeconds, Seconds, as_steps
from gpu_report.local_interval import local_intervals_s
from gpu_report.median import enough_of, median_of
from gpu_report.model import Gap, Run
from gpu_report.ticks_alone import ticks_alone

# A reading stands for the time to the next one, at most this many intervals (and at least HOLD_AT_LEAST_S): a
# tick may be late without anything being lost.
HOLD_INTERVALS = 2.5
HOLD_AT_LEAST_S = 1.0
UNSEEN_S = 1e-6  # more than rounding leaves between the end of a reading's time and the next

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Percents = npt.NDArray[np.floating[Any]]  # float32 where that is exact


@dataclass(frozen=True)
class Ticks:
    """How far ticks are apart: as it was asked for (`is_known`), else by what is ordinary in an imported log (s)."""

    interval_s: float
    is_known: bool

    def around(self, t_s: Floats) -> Floats:
        """Return the interval that holds around each reading (at least one), which a log may change."""
        if self.is_known or len(t_s) < 2:
            return np.broadcast_to(self.interval_s, len(t_s))  # takes no room
        steps = local_intervals_s(t_s, self.interval_s)
        return np.append(steps, steps[-1])


@dataclass(frozen=True, eq=False)
class GpuSeries:
    """The finest readings of one GPU's utilisation: time, utilisation in %, and seconds each stands for.

    Times and utilisation are the run's own arrays where nothing had to be changed: half of what a day's take.

    `interval_s` is their typical distance: the driver's own 0.2 s where its readings were drained, else that of ticks,
    `tick_s`. `samples` are the GPU's rows of the samples table, `sample_weight_s` the seconds each of those stands for.
    """

    gpu: int
    t_s: Floats
    util_pct: Percents
    weight_s: Seconds
    interval_s: float
    tick_s: float
    samples: pd.DataFrame
    sample_weight_s: Floats

    def ends_of(self, rows: Indices | slice) -> Floats:
        """Return the ends of the time that some readings stand for: worked out anew, which is less than to keep all."""
        ends: Floats = self.t_s[rows] + self.weight_s[rows]
        return ends

    def end_of(self, row: int) -> float:
        """Return the end of the time that one reading stands for."""
        return float(self.t_s[row] + self.weight_s[row])

    @property
    def after_gap(self) -> Bools:
        """Return which readings the one before does not last to; nothing is before the first."""
        return _after_gap(self.t_s, self.weight_s)

    def is_after_gap(self, row: int) -> bool:
        """Tell whether the reading before does not last to one (see `after_gap`)."""
        return row == 0 or float(self.t_s[row]) - self.end_of(row - 1) > UNSEEN_S

    def between(self, start_t_s: float, end_t_s: float) -> slice:
        """Return the readings taken in [start, end)."""
        first, last = np.searchsorted(self.t_s, [start_t_s, end_t_s])
        return slice(int(first), int(last))

    def between_rows(self, start_t_s: float, end_t_s: float) -> slice:
        """Return the rows of the samples table taken in [start, end)."""
        first, last = np.searchsorted(self.samples["t_s"].to_numpy(dtype=float), [start_t_s, end_t_s])
        return slice(int(first), int(last))

    def mean_util_pct(self, start_t_s: float, end_t_s: float) -> float:
        """Return mean utilisation over the measured part of [start, end), NaN where there is none."""
        rows = self.between(start_t_s, end_t_s)
        busy = seconds = 0.0
        for part in parts(rows.stop - rows.start):
            mine = slice(rows.start + part.start, rows.start + part.stop)
            weight_s = self.weight_s[mine]
            seconds += float(weight_s.sum())
            busy += float((self.util_pct[mine] * weight_s).sum())
        return busy / seconds if seconds else float("nan")

    def mean_util_of_each(self, spans: Spans) -> Floats:
        """Return mean utilisation over the measured part of each of many spans (see `mean_util_pct`)."""
        first, last = row_ranges(self.t_s, spans)
        begin, end = int(first.min(initial=len(self.t_s))), int(last.max(initial=0))
        if begin >= end:
            return np.full(len(first), np.nan)
        edges = np.column_stack([first, last]).ravel() - begin
        seconds = self.weight_s[begin:end]
        weights, products = (np.append(values, 0.0) for values in (seconds, self.util_pct[begin:end] * seconds))
        some = last > first
        weight, total = (np.where(some, np.add.reduceat(values, edges)[::2], 0.0) for values in (weights, products))
        means: Floats = np.divide(total, weight, out=np.full(len(first), np.nan), where=weight > 0)
        return means

    def mean_util_in(self, spans: Spans) -> tuple[float, float]:
        """Return mean utilisation (%) over the readings taken in any of the spans, and the seconds they stand for."""
        first, last = row_ranges(self.t_s, spans)
        begin, end = int(first.min(initial=len(self.t_s))), int(last.max(initial=0))
        return self.mean_util_of(mask_of_ranges(max(end - begin, 0), first - begin, last - begin), begin)

    def mean_util_of(self, rows: Bools, begin: int = 0) -> tuple[float, float]:
        """Return mean utilisation (%) over some readings and the seconds they stand for; NaN and 0 of none.

        `rows` tells it of each reading from `begin` on.
        """
        busy = seconds = 0.0
        for part in parts(len(rows)):
            some, mine = rows[part], slice(begin + part.start, begin + part.stop)
            weight_s = self.weight_s[mine][some]
            seconds += float(weight_s.sum())
            busy += float(np.multiply(self.util_pct[mine][some], weight_s, out=weight_s).sum())
        return (busy / seconds, seconds) if seconds > 0 else (float("nan"), 0.0)


def in_blocks(series: GpuSeries, seconds: float, *masks: Bools) -> tuple[GpuSeries, list[Bools]]:
    """Return the series in blocks of about so many seconds, each the mean of its readings, and masks that hold in all.

    A block ends where readings are missing, or where one of the masks changes.
    """
    if series.interval_s >= seconds or not len(series.t_s):
        return series, list(masks)
    number, changes = np.floor(series.t_s / seconds), series.after_gap  # ten times as fast as `//`
    for each in (number, *masks):
        changes[1:] |= each[1:] != each[:-1]
    del number  # a month has 13 million
    begins, each_s = np.flatnonzero(changes), series.weight_s[:]
    weight_s, busy_s = (np.add.reduceat(values, begins) for values in (each_s, series.util_pct * each_s))
    util_pct = np.divide(busy_s, weight_s, out=series.util_pct[begins].astype(float), where=weight_s > 0)
    blocks = replace(series, t_s=series.t_s[begins], util_pct=util_pct, weight_s=weight_s, interval_s=seconds)
    return blocks, [mask[begins] for mask in masks]


def running_total(seconds: Floats, some: Bools | None = None) -> Floats:
    """Return the seconds of all readings, or of `some`, before each reading, and those of all."""
    total = np.zeros(len(seconds) + 1)
    np.multiply(seconds, True if some is None else some, out=total[1:])
    return np.cumsum(total, out=total)


def is_well_sampled(sampled_s: Floats | float, length_s: Floats | float, slack_s: float = 0.0) -> Bools:
    """Tell of which spans, so many seconds long, so much was sampled (MEASURED_SHARE) that a figure is of all of it.

    A reading before a span may stand for its beginning: `slack_s` is how long one stands.
    """
    sampled = np.asarray(sampled_s)
    return (sampled > 0) & (sampled + slack_s >= th.MEASURED_SHARE * np.asarray(length_s))


def gpu_series(run: Run) -> tuple[GpuSeries, ...]:
    """Return a series for each GPU of the run that has rows, by index."""
    return tuple(series_of_gpu(run, gpu) for gpu in run.sampled_gpus)


def series_of_gpu(run: Run, gpu: int) -> GpuSeries:
    """Return the series of a GPU that has rows."""
    ticks = Ticks(run.recording.interval_s or 1.0, is_known=run.recording.is_ours)
    return _series(gpu, run.samples_of(gpu), run.ring_of(gpu), ticks, run.duration_s)


def gaps(series: GpuSeries, duration_s: float) -> tuple[Gap, ...]:
    """Return the stretches in which this GPU was not sampled, or its utilisation not measured."""
    if not len(series.t_s):
        return (Gap(series.gpu, 0.0, duration_s, "no reading of utilisation"),)
    unknown = _between(series.t_s, series.weight_s, series.tick_s, duration_s)
    missing = union([*unknown, *_without_rows(series, duration_s)])
    return tuple(Gap(series.gpu, start, end, _why(series, start, end)) for start, end in missing)


def measured_s(series: GpuSeries, duration_s: float) -> float:
    """Return for how many seconds this GPU was sampled and its utilisation measured.

    The driver's own readings of utilisation go on where samples.csv was cut: those are no samples. Of a GPU that
    reports none at all, as a MIG device before Hopper, the other readings count.
    """
    seconds = float(series.weight_s.sum())
    without = _without_rows(series, duration_s)
    if not len(series.t_s):
        return duration_s - length_s(without)
    if not without or not seconds:
        return seconds
    so_far = running_total(series.weight_s[:])
    edges = np.column_stack([series.t_s, series.ends_of(slice(None))]).ravel()
    known = np.column_stack([so_far[:-1], so_far[1:]]).ravel()
    starts, ends = np.array(without).T
    return seconds - float((np.interp(ends, edges, known) - np.interp(starts, edges, known)).sum())


def unsampled_s(series: GpuSeries, duration_s: float) -> float:
    """Return for how many seconds no tick sampled this GPU, whatever the driver kept of them."""
    return length_s(_without_rows(series, duration_s))


def _without_rows(series: GpuSeries, duration_s: float) -> list[Span]:
    """Return the stretches in which no tick sampled this GPU."""
    times = series.samples["t_s"].to_numpy(dtype=float)
    return _between(times, series.sample_weight_s, series.tick_s, duration_s)


def _between(t_s: Floats, weight_s: Seconds, tick_s: float, duration_s: float) -> list[Span]:
    """Return what readings leave out: at both ends from the longest hold on, in which none is missing yet."""
    if not len(t_s):
        return [(0.0, duration_s)] if duration_s > longest_hold(tick_s) else []
    # between two readings the hold is already counted, so that any rest at all is a gap
    after = np.flatnonzero(_after_gap(t_s, weight_s)[1:]) + 1
    within = list(zip((t_s[after - 1] + weight_s[after - 1]).tolist(), t_s[after].tolist(), strict=True))
    outside = (0.0, float(t_s[0])), (float(t_s[-1] + weight_s[-1]), duration_s)
    first, last = ([span] if span[1] - span[0] > longest_hold(tick_s) else [] for span in outside)
    return [*first, *within, *last]


def _after_gap(t_s: Floats, weight_s: Seconds) -> Bools:
    """Return which readings the one before does not last to; nothing is before the first."""
    found = np.zeros(len(t_s), dtype=bool)
    found[:1] = True
    if isinstance(weight_s, ReadingSeconds):
        rows = weight_s.others[:-1]
        found[rows + 1] = t_s[rows + 1] - (t_s[rows] + weight_s[rows]) > UNSEEN_S
        return found
    for part in parts(len(t_s) - 1):
        following = slice(part.start + 1, part.stop + 1)
        found[following] = t_s[following] - (t_s[part] + weight_s[part]) > UNSEEN_S
    return found


def longest_hold(tick_s: float | Floats) -> Floats:
    """Return the most seconds that one reading may stand for."""
    longest: Floats = np.maximum(HOLD_INTERVALS * np.asarray(tick_s), HOLD_AT_LEAST_S)
    return longest


def _why(series: GpuSeries, start: float, end: float) -> str:
    first, last = np.searchsorted(series.samples["t_s"].to_numpy(), [start, end])
    return "readings failed" if last > first else "no rows"


def _series(gpu: int, rows: pd.DataFrame, ring: pd.DataFrame, ticks: Ticks, duration_s: float) -> GpuSeries:
    tick_s = ticks.interval_s
    t, util = _finest(rows, ring, tick_s)
    steps = enough_of(t[1:]) - enough_of(t[:-1])
    interval_s = (min(median_of(steps), tick_s) if len(steps) else 0.0) or tick_s
    return GpuSeries(
        gpu=gpu,
        t_s=t,
        util_pct=util,
        weight_s=as_steps(t, _holds(t, interval_s, ticks, duration_s)),
        interval_s=interval_s,
        tick_s=tick_s,
        samples=rows,
        sample_weight_s=_holds(rows["t_s"].to_numpy(dtype=float), tick_s, ticks, duration_s),
    )


def _finest(rows: pd.DataFrame, ring: pd.DataFrame, tick_s: float) -> tuple[Floats, Percents]:
    """Return times and utilisation: the driver's own readings, and those of ticks where it kept none."""
    t, util = _known(rows)
    ring_t, ring_util = _known(ring)
    if len(ring_t) < 2:
        return t, util
    alone = ticks_alone(t, ring_t, tick_s)
    if not alone.any():
        return ring_t, ring_util
    both_t, both_util = np.concatenate([ring_t, t[alone]]), np.concatenate([ring_util, util[alone]])
    order = np.argsort(both_t, kind="stable")
    return both_t[order], both_util[order]


def _known(frame: pd.DataFrame) -> tuple[Floats, Percents]:
    t_s, util_pct = frame["t_s"].to_numpy(dtype=float), frame["gpu_util_pct"].to_numpy()
    known = ~np.isnan(util_pct)
    return (t_s, util_pct) if known.all() else (t_s[known], util_pct[known])


def _holds(t: Floats, interval_s: float, ticks: Ticks, duration_s: float) -> Floats:
    """Return how long each reading stands: to the next one; where that is too far or absent, one interval."""
    if not len(t):
        return t
    hold, around = np.append(np.diff(t), np.inf), ticks.around(t)
    for part in parts(len(t)):
        mine, usual = hold[part], around[part]
        np.copyto(mine, np.where(usual > ticks.interval_s, usual, interval_s), where=mine > longest_hold(usual))
        np.minimum(mine, np.maximum(duration_s - t[part], 0.0), out=mine)
    return hold
