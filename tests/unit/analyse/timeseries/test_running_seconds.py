import numpy as np
import pytest

from gpu_report.analyse.timeseries.gpu_series import running_total
from gpu_report.analyse.timeseries.intervals import ROWS_AT_ONCE
from gpu_report.analyse.timeseries.running_seconds import RunningSeconds

RANDOM = np.random.default_rng(7)


@pytest.mark.parametrize("count", [0, 5, ROWS_AT_ONCE, 2 * ROWS_AT_ONCE + 3])
def test_they_are_those_that_are_kept_of_every_reading(count):
    seconds, some = RANDOM.random(count), RANDOM.random(count) < 0.8
    whole, found = running_total(seconds, some), RunningSeconds(seconds, some)
    assert found.total == whole[-1]
    rows = [0, count, count // 2, *(row for row in (ROWS_AT_ONCE - 1, ROWS_AT_ONCE, ROWS_AT_ONCE + 1) if row <= count)]
    for row in rows:
        assert found.before(row) == whole[row]
        for asked in (whole[row], np.nextafter(whole[row], np.inf), whole[-1] + 1):
            assert found.first_at(float(asked)) == np.searchsorted(whole, asked)
