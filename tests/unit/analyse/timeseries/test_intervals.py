"""Stretches of time, held against looking at every one of them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import (
    ROWS_AT_ONCE,
    IntervalIndex,
    as_array,
    mask_of_ranges,
    minus,
    parts,
    runs_of,
    union,
)

MOMENTS = st.integers(0, 30).map(float)
SPANS = st.lists(st.tuples(MOMENTS, MOMENTS).map(sorted).map(tuple), max_size=12)


@given(SPANS, MOMENTS, MOMENTS)
def test_what_touches_a_stretch_is_what_begins_before_its_end_and_ends_after_its_beginning(spans, one, other):
    start, end = sorted((one, other))
    by_looking = sorted(span for span in spans if span[0] <= end and span[1] >= start)
    assert sorted(IntervalIndex(spans, lambda span: span)(start, end)) == by_looking


@given(SPANS, SPANS)
def test_what_is_cut_off_is_what_no_cut_covers(spans, cuts):
    halves = [moment + 0.5 for moment in range(30)]
    left = [sum(a <= half < b for a, b in spans) * (not any(a <= half < b for a, b in cuts)) for half in halves]
    rest = minus(spans, cuts)
    assert [sum(a <= half < b for a, b in rest) for half in halves] == left
    assert rest == sorted(rest)
    assert all(start < end for start, end in rest)


@given(SPANS)
def test_many_stretches_take_together_what_a_few_do(spans):
    by_looking, found = interval_cover(spans), interval_cover(as_array(spans))
    assert found.edges_s.tolist() == by_looking.edges_s.tolist() == [edge for span in union(spans) for edge in span]
    assert found.covered_s.tolist() == by_looking.covered_s.tolist()


def test_parts_are_all_rows_in_order():
    for count in (0, 1, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 1):
        rows = np.concatenate([np.arange(count)[part] for part in parts(count)])
        assert rows.tolist() == list(range(count))


@given(st.lists(st.booleans(), max_size=20))
def test_the_runs_of_marked_rows_mark_the_same_rows_and_lie_apart(marked):
    first, last = runs_of(np.array(marked, dtype=bool))
    assert mask_of_ranges(len(marked), first, last).tolist() == marked
    assert (first < last).all()
    assert (last[:-1] < first[1:]).all()
