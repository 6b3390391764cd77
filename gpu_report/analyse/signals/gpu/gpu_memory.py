"""The memory of one GPU over time: in use, held by others than the training, what it can hold, and its peaks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from statistics import median

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.timeline.activity import OWN
from gpu_report.analyse.timeline.process_samples import ProcessSample, process_samples_of, samples_by_pid
from gpu_report.analyse.timeline.thresholds import PROCESSES_EVERY_S
from gpu_report.analyse.timeline.training_epochs import TrainingEpochs, rows_of
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Indices, Span, mask_in_any, mask_of_ranges
from gpu_report.median import median_of
from gpu_report.model import Run

UNKNOWN = "unknown"


@dataclass(frozen=True, eq=False)
class GpuMemory:
    """Memory of one GPU at its rows, MiB, NaN where it is not known.

    `others_mib` is what other processes than the training's held, at most; None where the processes of this run were
    not recorded, so that nobody knows whose the memory is. `capacity_mib` is what can be had: all but what the driver
    reserves; None where it is not known.
    """

    gpu: int
    t_s: Floats
    used_mib: Floats
    others_mib: Floats | None
    capacity_mib: float | None

    @cached_property
    def own_mib(self) -> Floats:
        """Return what the training held, at least: the driver's share of it included, which does not change.

        The GPU's memory is read each tick, a process's every few seconds and written down when it moved by much: so
        what others held is taken from the GPU's, which is finer than the training's own figures. Where processes were
        not recorded this is all that was in use.
        """
        if self.others_mib is None or not self.others_mib.any():
            return self.used_mib
        return self.used_mib - self.others_mib

    @cached_property
    def peak_share(self) -> float | None:
        """Return which share (0 to 1) of what can be had was in use at most, None where that is not known."""
        peak_mib = float(np.nan_to_num(self.used_mib).max(initial=0.0))
        return peak_mib / self.capacity_mib if peak_mib and self.capacity_mib else None

    def between(self, start_t_s: float, end_t_s: float) -> slice:
        """Return the rows read in [start, end]."""
        first = np.searchsorted(self.t_s, start_t_s)
        return slice(int(first), int(np.searchsorted(self.t_s, end_t_s, side="right")))


def gpu_memory(run: Run, others: Sequence[OtherProcess], series: GpuSeries) -> GpuMemory:
    """Return the memory of a GPU, and what of it others held."""
    used = series.samples["memory_used_mib"].to_numpy(dtype=float)
    reserved = series.samples["memory_reserved_mib"].to_numpy(dtype=float)
    reserved = reserved[np.isfinite(reserved)]
    total = run.gpu(series.gpu).memory_total_mib
    kept = median_of(reserved) if len(reserved) else 0.0
    return GpuMemory(
        gpu=series.gpu,
        t_s=series.samples["t_s"].to_numpy(dtype=float),
        used_mib=used,
        others_mib=_others_mib(run, others, series) if len(run.processes) else None,
        capacity_mib=total - kept if total and total > kept else None,
    )


def _others_mib(run: Run, others: Sequence[OtherProcess], series: GpuSeries) -> Floats:
    """Return what others held at each row: the other processes, and processes that nobody knows whose they are."""
    of_pid = samples_by_pid(process_samples_of(run, series.gpu))
    t_s = series.samples["t_s"].to_numpy(dtype=float)
    stays: dict[int, list[Span]] = defaultdict(list)  # several, if it came back
    for other in others:
        if other.gpu == series.gpu:
            stays[other.pid].append(other.span)
    for pid in _unowned_pids(run, of_pid):
        if pid not in stays:
            stays[pid].append(_stay(of_pid[pid], series.tick_s, run.duration_s))
    held: Floats = np.broadcast_to(0.0, len(t_s))  # takes no room where nobody else was there
    for pid, spans in stays.items():
        held = held + _held(of_pid[pid], t_s, spans, series.tick_s)
    return held


def _unowned_pids(run: Run, of_pid: Mapping[int, Sequence[ProcessSample]]) -> list[int]:
    """Return the processes whose owner never was known, but for the ranks and, with no trainer there, the largest."""
    ranks = {process.pid for process in run.inside}
    nobodys = [pid for pid, looks in sorted(of_pid.items()) if all(look.owner == UNKNOWN for look in looks)]
    pids = [pid for pid in nobodys if pid not in ranks]
    is_owned = any(look.owner == OWN for looks in of_pid.values() for look in looks)
    if is_owned or ranks.intersection(of_pid) or not pids:
        return pids
    largest = max(pids, key=lambda pid: _memory_of(of_pid[pid])[1].max(initial=0.0))
    return [pid for pid in pids if pid != largest]


def _stay(looks: Sequence[ProcessSample], tick_s: float, duration_s: float) -> Span:
    """Return from when to when a process may have been there: it came up to one look before it was seen."""
    gone_s = [look.t_s for look in looks if look.change == "gone"]
    return looks[0].t_s - PROCESSES_EVERY_S - tick_s, gone_s[-1] if gone_s else duration_s


def _held(looks: Sequence[ProcessSample], t_s: Floats, stays: Sequence[Span], tick_s: float) -> Floats:
    """Return what a process held at each moment, at most: of the looks before and after it the larger.

    A row stands for all the time to the next one, but the change itself came up to one look before it was seen. NaN
    while it was there, where the driver does not say how much it held.
    """
    there = mask_in_any(t_s, stays)
    at, mib = _memory_of(looks)
    if not len(at):
        return np.where(there, np.nan, 0.0)
    before = np.clip(np.searchsorted(at, t_s, side="right") - 1, 0, None)
    after = np.clip(np.searchsorted(at, t_s), 0, len(at) - 1)
    near = at[after] - t_s <= PROCESSES_EVERY_S + tick_s
    most = np.where(near, np.maximum(mib[before], mib[after]), mib[before])
    return np.where(there, most, 0.0)


def _memory_of(looks: Sequence[ProcessSample]) -> tuple[Floats, Floats]:
    """Return when a process's memory was known, and how much it was."""
    known = [(look.t_s, look.memory_used_mib) for look in looks if not isnan(look.memory_used_mib)]
    at, mib = np.array(known, dtype=float).reshape(-1, 2).T
    return at, mib


