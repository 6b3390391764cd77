import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.analyse.timeseries.intervals import mask_of_ranges, rows_before
from gpu_report.analyse.timeseries.weighted_stats import weighted_stats

TIMES = st.lists(st.integers(0, 20).map(float), max_size=60).map(sorted)


@given(rows=TIMES, moments=TIMES, side=st.sampled_from(["left", "right"]))
def test_rows_before_moments_are_those_of_a_search_for_each(rows, moments, side):
    row_t_s, t_s = np.array(rows, dtype=float), np.array(moments, dtype=float)
    np.testing.assert_array_equal(rows_before(row_t_s, t_s, side), np.searchsorted(row_t_s, t_s, side=side))


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=8))
def test_what_stretches_cover_is_what_lies_in_any_of_them(stretches):
    first, last = np.array(stretches, dtype=np.intp).reshape(-1, 2).T
    expected = [any(a <= row < b for a, b in stretches) for row in range(12)]
    assert mask_of_ranges(12, first, last).tolist() == expected


@given(
    readings=st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0.0, 0.2, 1.0, 3.5])), min_size=1, max_size=80),
    unit=st.sampled_from([1.0, 10.0, 100.0, 7.0]),
)
def test_percentiles_are_those_of_the_sorted_readings(readings, unit):
    values = np.array([value for value, _ in readings]) / unit
    weights = np.array([weight for _, weight in readings])
    weights = weights if weights.sum() > 0 else np.ones(len(weights))
    order = np.argsort(values, kind="stable")
    value, weight = values[order][weights[order] > 0], weights[order][weights[order] > 0]
    expected = np.interp([0.05, 0.5, 0.95], (np.cumsum(weight) - weight / 2) / weight.sum(), value)
    stats = weighted_stats(values, weights)
    assert stats is not None
    assert (stats.p5, stats.p50, stats.p95) == pytest.approx(tuple(expected), abs=1e-9)
    assert (stats.min, stats.max) == (values.min(), values.max())
