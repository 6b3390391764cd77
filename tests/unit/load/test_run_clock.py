"""One moment is placed as a column of them is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.load.run_clock import Boot, RunClock, run_together

seconds = st.floats(-1e9, 1e9)
boots = st.lists(st.builds(Boot, seconds, seconds | st.just(float("nan")), seconds), min_size=1, max_size=3)


@given(boots=boots.map(tuple), wall=seconds, mono=st.none() | seconds)
def test_one_moment_is_placed_as_many_are(boots, wall, mono):
    clock = RunClock(boots)
    (expected,) = clock.times(np.array([wall]), np.array([np.nan if mono is None else mono]))
    assert clock.t(wall, mono) == pytest.approx(expected, nan_ok=True, abs=0, rel=0)


def test_clocks_of_which_one_was_set_a_dozen_times_count_the_same_seconds():
    mono = np.arange(600.0)
    jumps = np.where(np.arange(600) % 45 == 44, 600.0, 0.0)
    assert run_together(1.8e9 + mono + np.cumsum(jumps), mono)
    assert not run_together(1.8e9 + mono, mono * 1e6)
