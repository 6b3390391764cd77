"""Whether the memory of a training grows: what tells a leak from a step, and from an allocator that settles."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory, MemoryPeaks, epoch_peaks, moment_peaks
from gpu_report.analyse.timeline.training_epochs import TrainingEpochs
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.growth_fit import GrowthFit, fit_growth, theil_sen

# What tells a leak from an allocator whose reserve follows the batch that needed most so far (docs/memory.md has how
# well, by simulation). A leak takes many steps of about one size, at most points that are looked at, and goes on as it
# began; an allocator takes few, of any size, seldom, and ever fewer.
GROWTH_STEPS = 3.0  # the number of steps, were they of one size: (sum of steps)^2 / sum of (steps^2)
GROWTH_RISING_SHARE = 0.6  # of the points within it rise by ...
GROWTH_RISING_OF_MEAN = 0.25  # ... this much of the mean step, or more
GROWTH_SECOND_HALF = 0.35  # of all growth comes in its second half: 0.5 when even, 0.38 to 0.51 in the labelled runs
GROWTH_FIT = 0.9  # of the variance of all points is explained by two levels and a line: 0.98 in the labelled runs
GROWTH_EDGE_SHARE = 0.02  # it has begun when this much of it is there, and ended when no more than this is to come
GROWTH_POINTS = 5  # fewer tell no line from a step; with fewer epochs, memory is looked at every few seconds instead
GROWTH_BIN_S = 5.0  # ... this long or longer: a step that takes 2 to 3 s (the first validation) is one of them or two
GROWTH_PAUSE_SHARE = 0.25  # it came to an end where nothing more came for longer than this of its length
MOSAIC_STANDS_OUT = 3.0  # the step at which the mosaic closes is no growth where it is so much larger than any other
MOSAIC_STAYS_SHARE = 0.7  # ... and so much of it stays


@dataclass(frozen=True)
class MemoryGrowth:
    """Memory that grows, from `start_s` to `end_s` and from `before_mib` to `after_mib` (peaks in training).

    `rate_mib_s` is the median slope (Theil-Sen). `goes_on` says that it had not come to an end when the training had.
    `free_mib` is what was then left of the card, None where its size is not known.
    """

    start_s: float
    end_s: float
    before_mib: float
    after_mib: float
    rate_mib_s: float
    goes_on: bool
    free_mib: float | None

    @property
    def seconds_left(self) -> float | None:
        """Return how long after its end the card would be full; None where it had stopped, or the card is unknown."""
        return self.free_mib / self.rate_mib_s if self.goes_on and self.free_mib is not None else None


@dataclass(frozen=True)
class MemoryStep:
    """Memory that stepped up once, and stayed: when, and by how much."""

    t_s: float
    mib: float


def find_growth(memory: GpuMemory, epochs: TrainingEpochs, closes_s: float | None) -> MemoryGrowth | None:
    """Return the growth in a training: over the peaks of its epochs, else over those of every few seconds.

    `closes_s` is when the epoch began for which the mosaic was closed: a step there is none of it.
    """
    for points in _looks(memory, epochs):
        if (fit := _growth_fit(points, closes_s)) is not None:
            return _growth(memory, epochs, points, fit)
    return None


def mosaic_step(memory: GpuMemory, epochs: TrainingEpochs, closes_s: float) -> MemoryStep | None:
    """Return by how much memory stepped up in the epoch in which the mosaic closed; None where it did not stay."""
    points = epoch_peaks(memory, epochs)
    at = _stands_out(points, closes_s)
    return None if at is None else MemoryStep(float(points.start_s[at + 1]), float(points.steps_mib[at]))


def _looks(memory: GpuMemory, epochs: TrainingEpochs) -> Iterator[MemoryPeaks]:
    """Yield the peaks of epochs and those of every few seconds; with too few epochs those of ever longer stretches.

    Memory that is taken every minute grows at one of twelve points that are 5 s apart, but at every one of a minute.
    """
    enough_epochs = len(epochs.after_warm_up) >= GROWTH_POINTS
    if enough_epochs:
        yield epoch_peaks(memory, epochs)
    length_s = epochs.end_s - epochs.after_warm_up[0].start_s
    points = int(min(length_s // GROWTH_BIN_S, th.GROWTH_POINTS_AT_MOST))
    while points >= GROWTH_POINTS:
        yield moment_peaks(memory, epochs, points)
        points = 0 if enough_epochs else points // 2


def _growth_fit(points: MemoryPeaks, closes_s: float | None) -> GrowthFit | None:
    """Return the rise of a series of peaks if it is growth: no step, and no allocator that settles."""
    if len(points.mib) <= GROWTH_STEPS or float(np.ptp(points.mib)) < _least_rise_mib(float(points.mib.min())):
        return None
    at = _stands_out(points, closes_s)
    flat = points if at is None else points.without_step(at)
    fit = fit_growth(flat.start_s, flat.mib)
    if fit is None or fit.fit < GROWTH_FIT:
        return None
    rise = float(flat.mib[fit.last] - flat.mib[fit.first])
    large = rise >= _least_rise_mib(float(flat.mib[fit.first]))
    return fit if large and _many_steps(flat.steps_mib[fit.first : fit.last]) and _goes_on(flat, fit) else None


def _least_rise_mib(before_mib: float) -> float:
    """Return how much memory must rise above a level to count."""
    return max(th.GROWTH_AT_LEAST_MIB, th.GROWTH_SHARE * before_mib)


def _many_steps(steps_mib: Floats) -> bool:
    """Tell whether memory rose in many steps of about one size, at most points, and not in a few."""
    rises = steps_mib >= GROWTH_RISING_OF_MEAN * steps_mib.mean()
    alike = float(steps_mib.sum() ** 2 / (steps_mib**2).sum())
    return alike >= GROWTH_STEPS and float(rises.mean()) >= GROWTH_RISING_SHARE


def _goes_on(points: MemoryPeaks, fit: GrowthFit) -> bool:
    """Tell whether memory grew on as it had begun: an allocator's grows ever more slowly."""
    first, last = float(points.mib[fit.first]), float(points.mib[fit.last])
    middle_s = (points.start_s[fit.first] + points.start_s[fit.last]) / 2
    return last - float(np.interp(middle_s, points.start_s, points.mib)) >= GROWTH_SECOND_HALF * (last - first)


