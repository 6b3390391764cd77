"""What is worked out for many stretches at once is what it is for each of them."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_report.analyse.timeseries.intervals import as_array, indices_within, intersect, mask_in_any, minus
from gpu_report.analyse.timeseries.weighted_stats import (
    SHORT,
    StatsOfInterval,
    stats_by_interval,
    weighted_stats,
    weighted_sum,
)

READINGS = st.sampled_from([0.0, 7.0, 90.0, 100.0, 344.2, 344.25, np.nan, -3.0]) | st.floats(-1e6, 1e6)
edges = st.floats(0, 100)
spans = st.lists(st.tuples(edges, edges).map(sorted).map(tuple), max_size=8)


def apart(drawn):
    """Return spans in order and without overlap."""
    times = sorted({t for span in drawn for t in span})
    return list(zip(times[::2], times[1::2], strict=False))


@example(values=[0.0, 0.0, 0.0, float("nan"), 0.0, 0.0, 90.0, 7.0], cuts=[(1.0, 8.0)], seed=250)
@settings(max_examples=200, deadline=None)
@given(values=st.lists(READINGS, max_size=60), cuts=spans, seed=st.integers(0, 1000))
def test_statistics_of_many_stretches_are_those_of_each(values, cuts, seed):
    t_s = np.arange(len(values), dtype=float)
    values = np.array(values, dtype=float)
    weights = np.random.default_rng(seed).choice([0.0, 1.0, 0.999, 2.0], len(values))
    starts, ends = as_array(cuts).T
    table = stats_by_interval(t_s, {"x": values}, weights, (starts, ends))["x"]
    for number, (start, end) in enumerate(cuts):
        part = (t_s >= start) & (t_s < end)
        expected = weighted_stats(values[part], weights[part])
        found = table.of(number)
        assert (found is None) == (expected is None)
        if expected is None or found is None:
            assert np.isnan(table.mean[number])
            continue
        assert (found.min, found.max) == (expected.min, expected.max)
        assert found.mean == pytest.approx(expected.mean, rel=1e-12, abs=0)  # summed in another order
        assert (found.p5, found.p50, found.p95) == pytest.approx((expected.p5, expected.p50, expected.p95), abs=1e-6)
        assert table.mean[number] == pytest.approx(expected.mean, rel=1e-9, abs=1e-6)
        assert table.max[number] == expected.max


def test_statistics_by_gpu_have_only_what_is_known():
    table = stats_by_interval(
        np.arange(4.0),
        {"power_w": np.array([1, 3, np.nan, np.nan])},
        np.ones(4),
        (np.array([0, 2.0]), np.array([2, 4.0])),
    )
    first, second = (StatsOfInterval({3: lambda: table}, number) for number in (0, 1))
    assert list(first) == [3]
    assert first[3]["power_w"].mean == 2
    assert second[3] == {}


@pytest.mark.parametrize("unit", [1, 10, 100])
@pytest.mark.parametrize("most", [100, 10**9])  # few different values are counted, many are sorted
def test_percentiles_of_whole_readings_are_those_of_weighted_ranks(unit, most):
    draw = np.random.default_rng(0)
    values, weights = draw.integers(-50, most, 2000) / unit, draw.uniform(0.1, 2.5, 2000)
    order = np.argsort(values, kind="stable")
    ranks = (np.cumsum(weights[order]) - weights[order] / 2) / weights.sum()
    stats = weighted_stats(values, weights)
    assert (stats.p5, stats.p50, stats.p95) == pytest.approx(np.interp([0.05, 0.5, 0.95], ranks, values[order]))


@given(drawn=spans, cuts=spans)
def test_spans_without_cuts_are_those_without_each_cut_in_turn(drawn, cuts):
    expected = rest = [span for span in apart(drawn) if span[0] < span[1]]
    for a, b in cuts:
        if a < b:
            pieces = (piece for s, e in rest for piece in ((s, min(e, a)), (max(s, b), e)))
            expected = rest = [piece for piece in pieces if piece[0] < piece[1]]
    assert minus(apart(drawn), cuts) == sorted(expected)


@given(left=spans, right=spans)
def test_what_lies_in_both_is_what_lies_in_any_pair(left, right):
    left, right = apart(left), apart(right)
    pairs = [(max(a, c), min(b, d)) for a, b in left for c, d in right]
    assert intersect(left, right) == sorted(pair for pair in pairs if pair[0] < pair[1])


@given(drawn=spans, side=st.sampled_from(["left", "right"]))
def test_rows_are_marked_and_listed_as_span_by_span(drawn, side):
    t_s = np.arange(101, dtype=float)
    parts = [slice(*np.searchsorted(t_s, span, side=side)) for span in drawn]
    expected = np.zeros(len(t_s), dtype=bool)
    for part in parts:
        expected[part] = True
    np.testing.assert_array_equal(mask_in_any(t_s, drawn, side), expected)
    listed = [row for part in parts for row in range(*part.indices(len(t_s)))]
    assert indices_within(t_s, drawn, side).tolist() == listed


def test_a_weighted_sum_in_pieces_is_the_whole():
    values, weights = np.random.default_rng(0).random((2, 3 * SHORT + 5))
    assert weighted_sum(values, weights) == pytest.approx(float(np.sum(values * weights)))
    assert weighted_sum(values[:100], weights[:100]) == float(values[:100] @ weights[:100])


def test_means_and_peaks_worked_out_in_parts_are_those_of_all_at_once(monkeypatch):
    drawn = np.random.default_rng(1)
    values, weights = drawn.choice([0.0, 7.5, 90.0, np.nan], 200), drawn.choice([0.0, 0.2, 1.0], 200)
    starts = drawn.uniform(-5, 205, 60)  # in any order, and overlapping
    spans = starts, starts + drawn.uniform(0, 40, 60)
    whole = stats_by_interval(np.arange(200.0), {"x": values}, weights, spans)["x"]
    expected = whole.mean, whole.max
    monkeypatch.setattr("gpu_report.analyse.timeseries.weighted_stats.ROWS_AT_ONCE", 16)
    parts = stats_by_interval(np.arange(200.0), {"x": values}, weights, spans)["x"]
    np.testing.assert_array_equal((parts.mean, parts.max), expected)
