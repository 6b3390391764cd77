"""The peaks of a training's memory in order of time: one an epoch, or one every few seconds."""

from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.signals.gpu_memory import GpuMemory
from gpu_report.analyse.timeline.training_epochs import TrainingEpochs, rows_of
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import Indices, mask_of_ranges


@dataclass(frozen=True, eq=False)
class Points:
    """Peaks of memory in MiB, and from when to when each of them was looked for (s)."""

    start_s: Floats
    end_s: Floats
    mib: Floats

    @property
    def steps_mib(self) -> Floats:
        """Return what each point is over the one before it."""
        return np.diff(self.mib)

    def without_step(self, at: int) -> "Points":
        """Return the points as if there had been no step from point `at` to the next."""
        lowered = np.where(np.arange(len(self.mib)) > at, self.steps_mib[at], 0.0)
        return replace(self, mib=self.mib - lowered)


def epoch_points(memory: GpuMemory, epochs: TrainingEpochs) -> Points:
    """Return the peak of each later epoch's training; neighbours are taken together where there are too many."""
    edges = epochs.edges_after_warm_up
    of_spans = _peaks(memory.own_mib, *rows_of(memory.t_s, edges.spans))
    return _thinned(edges.start_s, edges.end_s, np.fmax.reduceat(of_spans, edges.first_span))


def moment_points(memory: GpuMemory, epochs: TrainingEpochs, count: int) -> Points:
    """Return the peak of each of `count` equal stretches of time, in training only, without the first epoch."""
    later = epochs.edges_after_warm_up
    begin, end = float(later.start_s[0]), float(later.end_s[-1])
    edges = np.linspace(begin, end, count + 1)
    rows = memory.between(begin, end)
    t_s = memory.t_s[rows]
    own = np.where(mask_of_ranges(len(t_s), *rows_of(t_s, later.spans)), memory.own_mib[rows], np.nan)
    row_ranges = np.searchsorted(t_s, edges)
    return _thinned(edges[:-1], edges[1:], _peaks(own, row_ranges[:-1], row_ranges[1:]))


def _peaks(values: Floats, first: Indices, last: Indices) -> Floats:
    """Return the highest known value of each stretch [first, last) of rows, NaN where there is none."""
    edges = np.column_stack([first, np.maximum(last, first)]).ravel()
    peaks = np.fmax.reduceat(np.append(values, np.nan), edges)[::2]
    return np.where(last > first, peaks, np.nan)


def _thinned(start_s: Floats, end_s: Floats, mib: Floats) -> Points:
    """Return the points that are known, as the medians of neighbours where there are more than are looked at."""
    known = np.isfinite(mib)
    start_s, end_s, mib = start_s[known], end_s[known], mib[known]
    groups = np.array_split(np.arange(len(mib)), min(len(mib), th.GROWTH_POINTS_AT_MOST)) if len(mib) else []
    return Points(
        np.array([start_s[group[0]] for group in groups]),
        np.array([end_s[group[-1]] for group in groups]),
        np.array([np.median(mib[group]) for group in groups]),
    )