@dataclass(frozen=True, eq=False)
class MemoryPeaks:
    """Peaks of memory in MiB, and from when to when each of them was looked for (s)."""

    start_s: Floats
    end_s: Floats
    mib: Floats

    @property
    def steps_mib(self) -> Floats:
        """Return what each point is over the one before it."""
        return np.diff(self.mib)

    def without_step(self, at: int) -> "MemoryPeaks":
        """Return the points as if there had been no step from point `at` to the next."""
        lowered = np.where(np.arange(len(self.mib)) > at, self.steps_mib[at], 0.0)
        return replace(self, mib=self.mib - lowered)


def epoch_peaks(memory: GpuMemory, epochs: TrainingEpochs) -> MemoryPeaks:
    """Return the peak of each later epoch's training; neighbours are taken together where there are too many."""
    edges = epochs.edges_after_warm_up
    of_spans = _peaks(memory.own_mib, *rows_of(memory.t_s, edges.spans))
    return _thinned(edges.start_s, edges.end_s, np.fmax.reduceat(of_spans, edges.first_span))


def moment_peaks(memory: GpuMemory, epochs: TrainingEpochs, count: int) -> MemoryPeaks:
    """Return the peak of each of `count` equal stretches of time, in training only, without the first epoch."""
    later = epochs.edges_after_warm_up
    begin, end = float(later.start_s[0]), float(later.end_s[-1])
    edges = np.linspace(begin, end, count + 1)
    rows = memory.between(begin, end)
    t_s = memory.t_s[rows]
    own = np.where(mask_of_ranges(len(t_s), *rows_of(t_s, later.spans)), memory.own_mib[rows], np.nan)
    edge_rows = np.searchsorted(t_s, edges)
    return _thinned(edges[:-1], edges[1:], _peaks(own, edge_rows[:-1], edge_rows[1:]))


def _peaks(values: Floats, first: Indices, last: Indices) -> Floats:
    """Return the highest known value of each stretch [first, last) of rows, NaN where there is none."""
    edges = np.column_stack([first, np.maximum(last, first)]).ravel()
    peaks = np.fmax.reduceat(np.append(values, np.nan), edges)[::2]
    return np.where(last > first, peaks, np.nan)


def _thinned(start_s: Floats, end_s: Floats, mib: Floats) -> MemoryPeaks:
    """Return the points that are known, as the medians of neighbours where there are more than are looked at."""
    known = np.isfinite(mib)
    start_s, end_s, mib = start_s[known], end_s[known], mib[known]
    groups = np.array_split(np.arange(len(mib)), min(len(mib), th.GROWTH_POINTS_AT_MOST)) if len(mib) else []
    return MemoryPeaks(
        np.array([start_s[group[0]] for group in groups]),
        np.array([end_s[group[-1]] for group in groups]),
        np.array([median(mib[group].tolist()) for group in groups]),  # of so few numpy's takes ten times as long
    )
