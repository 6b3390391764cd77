"""The ends of epochs: how long the GPU pauses for validation and checkpoint, and which drops that explains."""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

import numpy as np

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeline.siblings import SiblingLength, SiblingLengths
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, mask_in_any, union
from gpu_report.analyse.timeseries.low_stretches import low_stretches
from gpu_report.median import median_of
from gpu_report.model import EpochRow, Phase


@dataclass(frozen=True)
class EpochEnd:
    """The end of an epoch: its row, whether it is the first of its process, and the pause around it (None: none seen).

    The GPU pauses for validation and checkpoint. `from_callbacks` says that these are as YOLO's callbacks reported
    them, and not as the readings show; `fitted` that they are as fitted to readings, busy moments and all; `cut` that
    the training ended in the midst of them. `partial` says that not all its batches were trained: `time=` was over.
    `mosaic_closes` is the first epoch of its run without mosaic, None where there is none. `profiled` says that
    PyTorch's profiler ran in it because of us, and that there are other epochs to look at.
    """

    row: EpochRow
    first: bool
    pause: Span | None = None
    from_callbacks: bool = False
    fitted: bool = False
    cut: bool = False
    mosaic_closes: int | None = None
    profiled: bool = False
    partial: bool = False

    @property
    def closing(self) -> bool:
        """Tell whether the mosaic was closed for it, so that its loader was made anew."""
        return self.row.epoch == self.mosaic_closes

    @property
    def without_mosaic(self) -> bool:
        """Tell whether it loaded its images without mosaic."""
        return self.mosaic_closes is not None and self.row.epoch >= self.mosaic_closes

    @property
    def end_t_s(self) -> float:
        """Return when the epoch was over: with its checkpoint where callbacks reported that, else with its row."""
        return self.pause[1] if self.from_callbacks and self.pause else self.row.row_t_s

    @property
    def validation_s(self) -> float | None:
        """Return how long before its row the pause began: the validation."""
        return max(self.row.row_t_s - self.pause[0], 0.0) if self.pause else None

    @property
    def validates(self) -> bool:
        """Tell whether there was a validation: where callbacks reported none, there was none; else nobody knows."""
        return not self.from_callbacks or bool(self.validation_s)

    @property
    def checkpoint_s(self) -> float | None:
        """Return how long after its row the pause ended: the checkpoint."""
        return max(self.pause[1] - self.row.row_t_s, 0.0) if self.pause else None