def _stands_out(points: MemoryPeaks, closes_s: float | None) -> int | None:
    """Return the point after which memory steps up because the mosaic closes, None where it does not."""
    at = int(np.searchsorted(points.start_s, closes_s)) - 1 if closes_s is not None else -1
    if not 0 <= at < len(points.mib) - 1:
        return None
    step = float(points.steps_mib[at])
    typical = float(np.delete(points.steps_mib, at).max(initial=0.0))
    large = step >= _least_rise_mib(float(points.mib[at])) and step >= MOSAIC_STANDS_OUT * typical
    stays = float(np.median(points.mib[at + 1 :]) - points.mib[at]) >= MOSAIC_STAYS_SHARE * step
    return at if large and stays else None


def _growth(memory: GpuMemory, epochs: TrainingEpochs, points: MemoryPeaks, fit: GrowthFit) -> MemoryGrowth:
    rising = slice(fit.first, fit.last + 1)
    start_s, end_s = _edges(memory, epochs, points, fit)
    pause = len(points.mib) - 1 - fit.last
    return MemoryGrowth(
        start_s=start_s,
        end_s=end_s,
        before_mib=float(points.mib[fit.first]),
        after_mib=float(points.mib[fit.last]),
        rate_mib_s=theil_sen(points.start_s[rising], points.mib[rising]),
        goes_on=pause <= max(1.0, GROWTH_PAUSE_SHARE * (fit.last - fit.first)),
        free_mib=_free_mib(memory, start_s, end_s),
    )


def _edges(memory: GpuMemory, epochs: TrainingEpochs, points: MemoryPeaks, fit: GrowthFit) -> tuple[float, float]:
    """Return when memory in training first left the level before, and when it had all but reached its highest.

    Growth that is there from the first point on may have begun within it: there the level before is that of its
    first row.
    """
    slack = max(th.STEP_MIB, GROWTH_EDGE_SHARE * float(points.mib[fit.last] - points.mib[fit.first]))
    from_s, to_s = float(points.start_s[fit.first]), float(points.end_s[fit.last])
    rows = memory.between(from_s, to_s)
    known = epochs.covers(memory.t_s[rows]) & np.isfinite(memory.own_mib[rows])
    t_s, own = memory.t_s[rows][known], memory.own_mib[rows][known]
    level = float(points.mib[fit.first]) if fit.first else float(own[0])
    above = np.flatnonzero(own > level + slack)
    if not len(above):
        return from_s, to_s
    there = np.flatnonzero(own >= own.max() - slack)
    return float(t_s[above[0]]), float(t_s[max(there[0], above[0])])


def _free_mib(memory: GpuMemory, start_s: float, end_s: float) -> float | None:
    used = memory.used_mib[memory.between(start_s, end_s)]
    if memory.capacity_mib is None or not np.isfinite(used).any():
        return None
    return max(memory.capacity_mib - float(np.nanmax(used)), 0.0)
