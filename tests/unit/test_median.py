import numpy as np
import pytest

from gpu_report.median import ENOUGH, enough_of, median_of, medians_of


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 257, 1000])
def test_it_is_what_numpy_says(count, dtype):
    drawn = np.random.default_rng(count)
    for values in (drawn.random(count), drawn.integers(0, 101, count), np.full(count, 100.0), -drawn.random(count)):
        readings = values.astype(dtype)
        before = readings.copy()
        assert median_of(readings) == float(np.median(readings))
        assert (readings == before).all()


def test_of_each_row():
    for columns in (5, 6):
        rows = np.random.default_rng(columns).integers(0, 101, (40, columns)).astype(np.float32)
        assert (medians_of(rows) == np.median(rows, axis=1)).all()


@pytest.mark.parametrize("values", [[np.nan], [1.0, np.nan], [np.nan, 1.0, 2.0], [np.nan, np.nan, np.inf, 3.0]])
def test_a_reading_that_is_missing_is_not_left_out(values):
    for times in (1, 100):
        assert np.isnan(median_of(np.array(values * times)))


def test_what_is_without_end_stays_so():
    assert median_of(np.array([1.0, np.inf, np.inf])) == np.inf
    assert median_of(np.array([-np.inf, 1.0])) == -np.inf


def test_few_are_all_looked_at():
    few = np.arange(2.0 * ENOUGH)
    assert enough_of(few) is few


@pytest.mark.parametrize("period", [2, 5, 12, 1000])
def test_of_many_values_some_are_enough_wherever_they_repeat(period):
    many = np.arange(12 * ENOUGH) % period
    some = enough_of(many)
    assert len(some) == ENOUGH
    assert np.bincount(some[:65_536], minlength=min(period, 12)).min() > 0
    assert median_of(some.astype(float)) == pytest.approx((period - 1) / 2, rel=0.02, abs=0.5)
