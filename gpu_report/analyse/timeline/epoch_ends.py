"""The ends of epochs: how long the GPU rests for validation and checkpoint, and which drops that explains."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import median

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.low_stretches import low_stretches
from gpu_report.model import EpochRow

Dip = tuple[float, float]


@dataclass(frozen=True)
class Boundary:
    """The end of an epoch: its row, whether it is the first of its process, and the dip around it (None: none seen).

    `told` says that the dip is no dip that was seen, but validation and checkpoint as YOLO's callbacks told them.
    `mosaic_closes` is the first epoch of its run without mosaic, None where there is none.
    """

    row: EpochRow
    first: bool
    dip: Dip | None = None
    told: bool = False
    mosaic_closes: int | None = None

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
        """Return when the epoch was over: with its checkpoint where that was told, else with its row."""
        return self.dip[1] if self.told and self.dip else self.row.row_t_s

    @property
    def before_s(self) -> float | None:
        """Return how long before its row the dip began: the validation."""
        return max(self.row.row_t_s - self.dip[0], 0.0) if self.dip else None

    @property
    def after_s(self) -> float | None:
        """Return how long after its row the dip ended: the checkpoint."""
        return max(self.dip[1] - self.row.row_t_s, 0.0) if self.dip else None


@dataclass(frozen=True)
class Boundaries:
    """All boundaries of a run in order of time."""

    all: tuple[Boundary, ...]

    @cached_property
    def first_epochs(self) -> tuple[Span, ...]:
        """Return the first epochs of processes, up to their rows."""
        return tuple((each.row.start_t_s, each.row.row_t_s) for each in self.all if each.first)

    def is_in_first(self, t_s: float) -> bool:
        """Tell whether a moment lies in the first epoch of a process."""
        return any(start <= t_s < end for start, end in self.first_epochs)

    def with_mosaic(self, closes: Mapping[int, int | None]) -> "Boundaries":
        """Return the boundaries with the first epoch without mosaic of each run, by its number."""
        return Boundaries(tuple(replace(each, mosaic_closes=closes.get(each.row.run)) for each in self.all))

    def touching(self, start_s: float, end_s: float) -> Boundary | None:
        """Return the boundary whose row appeared within [start, end] give or take BOUNDARY_S, the first if several.

        Of one that was told, any of its validation and checkpoint lies there.
        """
        at = bisect_left(self.all, start_s - th.BOUNDARY_S, key=lambda b: b.row.row_t_s)
        for found in self.all[max(at - 1, 0) : at + 1]:
            begin, end = found.dip if found.told and found.dip else (found.row.row_t_s, found.row.row_t_s)
            if begin <= end_s + th.BOUNDARY_S and end >= start_s - th.BOUNDARY_S:
                return found
        return None

    def explains(self, start_s: float, end_s: float) -> bool:
        """Tell whether the validation and checkpoint of an epoch explain a drop.

        They do when it begins where its siblings' validations begin (give or take BOUNDARY_S) and lasts no longer than
        SIBLING_FACTOR times as long. The first of a process may take FIRST_BOUNDARY_EXTRA_S more. Without siblings a
        drop is explained when it is over soon after its row: the row appears when the validation is done.
        """
        touched = self.touching(start_s, end_s)
        if touched is None:
            return False
        if touched.told and touched.dip is not None:
            return self._told_explains(touched, touched.dip, start_s, end_s)
        row_t, extra = touched.row.row_t_s, th.FIRST_BOUNDARY_EXTRA_S if touched.first else 0.0
        typical = self.typical_s(touched)
        if typical is None:
            return end_s <= row_t + th.FIRST_BOUNDARY_EXTRA_S
        before, after = typical
        begins_there = start_s >= row_t - before - th.BOUNDARY_S - extra
        return begins_there and end_s - start_s <= th.SIBLING_FACTOR * (before + after) + extra

    def _told_explains(self, touched: Boundary, dip: Dip, start_s: float, end_s: float) -> bool:
        """Tell whether a drop lies within a validation and checkpoint that were told, and are as long as others."""
        typical = self.typical_s(touched)
        extra, early = (th.FIRST_VALIDATION_EXTRA_S, th.FIRST_DRAIN_S) if touched.first else (0.0, 0.0)
        usual = typical is None or dip[1] - dip[0] <= th.SIBLING_FACTOR * sum(typical) + extra
        return usual and start_s >= dip[0] - early - th.BOUNDARY_S and end_s <= dip[1] + th.BOUNDARY_S

    def typical_s(self, of: Boundary) -> Dip | None:
        """Return the median validation and checkpoint of the other boundaries, None where no other shows a dip."""
        at = bisect_left(self.all, of.row.row_t_s, key=lambda b: b.row.row_t_s)
        near = self.all[max(at - th.SIBLINGS, 0) : at + th.SIBLINGS + 1]
        nearest = [b for b in near if b is not of and b.dip is not None and b.row.run == of.row.run]
        if not nearest:
            return None
        return median(b.before_s or 0.0 for b in nearest), median(b.after_s or 0.0 for b in nearest)


def find_boundaries(rows: Sequence[EpochRow], all_series: Sequence[GpuSeries], usable: Sequence[Bools]) -> Boundaries:
    """Return the boundary of every epoch, its dip seen on the GPU that dips most (validation runs on one rank)."""
    ordered = sorted(rows, key=lambda row: row.row_t_s)
    firsts = _firsts(ordered)
    bare = [Boundary(row, first) for row, first in zip(ordered, firsts, strict=True)]
    per_gpu = [_on_one_gpu(bare, series, use) for series, use in zip(all_series, usable, strict=True) if use.any()]
    if not per_gpu:
        return Boundaries(tuple(bare))
    seen = Boundaries(tuple(max(per_gpu, key=lambda found: sum(b.dip is not None for b in found))))
    return Boundaries(tuple(_trimmed(boundary, seen) for boundary in seen.all))


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


def _on_one_gpu(bare: Sequence[Boundary], series: GpuSeries, usable: Bools) -> list[Boundary]:
    """Return the boundaries with the dips that touch their rows, each kept between the rows before and after it."""
    level = float(np.median(series.util_pct[usable]))
    low = low_stretches(series, usable & (series.util_pct < th.DIP_SHARE * level), usable, th.DIP_STRAY_S)
    begins, stops = np.array(low, dtype=np.intp).reshape(-1, 2).T
    starts, ends = series.t_s[begins], series.t_s[stops - 1] + series.weight_s[stops - 1]
    rows = np.array([boundary.row.row_t_s for boundary in bare])
    firsts = np.searchsorted(ends, rows - th.BOUNDARY_S)
    lasts = np.searchsorted(starts, rows + th.BOUNDARY_S, side="right") - 1
    dipped = np.flatnonzero(firsts <= lasts)
    edges = np.concatenate([[-np.inf], rows, [np.inf]])
    dips_begin = np.maximum(starts[firsts[dipped]], edges[dipped])
    dips_end = np.minimum(ends[lasts[dipped]], edges[dipped + 2])
    found = list(bare)
    for number, *dip in zip(dipped.tolist(), dips_begin.tolist(), dips_end.tolist(), strict=True):
        found[number] = Boundary(bare[number].row, bare[number].first, (dip[0], dip[1]))
    return found


def _trimmed(boundary: Boundary, seen: Boundaries) -> Boundary:
    """Return a boundary whose dip is as long as its siblings' where it is too long to be validation and checkpoint."""
    if boundary.dip is None or seen.explains(*boundary.dip):
        return boundary
    typical = seen.typical_s(boundary)
    if typical is None:
        return Boundary(boundary.row, boundary.first)
    row_t = boundary.row.row_t_s
    dip = max(boundary.dip[0], row_t - typical[0]), min(boundary.dip[1], row_t + typical[1])
    return Boundary(boundary.row, boundary.first, dip if dip[0] < dip[1] else None)
