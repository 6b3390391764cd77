import numpy as np
import pytest

from gpu_report.load import samples
from gpu_report.load.samples import _order


@pytest.mark.parametrize("part_rows", [7, samples.PART_ROWS])
@pytest.mark.parametrize("kind", [np.uint8, np.float64])
@pytest.mark.parametrize("late", [0, 1, 40])  # rows that come later in the file than in time
def test_rows_are_by_gpu_and_time_and_those_of_one_moment_as_in_the_file(part_rows, kind, late, monkeypatch):
    monkeypatch.setattr(samples, "PART_ROWS", part_rows)
    at_random = np.random.default_rng(late)
    gpus, t_s = at_random.choice([0, 1, 5, 200], 200).astype(kind), np.repeat(np.arange(50.0), 4)
    some = at_random.choice(200, late, replace=False)
    t_s[some] = at_random.permutation(t_s[some])
    valid = at_random.random(200) > 0.2
    valid[14:28] = False  # all of two parts
    if kind is np.float64:
        gpus[~valid] = np.nan
    order, times = _order(t_s, gpus, valid)
    expected = [row for row in np.lexsort((np.arange(200), t_s, gpus)).tolist() if valid[row]]
    assert order.tolist() == expected
    assert times.tolist() == t_s[expected].tolist()


def test_rows_of_one_gpu_in_order_are_not_copied():
    t_s = np.arange(5.0)
    order, times = _order(t_s, np.zeros(5, dtype=np.uint8), np.ones(5, dtype=bool))
    assert order == slice(None)
    assert times is t_s


def test_no_row_is_valid():
    order, times = _order(np.arange(3.0), np.array([0, 1, 2], dtype=np.uint8), np.zeros(3, dtype=bool))
    assert order.tolist() == times.tolist() == []