@dataclass(frozen=True)
class EpochEnds:
    """The ends of all epochs of a run in order of time."""

    all: tuple[EpochEnd, ...]
    interval_s: float = 1.0  # of the coarsest readings that the pauses were seen in

    @cached_property
    def first_epochs(self) -> tuple[Span, ...]:
        """Return the first epochs of processes, up to their rows."""
        return tuple((each.row.start_t_s, each.row.row_t_s) for each in self.all if each.first)

    def is_in_first(self, t_s: float) -> bool:
        """Tell whether a moment lies in the first epoch of a process."""
        return any(start <= t_s < end for start, end in self.first_epochs)

    def with_mosaic(self, closes: Mapping[int, int | None]) -> "EpochEnds":
        """Return the same with the first epoch without mosaic of each run, by its number."""
        return replace(self, all=tuple(replace(each, mosaic_closes=closes.get(each.row.run)) for each in self.all))

    def with_profiled(self, windows: Sequence[Span]) -> "EpochEnds":
        """Return the same with the epochs marked in which a profiler ran, where others are left."""
        touched = [any(s < each.end_t_s and e > each.row.start_t_s for s, e in windows) for each in self.all]
        left = [not (hit or each.first or each.closing) for each, hit in zip(self.all, touched, strict=True)]
        if not any(left):
            return self
        return replace(self, all=tuple(replace(b, profiled=hit) for b, hit in zip(self.all, touched, strict=True)))

    def touching(self, start_s: float, end_s: float) -> EpochEnd | None:
        """Return the epoch end whose row appeared within [start, end] give or take EPOCH_END_S, the first if several.

        Of one that callbacks reported, or that was fitted, any of its validation and checkpoint lies there.
        """
        at = bisect_left(self.all, start_s - th.EPOCH_END_S, key=lambda b: b.row.row_t_s)
        for found in self.all[max(at - 1, 0) : at + 1]:
            whole = found.pause if found.from_callbacks or found.fitted else None
            begin, end = whole or (found.row.row_t_s, found.row.row_t_s)
            if begin <= end_s + th.EPOCH_END_S and end >= start_s - th.EPOCH_END_S:
                return found
        return None

    def explains(self, start_s: float, end_s: float) -> bool:
        """Tell whether the validation and checkpoint of an epoch explain a drop.

        They do when it lies where its siblings' lie, and lasts no longer before its row (validation) and after it
        (checkpoint) than theirs (see `SiblingLengths`). Without siblings a drop is explained when it is over soon after
        its row: the row appears when the validation is done.
        """
        touched = self.touching(start_s, end_s)
        if touched is None:
            return False
        if touched.from_callbacks and touched.pause is not None:
            return self._reported_explains(touched, touched.pause, start_s, end_s)
        row_t = touched.row.row_t_s
        validation, checkpoint = self.usual_validation(touched), self.usual_checkpoint(touched)
        if validation is None or checkpoint is None:
            return end_s <= row_t + th.FIRST_EPOCH_END_EXTRA_S
        before_s, after_s = validation.longest_s + self.edge_s, checkpoint.longest_s + self.edge_s
        drain_s = th.FIRST_DRAIN_S if touched.first else 0.0
        longer_s = end_s - start_s - drain_s - validation.typical_s - checkpoint.typical_s
        if touched.fitted and touched.pause and start_s < touched.pause[0] - self._early_s(touched):
            return False
        return (
            row_t - start_s <= before_s
            and end_s - row_t <= after_s
            and longer_s <= max(validation.longer_s, checkpoint.longer_s) + self.edge_s
        )

    def _early_s(self, touched: EpochEnd) -> float:
        """Return how long before a validation that was fitted a drop may begin: its edges are no better known."""
        first_s = max(th.FIRST_EPOCH_END_EXTRA_S, th.FIRST_SHARE * (touched.validation_s or 0.0))
        return self.edge_s + (first_s if touched.first else th.LONGER_TOLERATED_S)

    def _reported_explains(self, touched: EpochEnd, pause: Span, start_s: float, end_s: float) -> bool:
        """Tell whether a drop lies within a validation and checkpoint as reported, and these are as long as others."""
        early = th.FIRST_DRAIN_S if touched.first else 0.0
        within = start_s >= pause[0] - early - self.edge_s and end_s <= pause[1] + self.edge_s
        return within and not self.is_slow(touched)

    def is_slow(self, epoch_end: EpochEnd) -> bool:
        """Tell whether its validation or its checkpoint took far longer than its siblings'."""
        parts = ((epoch_end.validation_s, self.usual_validation), (epoch_end.checkpoint_s, self.usual_checkpoint))
        return any(
            length_s is not None
            and length_s > self._tolerated_s  # of a long run's thousands nearly all are shorter
            and (siblings := usual(epoch_end)) is not None
            and length_s > siblings.longest_s
            for length_s, usual in parts
        )

    @property
    def edge_s(self) -> float:
        """Return how far off a drop's edge may be: EPOCH_END_S, or a reading and a half where they are coarser."""
        return max(th.EPOCH_END_S, 1.5 * self.interval_s)

    def usual_validation(self, of: EpochEnd) -> SiblingLength | None:
        """Return what the validations of its siblings take, None without any."""
        extra_s = th.FIRST_VALIDATION_EXTRA_S if of.from_callbacks else th.FIRST_EPOCH_END_EXTRA_S
        return self._usual(of, "validation_s", extra_s)

    def usual_checkpoint(self, of: EpochEnd) -> SiblingLength | None:
        """Return what the checkpoints of its siblings take, None without any."""
        return self._usual(of, "checkpoint_s", 0.0 if of.from_callbacks else th.FIRST_EPOCH_END_EXTRA_S)

    def _usual(self, of: EpochEnd, part: str, first_extra_s: float) -> SiblingLength | None:
        mine, lengths = self._siblings[of.row.run, part]
        at = bisect_left(mine, of.row.row_t_s, key=lambda b: b.row.row_t_s)
        return lengths.of(at, self._tolerated_s, first_extra_s)

    @property
    def _tolerated_s(self) -> float:
        """Return how much longer than its siblings a part may be in any case: it may be as long itself."""
        return max(th.LONGER_TOLERATED_S, self.edge_s)

    @cached_property
    def _siblings(self) -> Mapping[tuple[int, str], tuple[Sequence[EpochEnd], SiblingLengths]]:
        found = {}
        for run in {b.row.run for b in self.all}:
            mine = [b for b in self.all if b.row.run == run]
            firsts = [b.first for b in mine]
            for part in ("validation_s", "checkpoint_s"):
                lengths = [_length_s(b, part) for b in mine]
                found[run, part] = mine, SiblingLengths(lengths, firsts)
        return found

    @cached_property
    def _validating(self) -> Sequence[EpochEnd]:
        return [b for b in self.all if b.validates]

    def typical_s(self, of: EpochEnd) -> Span | None:
        """Return the median validation and checkpoint of the other epochs, None where no other shows a pause.

        Where it validated, only those count that did so as well.
        """
        alike = self._validating if of.validates else self.all
        at = bisect_left(alike, of.row.row_t_s, key=lambda b: b.row.row_t_s)
        near = alike[max(at - th.SIBLINGS, 0) : at + th.SIBLINGS + 1]
        nearest = [b for b in near if b is not of and b.pause is not None and b.row.run == of.row.run]
        if not nearest:
            return None
        return median(b.validation_s or 0.0 for b in nearest), median(b.checkpoint_s or 0.0 for b in nearest)


def _length_s(epoch_end: EpochEnd, part: str) -> float:
    """Return how long a part of an epoch's end took, NaN where that is not known, or it did not take place."""
    length_s: float | None = getattr(epoch_end, part)
    is_none = part == "validation_s" and not epoch_end.validates
    return math.nan if length_s is None or epoch_end.cut or is_none else length_s


