"""Means, extremes and percentiles, each reading weighted by the time it stands for.

Of one column, and of many stretches of its rows at once: a day of short epochs has 15,000.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.intervals import ROWS_AT_ONCE, Indices
from gpu_report.model import Stats

Readings = npt.NDArray[np.floating[Any]]  # in 32 or 64 bits, as they are kept
SHORT = 8192  # values at once: of a longer product BLAS starts threads
PERCENTILES = (0.05, 0.50, 0.95)
UNITS = (1.0, 10.0, 100.0)  # of a reading: the schema's decimals
LARGEST = 2**32
FEW = 64  # readings that most often tell already that a unit is too large


def weighted_stats(values: Readings, weights: Floats) -> Stats | None:
    """Return the statistics of the known values, None where there is none.

    Percentiles are of weighted ranks, in which a value that stands for no time has no place: it would be a step.
    """
    value, weight = _where(np.isfinite(values), values, weights)
    if not len(value):
        return None
    if (total := float(weight.sum())) <= 0:
        weight, total = np.ones(len(value)), float(len(value))
    ranks, at_ranks = _ranked(*_where(weight > 0, value, weight))
    p5, p50, p95 = np.interp(PERCENTILES, ranks / total, at_ranks)
    mean = weighted_sum(value, weight) / total
    return Stats(mean, float(value.min()), float(p5), float(p50), float(p95), float(value.max()))


def _where(some: Bools, *arrays: Readings) -> tuple[Readings, ...]:
    return arrays if some.all() else tuple(array[some] for array in arrays)


def _ranked(value: Readings, weight: Readings) -> tuple[Readings, Readings]:
    """Return weighted ranks from the lowest value on, from 0 to the sum of weights, and the values at them.

    Of readings with the same value the first and the last are enough: nothing changes between them. So few values
    are counted, not sorted, which takes a report of a day of 8 GPUs from 3.4 to 2.9 s. Of those the ones around
    PERCENTILES are looked for.
    """
    whole = _as_whole(value)
    if whole is None or int(whole.max()) > len(whole):
        order = np.argsort(value, kind="stable")
        return np.cumsum(weight[order]) - weight[order] / 2, value[order]
    of_each = np.bincount(whole, weight)
    so_far, there = np.cumsum(of_each), np.flatnonzero(of_each)
    at = np.searchsorted(so_far[there], np.multiply(PERCENTILES, so_far[-1]))
    near = there[np.unique(np.clip(np.add.outer(at, (-1, 0, 1)), 0, len(there) - 1))]
    first, last = np.array([(_first(whole, number), _last(whole, number)) for number in near.tolist()]).T
    ranks = np.column_stack([so_far[near] - of_each[near] + weight[first] / 2, so_far[near] - weight[last] / 2])
    return ranks.ravel(), np.repeat(value[last], 2)


def _first(whole: Indices, number: int) -> int:
    """Return the first row of a number that is there: of one that is frequent it is soon found."""
    found = ((at, whole[at : at + SHORT] == number) for at in range(0, len(whole), SHORT))
    row: int = next(at + int(same.argmax()) for at, same in found if same.any())
    return row


def _last(whole: Indices, number: int) -> int:
    return len(whole) - 1 - _first(whole[::-1], number)


def _as_whole(values: Readings) -> Indices | None:
    """Return finite values as whole numbers from 0 up that sort alike, None where they are none."""
    for unit in UNITS:
        scaled = np.rint(values * unit) if _fits(values[:FEW], unit) else None
        if scaled is not None and (scaled / unit == values).all():
            span = scaled - scaled.min()
            return span.astype(np.intp) if span.max() < LARGEST else None
    return None


def _fits(values: Readings, unit: float) -> bool:
    return bool((np.rint(values * unit) / unit == values).all())


def weighted_sum(values: Readings, weights: Readings) -> float:
    """Return the scalar product, in pieces so short that BLAS starts no threads: on busy cores they wait for long."""
    pieces = range(0, len(values), SHORT)
    return sum(float(values[at : at + SHORT] @ weights[at : at + SHORT]) for at in pieces)


@dataclass(frozen=True, eq=False)
class StatsByInterval:
    """What weighted_stats says of a column, for the rows [first, last) of each stretch; NaN where none is known.

    Nothing is worked out before it is asked for, and then for all stretches at once.
    """

    values: Readings
    weights: Floats
    first: Indices
    last: Indices

    @cached_property
    def mean(self) -> Floats:
        """Return the weighted mean of each stretch."""
        return self._by_parts(StatsByInterval._mean)

    @cached_property
    def max(self) -> Floats:
        """Return the highest value of each stretch."""
        return self._by_parts(lambda part: part._reduced(np.fmax, part.values, np.nan))

    def _by_parts(self, work_out: "Callable[[StatsByInterval], Floats]") -> Floats:
        """Return what is worked out of each stretch, for those that begin in the same ROWS_AT_ONCE at a time."""
        found, lasts = np.full(len(self.first), np.nan), np.maximum(self.first, self.last)
        edges = np.flatnonzero(np.diff(self.first // ROWS_AT_ONCE, prepend=-1, append=-1))
        for some in map(slice, edges[:-1].tolist(), edges[1:].tolist()):
            start = int(self.first[some].min())
            rows = slice(start, int(lasts[some].max()))
            near = StatsByInterval(
                self.values[rows].astype(float), self.weights[rows], self.first[some] - start, self.last[some] - start
            )
            found[some] = work_out(near)
        return found

    def _mean(self) -> Floats:
        known = np.isfinite(self.values)
        weights = np.where(known, self.weights, 0.0)
        total = self._sums(weights)
        with np.errstate(invalid="ignore", divide="ignore"):
            weighted = self._sums(np.where(known, self.values, 0.0) * weights) / total
            plain = self._sums(np.where(known, self.values, 0.0)) / self._sums(known.astype(float))
        return np.where(total > 0, weighted, plain)

    def of(self, number: int) -> Stats | None:
        """Return the statistics of one stretch as weighted_stats has them, None where nothing of it is known."""
        ranked = self._ranked
        mine = slice(int(ranked.begins[number]), int(ranked.ends[number]))
        value, weight = ranked.value[mine], ranked.weight[mine]
        if not len(value):
            return None
        low, middle, high = (float(each[number]) for each in ranked.percentiles)
        mean = weighted_sum(value, weight) / float(weight.sum())
        return Stats(mean, float(value[0]), low, middle, high, float(value[-1]))

    @cached_property
    def _ranked(self) -> "_Ranked":
        rows, stretch = self._rows_in_order()
        count = len(self.first)
        begins = np.searchsorted(stretch, np.arange(count))
        total = np.bincount(stretch, self.weights[rows], minlength=count)
        weight = np.where(total[stretch] > 0, self.weights[rows], 1.0)
        return _Ranked(self.values[rows].astype(float), weight, stretch, begins, np.append(begins[1:], len(stretch)))

    def _rows_in_order(self) -> tuple[Indices, Indices]:
        """Return the known rows of all stretches, each by its values in turn, and the stretch that each is of."""
        lengths = np.maximum(self.last - self.first, 0)
        stretch = np.repeat(np.arange(len(self.first)), lengths)
        rows = np.arange(len(stretch)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + self.first[stretch]
        known = np.isfinite(self.values[rows])
        rows, stretch = rows[known], stretch[known]
        order = np.argsort(self.values[rows], kind="stable")
        order = order[np.argsort(stretch[order], kind="stable")]
        return rows[order], stretch[order]

    def _sums(self, values: Floats) -> Floats:
        return self._reduced(np.add, values, 0.0)

    def _reduced(self, how: np.ufunc, values: Readings, empty: float) -> Floats:
        edges = np.column_stack([self.first, np.maximum(self.first, self.last)]).ravel()
        reduced = how.reduceat(np.append(values, empty), edges)[::2]
        return np.where(self.last > self.first, reduced, empty)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """The known values of all stretches, each stretch's in order: those of stretch n are [begins[n], ends[n])."""

    value: Floats
    weight: Floats
    stretch: Indices
    begins: Indices
    ends: Indices

    @cached_property
    def percentiles(self) -> tuple[Floats, ...]:
        """Return PERCENTILES of each stretch, by weighted ranks of the values that stand for any time."""
        some = self.weight > 0
        if not some.all():
            stretch, edges = self.stretch[some], np.arange(len(self.begins) + 1)
            begins = np.searchsorted(stretch, edges)
            return _Ranked(self.value[some], self.weight[some], stretch, begins[:-1], begins[1:]).percentiles
        so_far = np.cumsum(self.weight)
        before = np.concatenate([[0.0], so_far])[self.begins]
        total = np.bincount(self.stretch, self.weight, minlength=len(self.begins))
        rank = (so_far - before[self.stretch] - self.weight / 2) / total[self.stretch]
        return tuple(self._at(share, rank) for share in PERCENTILES)

    def _at(self, share: float, rank: Floats) -> Floats:
        """Return the value at a rank (0 to 1) of each stretch, as numpy.interp does; NaN where a stretch has none."""
        found = np.full(len(self.begins), np.nan)
        some = np.flatnonzero(self.ends > self.begins)
        begins, lasts = self.begins[some], self.ends[some] - 1
        after = np.searchsorted(self.stretch + rank, some + share)
        low, high = np.clip(after - 1, begins, lasts), np.clip(after, begins, lasts)
        width = rank[high] - rank[low]
        part = np.where(width > 0, (share - rank[low]) / np.where(width > 0, width, 1.0), 0.0)
        found[some] = self.value[low] + np.clip(part, 0.0, 1.0) * (self.value[high] - self.value[low])
        return found


class StatsOfInterval(Mapping[int, Mapping[str, Stats]]):
    """The statistics of one stretch on each GPU, by device index and quantity, worked out when they are asked for."""

    def __init__(self, tables: Mapping[int, Callable[[], Mapping[str, StatsByInterval]]], number: int) -> None:
        self._tables, self._number = tables, number

    def __getitem__(self, gpu: int) -> Mapping[str, Stats]:
        """Return what is known of a GPU."""
        found = {name: table.of(self._number) for name, table in self._tables[gpu]().items()}
        return {name: stats for name, stats in found.items() if stats is not None}

    def __iter__(self) -> Iterator[int]:
        """Iterate over the GPUs."""
        return iter(self._tables)

    def __len__(self) -> int:
        """Return the number of GPUs."""
        return len(self._tables)


def stats_by_interval(
    t_s: Floats, columns: Mapping[str, Readings], weights: Floats, spans: Sequence[Floats]
) -> dict[str, StatsByInterval]:
    """Return the statistics of columns over stretches of time [start, end): `spans` are the starts and the ends."""
    first, last = (np.searchsorted(t_s, edges) for edges in spans)
    return {name: StatsByInterval(values, weights, first, last) for name, values in columns.items()}
