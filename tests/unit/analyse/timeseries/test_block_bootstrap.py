"""Intervals: as wide as Student says, blocks as long as the correlation, and right as often as they claim."""

import numpy as np
import pytest

from gpu_report.analyse.compare.metrics import STATISTICS
from gpu_report.analyse.timeseries.block_bootstrap import block_length, change_intervals, student_quantile, widened

MEAN = STATISTICS["mean"]


@pytest.mark.parametrize(
    ("share", "degrees", "expected"),  # tables of Student's t distribution
    [(0.975, 1, 12.706), (0.995, 4, 4.604), (0.975, 10, 2.228), (0.995, 30, 2.750), (0.995, 1000, 2.581)],
)
def test_student_quantiles_are_those_of_the_tables(share, degrees, expected):
    assert student_quantile(share, degrees) == pytest.approx(expected, abs=0.002)


def test_few_values_widen_the_interval_and_many_do_not():
    assert widened(5, 1, 0.99)[0] < 1e-5
    assert widened(9, 3, 0.99)[0] < widened(9, 1, 0.99)[0]
    assert widened(10_000, 1, 0.99) == pytest.approx((0.005, 0.995), abs=1e-4)


def correlated(count, coefficient, seed=3):
    random = np.random.default_rng(seed)
    values = [0.0]
    for noise in random.normal(size=count):
        values.append(coefficient * values[-1] + noise)
    return np.array(values[1:])


def test_blocks_are_as_long_as_the_correlation():
    assert block_length(correlated(400, 0.0)) <= 2
    assert 5 <= block_length(correlated(400, 0.5)) < block_length(correlated(400, 0.9)) <= 60


def test_blocks_of_short_and_of_constant_series_are_bounded():
    assert block_length(np.full(9, 4.0)) == 1
    assert block_length(np.arange(9.0)) <= 3
    assert block_length(np.array([1.0, 2.0])) == 1


def test_the_interval_holds_the_true_change_as_often_as_it_claims():
    random = np.random.default_rng(5)
    missed = 0
    for _ in range(300):
        before, after = random.normal(10, 0.5, 9), random.normal(11, 0.5, 9)
        (low, high), _, _ = change_intervals([before], after, MEAN)
        missed += not low <= 1 <= high
    assert missed <= 9  # 99 %: 3 are expected, and 10 or more come about once in a thousand times


def test_a_correlated_series_has_a_wider_interval_than_the_same_values_shuffled():
    series = correlated(200, 0.9)
    shuffled = np.random.default_rng(1).permutation(series)
    wide, _, _ = change_intervals([series], series, MEAN)
    narrow, _, _ = change_intervals([shuffled], shuffled, MEAN)
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


def test_the_same_values_give_the_same_interval():
    values = correlated(12, 0.3)
    assert change_intervals([values], values + 1, MEAN) == change_intervals([values], values + 1, MEAN)


def test_of_several_baselines_their_median_counts():
    run = np.full(6, 10.0)
    (low, high), share, _ = change_intervals([np.full(6, 8.0), np.full(6, 9.0), np.full(6, 20.0)], run, MEAN)
    assert (low, high) == (1.0, 1.0)
    assert share == pytest.approx((1 / 9, 1 / 9))


def test_a_baseline_that_may_be_zero_has_no_share():
    assert change_intervals([np.zeros(6)], np.ones(6), MEAN)[1] is None
