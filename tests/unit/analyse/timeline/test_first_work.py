"""What a GPU reaches, by which its first work is known."""

import numpy as np
import pytest

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeline.activity import REACHED_SHARE, _reached_pct


@pytest.mark.parametrize("readings", [1, 2, 19, 20, 21, 400])
@pytest.mark.parametrize("busy_share", [0.0, 0.03, 0.05, 0.06, 0.5, 1.0])
def test_what_is_over_twice_the_line_is_not_told_apart(readings, busy_share):
    at_random = np.random.default_rng(readings)
    busy = at_random.random(readings) < busy_share
    util = np.where(busy, at_random.integers(40, 101, readings), at_random.integers(0, 40, readings)).astype(np.float32)
    percentile = float(np.percentile(util, 100 * REACHED_SHARE))
    assert min(_reached_pct(util), 2 * th.LOW_PCT) == min(percentile, 2 * th.LOW_PCT)
