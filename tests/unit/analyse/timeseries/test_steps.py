"""The steps between readings are what they would be if they were kept."""

import numpy as np
import pytest

from gpu_report.analyse.timeseries.steps import ReadingSeconds, as_steps

RANDOM = np.random.default_rng(5)


def readings(count, gaps=()):
    t_s = np.cumsum(RANDOM.choice([0.199, 0.2, 0.201], count)) + 100 * np.isin(np.arange(count), gaps).cumsum()
    seconds = np.append(np.diff(t_s), 0.2)
    seconds[seconds > 50] = 0.2
    return t_s, seconds


@pytest.mark.parametrize(
    ("count", "gaps"), [(1000, ()), (1000, (1, 500, 999)), (200_000, (1, 65_536, 65_537, 131_072))]
)
def test_any_of_them_are_those_that_would_be_kept(count, gaps):
    t_s, seconds = readings(count, gaps)
    steps = as_steps(t_s, seconds)
    assert isinstance(steps, ReadingSeconds)
    assert len(steps) == count
    assert steps.sum() == float(seconds.sum())
    some = RANDOM.integers(0, count, 50)
    for rows in (
        slice(None), slice(3, 70), slice(-5, None), slice(70, 3), slice(count - 1, count), slice(count, None),
        slice(0, 65_537), slice(65_535, 65_540), some, some - count, RANDOM.random(count) < 0.3, np.empty(0, dtype=int),
        0, -1, count - 1,
    ):  # fmt: skip
        np.testing.assert_array_equal(steps[rows], seconds[rows])


def test_backwards_they_cannot_be_asked_for():
    t_s, seconds = readings(1000)
    with pytest.raises(ValueError, match="slice"):
        as_steps(t_s, seconds)[::-1]


def test_they_are_kept_where_many_readings_do_not_last_to_the_next():
    t_s, seconds = readings(1000, range(1, 1000, 5))
    assert as_steps(t_s, seconds) is seconds


@pytest.mark.parametrize("count", [0, 1, 2])
def test_of_hardly_any_readings(count):
    t_s, seconds = readings(count) if count else (np.empty(0), np.empty(0))
    np.testing.assert_array_equal(as_steps(t_s, seconds)[:], seconds)
