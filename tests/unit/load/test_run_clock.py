"""One moment is placed as a column of them is."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.load.run_clock import Boot, RunClock

seconds = st.floats(-1e9, 1e9)
boots = st.lists(st.builds(Boot, seconds, seconds | st.just(float("nan")), seconds), min_size=1, max_size=3)


@given(boots=boots.map(tuple), wall=seconds, mono=st.none() | seconds)
def test_one_moment_is_placed_as_many_are(boots, wall, mono):
    clock = RunClock(boots)
    (expected,) = clock.times(np.array([wall]), np.array([np.nan if mono is None else mono]))
    assert clock.t(wall, mono) == pytest.approx(expected, nan_ok=True, abs=0, rel=0)
