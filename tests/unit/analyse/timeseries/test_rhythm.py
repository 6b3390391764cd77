"""What comes again after the same time."""

import pytest

from gpu_report.analyse.timeseries.rhythm import period_s
from gpu_report.wording import every_so_often


def test_four_times_an_hour_apart_are_a_rhythm():
    assert every_so_often(period_s([40.0, 3650.0, 7230.0, 10_840.0])) == ", every hour"
    assert every_so_often(period_s([0.0, 1800.0, 3600.0, 5400.0])) == ", every 30 min"


@pytest.mark.parametrize(
    "starts_s", [[], [0.0, 3600.0, 7200.0], [0.0, 3600.0, 7200.0, 13_000.0], [0.0, 60.0, 120.0, 180.0]]
)
def test_few_times_uneven_ones_and_those_of_short_epochs_are_none(starts_s):
    assert every_so_often(period_s(starts_s)) == ""
