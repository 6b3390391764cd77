"""Percentiles of latency: told where there are calls enough, with intervals that hold for neighbours that are alike."""

from statistics import NormalDist

import numpy as np
import pytest

from gpu_report.analyse.inference.percentiles import latency, quantile
from gpu_report.model import calls_needed


def alike(count, correlation, random):
    """Return log-normal latencies around 10 ms, each like the one before it."""
    steps = random.normal(size=count) * np.sqrt(1 - correlation**2)
    values = np.empty(count)
    values[0] = random.normal()
    for at in range(1, count):
        values[at] = correlation * values[at - 1] + steps[at]
    return 10 * np.exp(0.2 * values)


@pytest.mark.parametrize(("share", "needed"), [(0.5, 10), (0.95, 200), (0.99, 1000)])
def test_a_percentile_is_told_from_so_many_calls_on(share, needed):
    values = np.linspace(1.0, 2.0, needed)
    assert calls_needed(share) == needed
    assert quantile(values, share).value_ms == pytest.approx(1 + share)
    assert quantile(values[:-1], share).value_ms is None


@pytest.mark.parametrize("correlation", [0.0, 0.7])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_the_interval_holds_the_true_percentile_in_about_95_of_100(correlation, share):
    random, true = np.random.default_rng(3), 10 * np.exp(0.2 * NormalDist().inv_cdf(share))
    found = [quantile(alike(800, correlation, random), share) for _ in range(60)]
    held = sum(each.low_ms <= true <= each.high_ms for each in found)
    assert held >= 52  # of 60: 57 expected
    assert all(each.low_ms <= each.value_ms <= each.high_ms for each in found)


def test_neighbours_that_are_alike_make_the_interval_wider():
    random = np.random.default_rng(1)

    def width(correlation):
        found = [quantile(alike(800, correlation, random), 0.5) for _ in range(20)]
        return np.mean([each.high_ms - each.low_ms for each in found])

    assert width(0.9) > 2 * width(0.0)


def test_nothing_is_cut_off():
    values = np.concatenate([np.full(999, 10.0), [5000.0]])
    found = latency(values)
    assert found.worst_ms == 5000
    assert found.p99.value_ms == 10