def bare_epoch_ends(rows: Sequence[EpochRow]) -> EpochEnds:
    """Return the end of every epoch, of which nothing is known but its row."""
    ordered = sorted(rows, key=lambda row: row.row_t_s)
    return EpochEnds(tuple(EpochEnd(row, first) for row, first in zip(ordered, _firsts(ordered), strict=True)))


def with_pauses(
    bare: EpochEnds, all_series: Sequence[GpuSeries], usable: Sequence[Bools], phases: Sequence[Phase]
) -> EpochEnds:
    """Return the ends of epochs with their pauses, as seen on the GPU that pauses most (validation runs on one rank).

    What is low is judged by the readings of the train phases: validations may make up most of a run.
    """
    trained = union([phase.span for phase in phases if phase.name == "train"])
    pairs = zip(all_series, usable, strict=True)
    per_gpu = [_on_one_gpu(bare.all, series, use, trained) for series, use in pairs if use.any()]
    if not per_gpu or not bare.all:
        return bare
    interval_s = max(series.interval_s for series in all_series)
    seen = EpochEnds(tuple(max(per_gpu, key=lambda found: sum(b.pause is not None for b in found))), interval_s)
    fitted = _fitted(phases)
    return replace(
        seen, all=tuple(_with_fitted(epoch_end, fitted) or _trimmed(epoch_end, seen) for epoch_end in seen.all)
    )


def _with_fitted(epoch_end: EpochEnd, fitted: Mapping[float, Span]) -> EpochEnd | None:
    """Return an epoch end with the pause that was fitted, busy moments and all; None where there is none."""
    pause = fitted.get(epoch_end.row.row_t_s)
    return None if pause is None else EpochEnd(epoch_end.row, epoch_end.first, pause, fitted=True)


def _fitted(phases: Sequence[Phase]) -> Mapping[float, Span]:
    """Return the pauses that were fitted to readings, by the time of the row that lies in them."""
    saved = {phase.start_t_s: phase.end_t_s for phase in phases if phase.name == "checkpoint"}
    validated = [phase for phase in phases if phase.name == "validation" and phase.uncertainty_s is not None]
    return {phase.end_t_s: (phase.start_t_s, saved.get(phase.end_t_s, phase.end_t_s)) for phase in validated}


def _firsts(rows: Sequence[EpochRow]) -> list[bool]:
    """Tell for each row whether its process had just begun: epoch 1, or the first after a resume."""
    before = {(row.run, row.segment - 1) for row in rows}
    seen: set[tuple[int, int]] = set()
    firsts = []
    for row in rows:
        key = (row.run, row.segment)
        resumed = row.segment > 1 and (row.run, row.segment - 1) in before
        firsts.append(key not in seen and (row.epoch == 1 or resumed))
        seen.add(key)
    return firsts


def _on_one_gpu(bare: Sequence[EpochEnd], series: GpuSeries, usable: Bools, trained: Sequence[Span]) -> list[EpochEnd]:
    """Return the epoch ends with the pauses that touch their rows, each between the rows before and after it."""
    trains = usable & mask_in_any(series.t_s, trained)
    level = median_of(series.util_pct[trains if trains.any() else usable])
    low = low_stretches(series, usable & (series.util_pct < th.PAUSE_LEVEL_SHARE * level), usable, th.PAUSE_STRAY_S)
    begins, stops = np.array(low, dtype=np.intp).reshape(-1, 2).T
    starts, ends = series.t_s[begins], series.t_s[stops - 1] + series.weight_s[stops - 1]
    rows = np.array([epoch_end.row.row_t_s for epoch_end in bare])
    firsts = np.searchsorted(ends, rows - th.EPOCH_END_S)
    lasts = np.searchsorted(starts, rows + th.EPOCH_END_S, side="right") - 1
    paused = np.flatnonzero(firsts <= lasts)
    edges = np.concatenate([[-np.inf], rows, [np.inf]])
    pauses_begin = np.maximum(starts[firsts[paused]], edges[paused])
    pauses_end = np.minimum(ends[lasts[paused]], edges[paused + 2])
    found = list(bare)
    for number, *pause in zip(paused.tolist(), pauses_begin.tolist(), pauses_end.tolist(), strict=True):
        found[number] = EpochEnd(bare[number].row, bare[number].first, (pause[0], pause[1]))
    return found


def _trimmed(epoch_end: EpochEnd, seen: EpochEnds) -> EpochEnd:
    """Return an epoch end with its siblings' pause where its own is too long for validation and checkpoint."""
    if epoch_end.pause is None or seen.explains(*epoch_end.pause):
        return epoch_end
    typical = seen.typical_s(epoch_end)
    if typical is None:
        return EpochEnd(epoch_end.row, epoch_end.first)
    row_t = epoch_end.row.row_t_s
    pause = max(epoch_end.pause[0], row_t - typical[0]), min(epoch_end.pause[1], row_t + typical[1])
    return EpochEnd(epoch_end.row, epoch_end.first, pause if pause[0] < pause[1] else None)
