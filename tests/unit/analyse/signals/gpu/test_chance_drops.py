"""Low readings that follow each other by chance, where readings are far apart."""

import numpy as np
import pytest
from support.runs import make_run

from gpu_report.analyse import analyse

READINGS = 1500


def drops(low, interval_s):
    """Return the drops of a GPU with such readings low, one every so many seconds."""
    util = np.where(low, 10.0, 95.0).tolist()
    run = make_run([0.0] * 5 + util, interval_s=interval_s)
    return [each for finding in analyse(run).findings if finding.rule == "drop" for each in finding.each]


def waiting(share, seed=7, count=READINGS):
    """Return which readings are low of a GPU that waits between batches for such a share of its time."""
    return np.random.default_rng(seed).random(count) < share


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("interval_s", [5.0, 15.0])
def test_a_gpu_that_waits_between_batches_has_no_drops(share, interval_s):
    assert drops(waiting(share), interval_s) == []


def test_what_is_rare_in_one_stretch_of_readings_is_not_in_those_of_a_day():
    assert drops(waiting(0.34, seed=3, count=17_280), 5.0) == []


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3])
def test_what_chance_does_not_make_is_a_drop(share):
    low = waiting(share)
    low[700:730] = True
    (drop,) = drops(low, 5.0)
    assert drop.start_t_s == pytest.approx(25 + 700 * 5, abs=15)


def test_many_short_drops_alike_are_no_chance():
    low = np.zeros(READINGS, dtype=bool)
    for first in range(50, READINGS, 60):
        low[first : first + 4] = True
    assert len(drops(low, 5.0)) == 25
