"""For how long GPUs were idle at each line of code, in each epoch of a run's steady state.

An epoch is the unit, with its validation and checkpoint: runs that are compared train as many images in it. Where
epochs are too few it is a window of their training, scaled to a whole epoch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.compare import thresholds as th
from gpu_report.analyse.compare.fingerprint import fingerprint
from gpu_report.analyse.compare.significance import Basis, SampleValues
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks, idle_stacks
from gpu_report.analyse.signals.code.stack_kinds import MAIN, WORKERS
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.model import WELL_COVERED

# Of a process, and of a run, those that took most time: one that took a thousandth of it is among them. A file may hold
# 50,000, of which each has a number an epoch.
MOST_LINES = 600
Places = npt.NDArray[np.int64]


class LineKey(NamedTuple):
    """A line of code of main processes (`main`, all ranks together) or of loaders' workers (`workers`).

    In one that `waits` a main process waits for its loader: the same line is another one while it does not.
    """

    process: str
    file: str
    function: str
    line: int
    waits: bool


@dataclass(frozen=True, eq=False)
class LineTime:
    """A line, and for each run an array with a value an epoch, in GPU seconds: how long GPUs were idle meanwhile.

    `spent_s` is how long processes were in it, idle or not, times the GPUs that they feed.
    """

    key: LineKey
    idle_s: tuple[Floats, ...]
    spent_s: tuple[Floats, ...]

    @property
    def mean_s(self) -> float:
        """Return the idle GPU seconds of an epoch: of several runs the median of their means."""
        return _median_of_means(self.idle_s)

    @property
    def mean_spent_s(self) -> float:
        """Return all GPU seconds of an epoch in the same way."""
        return _median_of_means(self.spent_s)

    @property
    def was_there(self) -> bool:
        """Tell whether a process was ever seen in it."""
        return any(values.any() for values in self.spent_s)


def _median_of_means(runs: Sequence[Floats]) -> float:
    return float(np.median([values.mean() for values in runs]))


@dataclass(frozen=True, eq=False)
class RunLines:
    """All lines of some runs. `counts` has the epochs of each, `epoch_gpu_s` their mean length times the GPUs used.

    `ultralytics` is its version in all of them, None where that is unknown or not one.
    """

    lines: tuple[LineTime, ...]
    counts: tuple[int, ...]
    epoch_gpu_s: float
    ultralytics: str | None

    def absent(self, key: LineKey) -> LineTime:
        """Return a line in which none of these runs ever was."""
        zeros = tuple(map(np.zeros, self.counts))
        return LineTime(key, zeros, zeros)


class _PieceParts(NamedTuple):
    """Parts of a process's pieces: of which piece each is, in which unit it is, and its share of the piece (0 to 1)."""

    piece: Places
    unit: Places
    share: Floats


@dataclass(frozen=True, eq=False)
class _Units:
    """Stretches of a run in order, and how many of each make an epoch."""

    start_s: Floats
    end_s: Floats
    an_epoch: Floats

    @property
    def length_s(self) -> Floats:
        return self.end_s - self.start_s

    def parts_of(self, process: IdleStacks) -> _PieceParts:
        """Return a process's pieces cut at the edges of these units."""
        first = np.searchsorted(self.end_s, process.start_s, side="right")
        after = np.searchsorted(self.start_s, process.end_s, side="left")
        count = np.maximum(after - first, 0)
        piece = np.repeat(np.arange(len(count)), count)
        unit = np.arange(len(piece)) - np.repeat(np.cumsum(count) - count, count) + first[piece]
        start, end = process.start_s[piece], process.end_s[piece]
        inside_s = np.maximum(np.minimum(end, self.end_s[unit]) - np.maximum(start, self.start_s[unit]), 0.0)
        share = np.divide(inside_s, end - start, out=np.zeros_like(inside_s), where=end > start)
        return _PieceParts(piece, unit, share)

    def of(self, which: Bools) -> _Units:
        return _Units(self.start_s[which], self.end_s[which], self.an_epoch[which])


@dataclass(frozen=True, eq=False)
class NotedRun:
    """A run in which lines were noted: its processes, and all the epochs and windows that notes cover.

    `images` are those of an epoch, None where that is unknown.
    """

    stacks: tuple[IdleStacks, ...]
    epochs: _Units
    windows: _Units
    gpus: int
    ultralytics: str | None
    images: int | None

    def has(self, basis: Basis) -> bool:
        """Tell whether there are enough epochs or windows to compare."""
        return len(self._units(basis).start_s) >= th.COMPARED_AT_LEAST

    def lines(self, basis: Basis) -> RunLines:
        """Return the idle GPU seconds of each line in each epoch, or in each window scaled to an epoch."""
        units = self._units(basis)
        sums: dict[LineKey, _GpuSeconds] = {}
        for process in self.stacks:
            for key, seconds in _of_process(process, units):
                sums[key] = seconds.plus(sums[key]) if key in sums else seconds
        found = [each.as_line(key, units.an_epoch) for key, each in sums.items() if each.spent_s.any()]
        longest = sorted(found, key=lambda line: -float(line.spent_s[0].sum()))[:MOST_LINES]
        epoch_s = float((units.length_s * units.an_epoch).mean()) if len(units.start_s) else 0.0
        return RunLines(tuple(longest), (len(units.start_s),), epoch_s * self.gpus, self.ultralytics)

    def _units(self, basis: Basis) -> _Units:
        return self.epochs if basis == "epochs" else self.windows


