"""Stretches of time as (start, end) in seconds, in order and without overlap."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]
Side = Literal["left", "right"]
Span = tuple[float, float]
Spans = Sequence[Span] | Floats  # many of them, as rows of (start, end): made an array once where they are used often
T = TypeVar("T")

ROWS_AT_ONCE = 65_536  # of a million: a column of floats has 0.5 MB, and each step over it costs 10 µs besides
MANY_STRETCHES = 64  # to count where they begin and end takes less than to fill each, of so few rows as above


class IntervalIndex(Generic[T]):
    """Things that take time, to be asked for those that touch a stretch of it: a long run has thousands of either."""

    def __init__(self, things: Iterable[T], span_of: Callable[[T], Span]) -> None:
        """Take things in any order; they may overlap each other."""
        pairs = sorted(((span_of(thing), thing) for thing in things), key=lambda pair: pair[0])
        self._things = [thing for _, thing in pairs]
        self._starts_s = [span[0] for span, _ in pairs]
        self._ends_s = np.array([span[1] for span, _ in pairs], dtype=float)
        self._latest_s = list(accumulate(self._ends_s.tolist(), max))

    def __call__(self, start_s: float, end_s: float) -> list[T]:
        """Return what begins by `end_s` and has not ended before `start_s`, in order of beginning."""
        first, last = bisect_left(self._latest_s, start_s), bisect_right(self._starts_s, end_s)
        if first >= last:
            return []
        there = np.flatnonzero(self._ends_s[first:last] >= start_s)
        return [self._things[first + int(at)] for at in there]


def intersect(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """Return what lies in both."""
    both = [(max(a, c), min(b, d)) for a, b in left for c, d in overlapping(right, (a, b))]
    return sorted((a, b) for a, b in both if a < b)


def union(spans: Sequence[Span]) -> list[Span]:
    """Return what lies in any, those that touch as one."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def union_of_rows(spans: Floats) -> Floats:
    """Return `union` of rows of (start, end), none of which ends before it starts, as such rows."""
    in_order = bool((spans[1:, 0] >= spans[:-1, 0]).all())
    starts, ends = (spans if in_order else spans[np.argsort(spans[:, 0], kind="stable")]).T
    latest = np.maximum.accumulate(ends)
    begins = np.flatnonzero(np.append(True, starts[1:] > latest[:-1])[: len(starts)])
    return np.column_stack([starts[begins], latest[np.append(begins[1:], len(starts))[: len(begins)] - 1]])


def length_s(spans: Sequence[Span]) -> float:
    """Return the seconds that spans without overlap take together."""
    return sum(end - start for start, end in spans)


def minus(spans: Sequence[Span], cuts: Sequence[Span]) -> list[Span]:
    """Return `spans` without `cuts`, each of which may overlap others."""
    apart = union([cut for cut in cuts if cut[0] < cut[1]])
    ends = [end for _, end in apart]
    rest: list[Span] = []
    for start, end in spans:
        left, at = start, bisect_right(ends, start)
        while at < len(apart) and apart[at][0] < end:
            rest += [(left, apart[at][0])] if left < apart[at][0] else []
            left, at = apart[at][1], at + 1
        rest += [(left, end)] if left < end else []
    return sorted(rest)


def overlapping(spans: Sequence[Span], span: Span) -> Sequence[Span]:
    """Return those of `spans` that end after `span` begins and begin before it ends."""
    first = bisect_right(spans, span[0], key=lambda each: each[1])
    last = first
    while last < len(spans) and spans[last][0] < span[1]:
        last += 1
    return spans[first:last]


def as_array(spans: Spans) -> Floats:
    """Return spans as rows of (start, end)."""
    return np.asarray(spans, dtype=float).reshape(-1, 2)


def row_ranges(t_s: Floats, spans: Spans, side: Side = "left") -> tuple[Indices, Indices]:
    """Return the first row that lies in each span, and the one after the last; `t_s` are the rows' times in order.

    Rows lie in [start, end) of a span, or with the side `right` in (start, end].
    """
    starts, ends = as_array(spans).T
    first = np.searchsorted(t_s, starts, side=side)
    return first, np.maximum(np.searchsorted(t_s, ends, side=side), first)


def mask_in_any(t_s: Floats, spans: Spans, side: Side = "left") -> Bools:
    """Return which rows lie in any of the spans, which may overlap (see `row_ranges`)."""
    return mask_of_ranges(len(t_s), *row_ranges(t_s, spans, side))


def mask_of_ranges(count: int, first: Indices, last: Indices) -> Bools:
    """Return which of so many rows lie in any of the stretches [first, last)."""
    if len(first) > MANY_STRETCHES and count <= ROWS_AT_ONCE:
        begun, ended = (np.bincount(np.minimum(edges, count), minlength=count + 1) for edges in (first, last))
        return np.cumsum(begun - ended)[:count] > 0
    inside = np.zeros(count, dtype=bool)
    for part in slices(first, last):
        inside[part] = True
    return inside


def runs_of(marked: Bools) -> tuple[Indices, Indices]:
    """Return the stretches [first, last) of marked rows that follow each other: what `mask_of_ranges` marks."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    return edges[::2], edges[1::2]


def slices(first: Indices, last: Indices) -> Iterator[slice]:
    """Yield the stretches [first, last): filling each is far less work than looking at every row."""
    return map(slice, first.tolist(), last.tolist())


def parts(count: int) -> Iterator[slice]:
    """Yield so many rows in parts of ROWS_AT_ONCE: what is worked out of one on the way takes little memory."""
    return (slice(begin, min(begin + ROWS_AT_ONCE, count)) for begin in range(0, max(count, 1), ROWS_AT_ONCE))


def rows_before(row_t_s: npt.NDArray[Any], t_s: npt.NDArray[Any], side: Side = "left") -> Indices:
    """Return how many rows lie before each moment, or with the side `right` at it or before; both are in order.

    It is searchsorted, which takes ten times as long where there are several moments a row.
    """
    if len(t_s) <= 2 * len(row_t_s):
        return np.searchsorted(row_t_s, t_s, side=side)
    edges = np.searchsorted(t_s, row_t_s, side="right" if side == "left" else "left")
    return np.repeat(np.arange(len(row_t_s) + 1), np.diff(edges, prepend=0, append=len(t_s)))


def indices_within(t_s: Floats, spans: Spans, side: Side = "left") -> Indices:
    """Return the rows that lie in the spans, span by span (see `row_ranges`)."""
    first, last = row_ranges(t_s, spans, side)
    lengths = last - first
    before: Indices = np.cumsum(lengths) - lengths
    return np.arange(int(lengths.sum())) + np.repeat(first - before, lengths)
