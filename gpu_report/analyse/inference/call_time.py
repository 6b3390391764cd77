"""Which time lay in calls, and in which of their parts: of whole models, and of each reading of a GPU."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import Span, union_of_rows
from gpu_report.model import ModelCalls

MS: Final = 1000.0
PARTS: Final = ("preprocess", "inference", "postprocess")


def call_spans(calls: ModelCalls, rows: slice = slice(None)) -> Floats:
    """Return when a model was in a call, as rows of (start, end) that do not overlap."""
    return union_of_rows(np.column_stack([calls.start_s[rows], calls.end_s[rows]]))


def seconds_of(spans: Floats) -> float:
    """Return the length of spans that do not overlap."""
    return float((spans[:, 1] - spans[:, 0]).sum())


def part_seconds(all_calls: Iterable[ModelCalls], edges_s: Floats) -> dict[str, Floats]:
    """Return, between each two edges, the seconds in each part of calls and in `other` of them.

    Parts follow one another in a call: pre-processing, inference, post-processing, and what is left. Where calls of
    several models overlap, their seconds add up to more than the time.
    """
    sums = {name: np.zeros(max(len(edges_s) - 1, 0)) for name in (*PARTS, "other")}
    for calls in all_calls:
        begin = calls.start_s
        for name in PARTS:
            end = begin + np.nan_to_num(getattr(calls, f"{name}_ms")) / MS
            sums[name] += _seconds_between(begin, end, edges_s)
            begin = end
        sums["other"] += _seconds_between(begin, np.maximum(calls.end_s, begin), edges_s)
    return sums


def _seconds_between(starts: Floats, ends: Floats, edges_s: Floats) -> Floats:
    """Return how many seconds of many spans lie between each two edges."""
    up_to: Floats = _seconds_before(starts, edges_s) - _seconds_before(ends, edges_s)
    return np.diff(up_to)


def _seconds_before(moments: Floats, edges_s: Floats) -> Floats:
    """Return, for each edge, the sum of the seconds that have passed since each moment before it."""
    ordered = np.sort(moments)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    before = np.searchsorted(ordered, edges_s)
    passed: Floats = before * edges_s - sums[before]
    return passed


def overlap(spans: Sequence[Span], other: Span) -> bool:
    """Tell whether any of some spans has time in common with another."""
    return any(start < other[1] and other[0] < end for start, end in spans)
