"""Whether a function of the user's takes ever longer a batch, and what that makes of the epochs to come."""

import numpy as np
import pytest

from gpu_report.analyse.signals.code.call_growth import call_growth
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeseries.interval_cover import interval_cover

BATCHES, STEP_S = 400, 0.5
SPAN = 0.0, BATCHES * STEP_S
EVENLY = Throughput(*(np.array([0.0, end]) for end in (SPAN[1], BATCHES, 32 * BATCHES, SPAN[1], 0.0)))


def took(*seconds):
    """Return when a function ran that took so long at the beginning of each batch."""
    return interval_cover([(at * STEP_S, at * STEP_S + each) for at, each in enumerate(seconds)])


def test_a_cost_that_grows_with_each_batch_is_foretold():
    grown = call_growth(took(*np.linspace(0.01, 0.21, BATCHES)), EVENLY, SPAN, 1000)
    assert (grown.first_s, grown.last_s) == (pytest.approx(0.045, abs=0.01), pytest.approx(0.175, abs=0.01))
    assert grown.more_s == pytest.approx(0.2 / BATCHES * 1000**2, rel=0.02)  # each batch of it costs more by so much
    assert grown.epoch_s == pytest.approx(500)
    assert grown.grows_on_s == grown.more_s


def test_what_grows_in_no_line_or_by_little_is_not():
    costs = np.where(np.arange(BATCHES) < BATCHES // 2, 0.02, 0.2) + np.linspace(0, 0.001, BATCHES)
    stepped = call_growth(took(*costs), EVENLY, SPAN, 100)  # one step says nothing of what comes
    assert (stepped.more_s, stepped.grows_on_s) == (None, None)
    little = call_growth(took(*np.linspace(0.01, 0.05, BATCHES)), EVENLY, SPAN, 100)
    assert little.more_s < 0.05 * little.epoch_s
    assert little.grows_on_s is None


@pytest.mark.parametrize(
    "costs",
    [
        np.full(BATCHES, 0.1),
        np.random.default_rng(5).uniform(0, 0.2, BATCHES),
        np.linspace(0.2, 0.01, BATCHES),
        np.linspace(0.1, 0.15, BATCHES),  # by half
        np.where(np.arange(BATCHES) % 100 == 99, 0.4, 0.0),  # now and then
        np.linspace(0.0001, 0.005, BATCHES),  # too little of it is noted
    ],
)
def test_what_scatters_or_falls_has_not_grown(costs):
    assert call_growth(took(*costs), EVENLY, SPAN, 1000) is None


def test_of_few_batches_nothing_is_said():
    assert call_growth(took(*np.linspace(0.01, 0.4, BATCHES)), EVENLY, (0.0, 40.0), 1000) is None
