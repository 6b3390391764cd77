"""Walks from operators to those around them, for all of a trace at once."""

from collections.abc import Iterator

import numpy as np

from gpu_report.analyse.trace.gpu_work import NONE, Bools, Floats, Ints, take
from gpu_report.model import TraceMarks, TraceOperators


def nearest(operators: TraceOperators, values: Ints) -> Ints:
    """Return of each operator the first value that is not NONE, of itself and those around it; NONE where none has."""
    found = values
    for jump in _jumps(operators):
        found = np.where(found == NONE, take(found, jump, NONE), found)
    return found


def outermost(operators: TraceOperators, which: Bools) -> Ints:
    """Return of each operator the row of the outermost one of some kind around it, or itself; NONE where none is."""
    found: Ints = np.where(which, np.arange(len(operators)), NONE)
    for jump in _jumps(operators):
        further = take(found, jump, NONE)
        found = np.where(further == NONE, found, further)
    return found


def _jumps(operators: TraceOperators) -> Iterator[Ints]:
    """Yield the row 1, 2, 4, 8 ... levels further out of each operator: a walk to all around it takes few steps.

    What was found up to one of these levels is found up to the next by looking once at that row.
    """
    jump: Ints = operators.parent.astype(np.int64)
    while (jump != NONE).any():
        yield jump
        jump = take(jump, jump, NONE)


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
