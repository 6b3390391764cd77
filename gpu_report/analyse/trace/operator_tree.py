"""Walks from operators to those around them, for all of a trace at once."""

import numpy as np

from gpu_report.analyse.trace.gpu_work import NONE, Bools, Floats, Ints
from gpu_report.model import TraceMarks, TraceOperators


def nearest(operators: TraceOperators, values: Ints) -> Ints:
    """Return of each operator the first value that is not NONE, of itself and those around it; NONE where none has."""
    found = values.copy()
    at = operators.parent.astype(np.int64)
    open_rows = np.flatnonzero((found == NONE) & (at != NONE))
    while len(open_rows):
        found[open_rows] = values[at[open_rows]]
        at[open_rows] = operators.parent[at[open_rows]]
        open_rows = open_rows[(found[open_rows] == NONE) & (at[open_rows] != NONE)]
    return found


def self_cpu_s(operators: TraceOperators) -> Floats:
    """Return how long each operator ran without those that it called, in seconds; never negative."""
    length_s = operators.end_s - operators.start_s
    called = operators.parent != NONE
    within_s = np.bincount(operators.parent[called], weights=length_s[called], minlength=len(length_s))
    own_s: Floats = np.maximum(length_s - within_s, 0.0)
    return own_s


def within_marks(marks: TraceMarks, which: Bools, thread: Ints, at_s: Floats) -> Bools:
    """Return which moments of a thread lie within one of its annotations of some kind, which do not overlap."""
    inside = np.zeros(len(at_s), dtype=bool)
    for each in np.unique(marks.thread[which]).tolist():
        rows = np.flatnonzero(which & (marks.thread == each))
        here = np.flatnonzero(thread == each)
        last = np.searchsorted(marks.start_s[rows], at_s[here], side="right") - 1
        inside[here] = (last >= 0) & (at_s[here] <= marks.end_s[rows][np.maximum(last, 0)])
    return inside
