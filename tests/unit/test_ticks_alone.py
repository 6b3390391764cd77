import numpy as np
import pytest

from gpu_report import ticks_alone as module
from gpu_report.ticks_alone import ticks_alone

TICKS_S = np.arange(100.0)


@pytest.mark.parametrize(
    ("kept_t_s", "alone"),
    [
        (np.arange(0.1, 99.0, 0.2), []),
        (np.arange(2.1, 99.0, 0.2), [0, 1]),  # the driver's begin later
        (np.arange(0.1, 97.1, 0.2), [98, 99]),  # they end sooner
        (np.concatenate([np.arange(0.1, 40.0, 0.2), np.arange(43.1, 99.0, 0.2)]), [41, 42]),  # a hole
        (np.array([50.0]), [*range(50), *range(51, 100)]),
    ],
)
def test_a_tick_is_alone_where_the_driver_kept_nothing_near_it(kept_t_s, alone, monkeypatch):
    for rows in (7, module.PART_ROWS):
        monkeypatch.setattr(module, "PART_ROWS", rows)
        assert np.flatnonzero(ticks_alone(TICKS_S, kept_t_s, 1.0)).tolist() == alone


def test_there_is_no_tick_alone_where_there_is_no_tick():
    assert ticks_alone(np.empty(0), np.array([1.0]), 1.0).tolist() == []


def test_a_hole_between_two_parts_is_seen(monkeypatch):
    monkeypatch.setattr(module, "PART_ROWS", 5)
    kept_t_s = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 5.0, 5.2])  # the hole lies after the fifth
    assert np.flatnonzero(ticks_alone(np.arange(6.0), kept_t_s, 1.0)).tolist() == [2, 3, 4]
