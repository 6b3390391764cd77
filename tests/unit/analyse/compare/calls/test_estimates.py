"""Intervals of calls hold for calls that resemble their neighbours, in runs of any length."""

import math

import numpy as np
import pytest
from support.made_calls import latencies

from gpu_report.analyse.compare.calls.estimates import (
    Estimate,
    calls_for,
    change_ends,
    mean_estimate,
    quantile_estimate,
    ratio_estimate,
)

FIGURES = {
    "p50": lambda values: quantile_estimate(values, 0.5),
    "p95": lambda values: quantile_estimate(values, 0.95),
    "mean": mean_estimate,
}


@pytest.mark.parametrize(("before", "after"), [(400, 400), (300, 1500)])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_at_most_one_pair_in_a_hundred_of_the_same_has_a_certain_change(before, after, correlation):
    wrong = dict.fromkeys(FIGURES, 0)
    for pair in range(100):
        sides = [latencies(n, 2 * pair + at, correlation) for at, n in enumerate((before, after))]
        for name, figure in FIGURES.items():
            low, high = change_ends(*map(figure, sides))
            wrong[name] += low > 0 or high < 0
    assert max(wrong.values()) <= 3  # of a rate of 1 %, more than 3 of 100 are seen once in fifty times


def test_a_slowdown_of_a_tenth_is_certain_with_a_thousand_calls():
    for figure in FIGURES.values():
        before, after = (figure(latencies(1000, seed, mean_ms=mean)) for seed, mean in ((1, 15.0), (2, 16.5)))
        assert change_ends(before, after)[0] > 0


def test_a_percentile_of_few_calls_has_an_end_that_nobody_knows_and_says_how_many_would_do():
    few = quantile_estimate(latencies(210, 1), 0.95)
    assert few.low < few.value < few.high == math.inf
    far, near = few.calls_to_tell_from(2 * few.value), few.calls_to_tell_from(1.01 * few.value)
    assert 210 < far < 1000 < near
    assert quantile_estimate(latencies(far, 1), 0.95).high < math.inf
    assert quantile_estimate(latencies(199, 1), 0.95) is None


def test_a_ratio_is_of_sums_and_a_slow_stretch_widens_it():
    images = np.array([1.0, 3.0] * 200)
    even = ratio_estimate(2 * images, images)
    assert (even.value, even.low, even.high) == (2.0, 2.0, 2.0)
    steady = latencies(400, 1, 0.0)
    stretch = np.concatenate([steady[:200], 1.5 * steady[200:]])
    width = [each.high - each.low for each in map(mean_estimate, (steady, stretch))]
    assert width[1] > 5 * width[0]


def test_a_mean_needs_more_calls_the_nearer_it_is_to_a_limit():
    estimate = Estimate(10.0, 8.0, 12.0, 100)
    assert [estimate.calls_to_tell_from(limit) for limit in (14.0, 11.0, 9.0, 10.0)] == [100, 400, 400, 100]
    assert Estimate(10.0, 8.0, math.inf, 100).calls_to_tell_from(12.0) == 100


def test_what_is_measured_in_too_few_batches_has_no_interval():
    values = latencies(400, 1)
    assert ratio_estimate(values, np.ones(400), 2) is None
    assert mean_estimate(values[:9]) is None


def test_as_many_calls_as_are_said_would_make_the_change_certain():
    before, after = Estimate(10.0, 8.0, 12.0, 400), Estimate(11.0, 9.0, 13.0, 900)
    enough = calls_for(before, after)
    assert enough == pytest.approx(400 * 8, rel=0.01)  # the interval reaches the square root of 8 times too far


def test_missing_values_are_left_out():
    values = latencies(600, 1)
    assert mean_estimate(np.where(np.arange(600) % 2, np.nan, values)).count == 300
    assert quantile_estimate(np.where(np.arange(600) % 2, np.nan, values), 0.95).count == 300
