"""Stretches of time as (start, end) in seconds, in order and without overlap."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np

Span = tuple[float, float]
T = TypeVar("T")


class Touching(Generic[T]):
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
        there = np.flatnonzero(self._ends_s[first:last] >= start_s)
        return [self._things[first + int(at)] for at in there]


def intersect(left: Sequence[Span], right: Sequence[Span]) -> list[Span]:
    """Return what lies in both."""
    both = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
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


def minus(spans: Sequence[Span], cuts: Sequence[Span]) -> list[Span]:
    """Return `spans` without `cuts`, each of which may overlap others."""
    apart = union([cut for cut in cuts if cut[0] < cut[1]])
    ends = [end for _, end in apart]
    rest: list[Span] = []
    for start, end in spans:
        left = start
        for a, b in apart[bisect_right(ends, start) :]:
            if a >= end:
                break
            rest += [(left, a)] if left < a else []
            left = b
        rest += [(left, end)] if left < end else []
    return sorted(rest)
