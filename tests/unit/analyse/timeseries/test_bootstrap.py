"""Intervals: as wide as Student says, wider for neighbours that are alike, and right as often as they claim."""

import numpy as np
import pytest

from gpu_report.analyse.compare.metrics import STATISTICS
from gpu_report.analyse.timeseries.bootstrap import change_interval
from gpu_report.analyse.timeseries.student import student_quantile

MEAN = STATISTICS["mean"]


@pytest.mark.parametrize(
    ("share", "degrees", "expected"),  # tables of Student's t distribution
    [(0.975, 1, 12.706), (0.995, 4, 4.604), (0.975, 10, 2.228), (0.995, 30, 2.750), (0.995, 1000, 2.581)],
)
def test_student_quantiles_are_those_of_the_tables(share, degrees, expected):
    assert student_quantile(share, degrees) == pytest.approx(expected, abs=0.002)


def correlated(count, coefficient, seed=3):
    """Return a first-order autoregressive series of mean 100 and standard deviation 3, from its stationary state."""
    random = np.random.default_rng(seed)
    noise = 3 * random.standard_normal(count)
    values = [noise[0]]
    for each in noise[1:]:
        values.append(coefficient * values[-1] + (1 - coefficient**2) ** 0.5 * each)
    return 100 + np.array(values)


@pytest.mark.parametrize("coefficient", [0.0, 0.3, 0.7])
@pytest.mark.parametrize(
    ("count", "pairs"),
    [
        (5, 200),
        pytest.param(10, 200, marks=pytest.mark.long),
        (20, 200),
        pytest.param(50, 100, marks=pytest.mark.long),
        (200, 40),
    ],
)
def test_the_interval_holds_however_alike_neighbours_are(count, pairs, coefficient):
    """At 1 % wrong, more than 6 of 200, 5 of 100 or 3 of 40 come about less than once in a hundred times."""
    seeds = range(1000, 1000 + 2 * pairs, 2)
    found = [
        change_interval([correlated(count, coefficient, seed)], correlated(count, coefficient, seed + 1), MEAN)
        for seed in seeds
    ]
    assert sum(each.is_certain for each in found) <= {200: 6, 100: 4, 40: 2}[pairs]


def test_a_correlated_series_has_a_wider_interval_than_the_same_values_shuffled():
    series = correlated(200, 0.9)
    shuffled = np.random.default_rng(1).permutation(series)
    wide, narrow = (change_interval([each], each, MEAN).ends for each in (series, shuffled))
    assert wide[1] - wide[0] > 2 * (narrow[1] - narrow[0])


def test_what_only_independent_values_would_make_certain_says_how_many_are_enough():
    before, after = correlated(10, 0.7, 1), 1.06 * correlated(10, 0.7, 2)
    found = change_interval([before], after, MEAN)
    assert not found.is_certain
    assert found.enough is not None
    assert 10 < found.enough < 200


def test_so_many_values_are_enough_more_often_than_not():
    before = np.array([96.0, 97.0, 101.0, 103.0, 104.0, 99.0])
    enough = change_interval([before], before[::-1] + 10, MEAN).enough
    assert enough is not None
    random = np.random.default_rng(7)
    pairs = [(random.normal(100, 3, enough), random.normal(110, 3, enough)) for _ in range(50)]
    assert sum(change_interval([one], other, MEAN).is_certain for one, other in pairs) > 25


def test_a_change_that_is_certain_or_lost_in_the_spread_asks_for_no_more_values():
    random = np.random.default_rng(8)
    before = random.normal(100, 3, 30)
    assert change_interval([before], before + 20, MEAN).enough is None
    assert change_interval([before], before + 0.1, MEAN).enough is None


def test_the_same_values_give_the_same_interval():
    values = correlated(12, 0.3)
    assert change_interval([values], values + 1, MEAN) == change_interval([values], values + 1, MEAN)


def test_of_several_baselines_their_median_counts():
    found = change_interval([np.full(6, 8.0), np.full(6, 9.0), np.full(6, 20.0)], np.full(6, 10.0), MEAN)
    assert found.ends == (1.0, 1.0)
    assert found.share == pytest.approx((1 / 9, 1 / 9))


def test_a_baseline_of_zero_has_no_share():
    assert change_interval([np.zeros(6)], np.ones(6), MEAN).share is None


def test_no_interval_has_a_value_fall_by_more_than_all_of_it():
    before, after = np.array([1.0, 9.0, 2.0, 8.0, 5.0]), np.array([1.0, 2.0, 8.0, 9.0, 4.0])
    share = change_interval([before], after, MEAN).share
    assert share is not None
    assert share[0] == -1.0
