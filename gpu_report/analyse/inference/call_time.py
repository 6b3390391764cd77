"""Which time lay in calls, and in which of their parts: of whole models, and of each reading of a GPU."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import union_of_rows
from gpu_report.model import ModelCalls

MS: Final = 1000.0
PARTS: Final = ("preprocess", "inference", "postprocess")


def call_spans(calls: ModelCalls, rows: slice = slice(None)) -> Floats:
    """Return when a model was in a call, as rows of (start, end) that do not overlap."""
    return union_of_rows(np.column_stack([calls.start_s[rows], calls.end_s[rows]]))


def seconds_of(spans: Floats) -> float:
    """Return the length of spans that do not overlap."""
    return float((spans[:, 1] - spans[:, 0]).sum())


def part_seconds(all_calls: Iterable[ModelCalls], starts_s: Floats, ends_s: Floats) -> dict[str, Floats]:
    """Return, of each of some spans, the seconds in each part of calls and in `other` of them.

    Parts follow one another in a call: pre-processing, inference, post-processing, and what is left. Where calls of
    several models overlap, their seconds add up to more than the time.
    """
    sums = {name: np.zeros(len(starts_s)) for name in (*PARTS, "other")}
    for calls in all_calls:
        begin = calls.start_s
        for name in PARTS:
            end = begin + np.nan_to_num(getattr(calls, f"{name}_ms")) / MS
            sums[name] += _seconds_within(begin, end, starts_s, ends_s)
            begin = end
        sums["other"] += _seconds_within(begin, np.maximum(calls.end_s, begin), starts_s, ends_s)
    return sums


def _seconds_within(begins: Floats, ends: Floats, starts_s: Floats, ends_s: Floats) -> Floats:
    """Return how many seconds of all intervals from `begins` to `ends` lie in each of some spans."""
    before = [_seconds_since(begins, edges) - _seconds_since(ends, edges) for edges in (starts_s, ends_s)]
    within: Floats = before[1] - before[0]
    return within


def _seconds_since(moments: Floats, edges_s: Floats) -> Floats:
    """Return, for each edge, the sum of the seconds that have passed since each moment before it."""
    ordered = np.sort(moments)
    sums = np.concatenate([[0.0], np.cumsum(ordered)])
    before = np.searchsorted(ordered, edges_s)
    passed: Floats = before * edges_s - sums[before]
    return passed
