"""Ends of epochs beside each other: those of a training that validates only every few epochs."""

import pytest

from gpu_report.analyse.timeline.epoch_ends import EpochEnd, EpochEnds
from gpu_report.model import EpochRow

EPOCH_S, SAVES_S, VALIDATES_S, EVERY = 600.0, 2.0, 96.0, 10


def every_tenth(longer=None):
    """Return the reported ends of 70 epochs, of which each tenth validates, the one that is `longer` for a minute more.

    A row appears where the validation is over.
    """
    found, t_s = [], 0.0
    for epoch in range(1, 71):
        took_s = VALIDATES_S * (epoch % EVERY == 0) + 60.0 * (epoch == longer)
        begin_s, row_s = t_s + EPOCH_S, t_s + EPOCH_S + took_s
        row = EpochRow(1, 1, epoch, row_s, t_s)
        found.append(EpochEnd(row, epoch == 1, (begin_s, row_s + SAVES_S), from_callbacks=True))
        t_s = row_s + SAVES_S
    return EpochEnds(tuple(found), interval_s=5.0)


@pytest.mark.parametrize("epoch", [10, 50, 70])
def test_an_end_that_validates_is_compared_with_those_that_do(epoch):
    ends = every_tenth()
    one = ends.all[epoch - 1]
    assert not ends.is_slow(one)
    assert ends.typical_s(one) == (pytest.approx(VALIDATES_S), pytest.approx(SAVES_S))
    assert ends.explains(one.row.row_t_s - 35.0, one.row.row_t_s + SAVES_S + 5.0)


def test_one_that_takes_far_longer_than_those_that_validate_is_slow():
    ends = every_tenth(longer=50)
    assert [one.row.epoch for one in ends.all if ends.is_slow(one)] == [50]
