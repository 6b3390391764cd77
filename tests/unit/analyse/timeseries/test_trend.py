"""Whether values rise: the test of Mann and Kendall, held against permutations, and what it lets pass."""

import numpy as np
import pytest

from gpu_report.analyse.timeseries.trend import TREND_EPOCHS, TREND_P, mann_kendall_rise, p_of_no_rise

RISING = [10.0, 10.4, 10.1, 11.0, 11.2, 10.9, 12.1, 12.0, 12.6, 13.0]


@pytest.mark.parametrize(
    "values",
    [RISING, [*RISING[:5], *RISING[:5]], [*RISING, *RISING[::-1]], [1.0] * 6 + [2.0] * 6, RISING[:5], RISING[2:9]],
)
def test_the_probability_is_close_to_that_of_permutations(values):
    random, series = np.random.default_rng(0), np.array(values)

    def score(of):
        return sum(np.sign(of[i + 1 :] - of[i]).sum() for i in range(len(of) - 1))

    permuted = [score(random.permutation(series)) >= score(series) for _ in range(4000)]
    assert p_of_no_rise(series) == pytest.approx(np.mean(permuted), abs=0.02)


def test_a_rise_is_told_by_the_medians_of_its_thirds():
    found = mann_kendall_rise(RISING)
    assert (found.first, found.last, found.grown) == (10.1, 12.6, pytest.approx(2.5))


@pytest.mark.parametrize(
    "values", [[], RISING[5:8] + RISING[9:], RISING[:5], RISING[::-1], [5.0] * 20, [10.0, 11.0] * 10]
)
def test_no_rise_is_told_of_too_few_values_or_of_what_falls_or_stays(values):
    assert mann_kendall_rise(values) is None


def test_five_that_rise_from_one_to_the_next_are_enough_and_four_are_not():
    assert mann_kendall_rise(range(1, TREND_EPOCHS + 1)).grown == TREND_EPOCHS - 1
    assert mann_kendall_rise(range(1, TREND_EPOCHS)) is None


@pytest.mark.parametrize(
    ("values", "is_gradual"),
    [
        (RISING, True),
        ([1.0] * 8 + [2.0] * 8, False),
        ([*[5.0] * 5, *range(5, 12)], True),
        ([*range(5), *[5.0] * 9], True),
    ],
)
def test_a_rise_that_goes_on_is_told_from_one_step(values, is_gradual):
    assert mann_kendall_rise(values).is_gradual is is_gradual


# What a callback that wrote an ever longer file cost, a twentieth of the batches each (H200).
SCATTERED = [11, 15, 13, 13, 17, 17, 22, 24, 33, 37, 24, 37, 37, 30, 28, 16, 23, 29, 40, 48]


def test_what_goes_on_rising_and_scatters_is_no_step():
    assert mann_kendall_rise(SCATTERED).is_gradual
    random = np.random.default_rng(4)
    lines = [np.linspace(10, 11.3, 20) + random.normal(0, 0.2, 20) for _ in range(300)]
    steps = [np.repeat([10.0, 11.0], 10) + random.normal(0, 0.1, 20) for _ in range(300)]
    assert np.mean([found.is_gradual for each in lines if (found := mann_kendall_rise(each.tolist()))]) >= 0.95
    assert np.mean([not found.is_gradual for each in steps if (found := mann_kendall_rise(each.tolist()))]) >= 0.98


def test_by_the_end_a_line_has_risen_from_its_first_value_to_its_last():
    assert mann_kendall_rise(range(10, 15)).by_the_end == pytest.approx(4)
    assert mann_kendall_rise(range(90)).by_the_end == pytest.approx(89, rel=0.02)


def test_of_few_values_one_that_stands_out_at_the_end_is_a_step():
    assert not mann_kendall_rise([20.0, 20.1, 20.2, 20.3, 40.0]).is_gradual


def test_single_outliers_make_no_rise():
    values = [10.0, 10.1] * 8
    values[-1] = values[-4] = 60.0
    assert mann_kendall_rise(values) is None


def test_noise_alone_passes_seldom():
    random = np.random.default_rng(1)
    passed = sum(mann_kendall_rise(random.normal(10, 1, 20).tolist()) is not None for _ in range(1000))
    assert passed <= 2 * TREND_P * 1000


def test_thousands_of_values_are_compared_in_blocks():
    many = np.linspace(10, 12, 20_000) + np.random.default_rng(2).normal(0, 1, 20_000)
    found = mann_kendall_rise(many.tolist())
    assert (found.first, found.last) == (pytest.approx(10.33, abs=0.05), pytest.approx(11.67, abs=0.05))


# Epochs of a training whose GPU memory was full from the fifth epoch on, in seconds (played).
EARLY_STEP = [575.0, 573.0, 572.0, 1539.0, 1983.0, 1974.0, 1969.0, 1981.0, 1968.0, 1980.0]


def test_a_step_far_from_the_middle_is_a_rise_though_most_pairs_lie_on_one_side_of_it():
    assert p_of_no_rise(np.array(EARLY_STEP)) > TREND_P
    found = mann_kendall_rise(EARLY_STEP)
    assert (found.step, found.first, found.last, found.is_gradual) == (3, 573.0, 1974.0, False)


@pytest.mark.parametrize(
    "values",
    [
        EARLY_STEP[1:],  # two low ones
        [*EARLY_STEP[:3], *EARLY_STEP[4:8]],  # chance puts 3 of 7 first once in 35 times
        [*EARLY_STEP[:3], *EARLY_STEP[4:], 573.0],  # and back
        [100.0, 101.0, 102.0, 104.0, 105.0, 103.5, 106.0, 103.0, 104.0, 103.2, 104.4, 103.1],  # no gap
    ],
)
def test_low_values_to_begin_with_are_no_step_where_chance_or_scatter_may_put_them_there(values):
    found = mann_kendall_rise(values)
    assert found is None or found.step is None