def noted_run(side: SampleValues) -> NotedRun | None:
    """Return a run with what its processes did in the steady state, None where no line was noted of it."""
    used = [series for series, _ in side.training.gpus]
    found = idle_stacks(side.training.analysis.run, used) if side.training.analysis.run.stacks else ()
    if not any(each.gpus for each in found):
        return None
    gpus = frozenset(series.gpu for series in used)
    epochs = _units([(epoch.start_t_s, epoch.end_t_s, 1) for epoch in side.typical_epochs()])
    windows = _units(side.typical_windows())
    return NotedRun(
        stacks=found,
        epochs=_noted(epochs, found, gpus),
        windows=_noted(windows, found, gpus),
        gpus=len(gpus),
        ultralytics=side.training.analysis.run.recording.ultralytics,
        images=fingerprint(side.training).images,
    )


def _units(spans: Sequence[tuple[float, float, int]]) -> _Units:
    start, end, count = np.array(spans, dtype=float).reshape(-1, 3).T
    return _Units(start, end, count)


def _noted(units: _Units, stacks: Sequence[IdleStacks], gpus: frozenset[int]) -> _Units:
    """Return the units in which the main process of every GPU was noted: what is missing is not idle for 0 s."""
    noted = np.zeros((len(units.start_s), max(gpus, default=0) + 1), dtype=bool)
    for process in stacks:
        if not process.process.is_worker:
            parts = units.parts_of(process)
            seconds = np.bincount(parts.unit, process.seconds(parts.piece) * parts.share, minlength=len(units.start_s))
            noted[:, list(process.gpus)] |= (seconds >= WELL_COVERED * units.length_s)[:, None]
    return units.of(np.logical_and.reduce(noted[:, sorted(gpus)], axis=1))


class _GpuSeconds(NamedTuple):
    """GPU seconds of one line in each unit: those that GPUs were idle, and all."""

    idle_s: Floats
    spent_s: Floats

    def plus(self, other: _GpuSeconds) -> _GpuSeconds:
        return _GpuSeconds(self.idle_s + other.idle_s, self.spent_s + other.spent_s)

    def as_line(self, key: LineKey, an_epoch: Floats) -> LineTime:
        return LineTime(key, (self.idle_s * an_epoch,), (self.spent_s * an_epoch,))


def _of_process(process: IdleStacks, units: _Units) -> Iterator[tuple[LineKey, _GpuSeconds]]:
    """Yield the lines that a process was in, with its time in each unit; of a worker only while it was at work."""
    lines, line_of = process.lines
    is_worker, seconds = process.process.is_worker, process.seconds()
    place = 2 * line_of[:] + (process.waits & (not is_worker))
    totals = np.bincount(place, seconds, minlength=2 * len(lines))
    kept = np.argsort(-totals, kind="stable")[:MOST_LINES]
    spent = seconds * max(len(process.gpus), 1)
    idle_s, spent_s = (_by_place(process, units, weights, place, kept) for weights in (process.idle_s, spent))
    for column, number in enumerate(kept.tolist()):
        line, waits = lines[number // 2], bool(number % 2)
        if line is not None and totals[number] > 0:
            key = LineKey(WORKERS if is_worker else MAIN, line.file, line.function, line.line, waits)
            yield key, _GpuSeconds(idle_s[:, column], spent_s[:, column])


def _by_place(process: IdleStacks, units: _Units, weights: Floats, place: Places, kept: Places) -> Floats:
    """Return the sums of a weight of each piece: a row a unit, a column each of the places that are kept."""
    column = np.full(max(int(place.max(initial=0)), int(kept.max(initial=0))) + 1, -1)
    column[kept] = np.arange(len(kept))
    parts, shape = units.parts_of(process), (len(units.start_s), len(kept))
    of_part = column[place[parts.piece]]
    mine = of_part >= 0
    cell, weight = parts.unit * shape[1] + of_part, weights[parts.piece] * parts.share
    return np.bincount(cell[mine], weight[mine], minlength=shape[0] * shape[1]).astype(np.float64).reshape(shape)
