"""The peaks of a training's memory in order of time: one an epoch, or one every few seconds."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.memory import GpuMemory
from gpu_report.analyse.track import Floats
from gpu_report.analyse.training_parts import Part, Training


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


def epoch_points(memory: GpuMemory, parts: Sequence[Part]) -> Points:
    """Return the peak of each epoch's training; neighbours are taken together where there are too many."""
    rows = [[memory.between(*span) for span in part.spans] for part in parts]
    peaks = [max((_peak(memory.own_mib[row]) for row in mine), key=np.nan_to_num) for mine in rows]
    starts, ends = [part.start_s for part in parts], [part.end_s for part in parts]
    return _thinned(np.array(starts), np.array(ends), np.array(peaks))


def moment_points(memory: GpuMemory, parts: Sequence[Part], count: int) -> Points:
    """Return the peak of each of `count` equal stretches of time, in training only."""
    begin, end = parts[0].start_s, parts[-1].end_s
    edges = np.linspace(begin, end, count + 1)
    rows = memory.between(begin, end)
    t_s = memory.t_s[rows]
    own = np.where(Training(tuple(parts)).covers(t_s), memory.own_mib[rows], np.nan)
    peaks = [_peak(own[first:last]) for first, last in itertools.pairwise(np.searchsorted(t_s, edges))]
    return _thinned(edges[:-1], edges[1:], np.array(peaks))


def _peak(values: Floats) -> float:
    return float(np.nanmax(values)) if np.isfinite(values).any() else float("nan")


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
