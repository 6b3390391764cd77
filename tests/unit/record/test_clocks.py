import pytest

from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks

BEFORE = Clocks(wall_s=1000.0, mono_s=50.0, boot_s=60.0)


def later(wall=1.0, mono=1.0, boot=1.0):
    return Clocks(BEFORE.wall_s + wall, BEFORE.mono_s + mono, BEFORE.boot_s + boot)


def test_clocks_that_go_together_tell_nothing():
    assert clocks.step_s(BEFORE, later()) == 0
    assert clocks.suspended_s(BEFORE, later()) == 0


def test_a_clock_set_back_an_hour_is_a_step_and_no_sleep():
    after = later(wall=-3599.0)
    assert clocks.step_s(BEFORE, after) == pytest.approx(-3600)
    assert clocks.suspended_s(BEFORE, after) == 0


def test_a_sleep_of_an_hour_is_no_step():
    after = later(wall=3601.0, boot=3601.0)
    assert clocks.suspended_s(BEFORE, after) == pytest.approx(3600)
    assert clocks.step_s(BEFORE, after) == 0


def test_slewing_by_ntp_is_no_step():
    assert clocks.step_s(BEFORE, later(wall=1.4)) == 0


def test_a_wall_time_is_put_on_all_clocks():
    assert clocks.at_wall(998.0, BEFORE) == Clocks(998.0, 48.0, 58.0)
