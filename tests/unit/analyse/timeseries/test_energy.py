import numpy as np
import pytest
from support.runs import make_run

from gpu_report.analyse.timeseries.energy import energy
from gpu_report.analyse.timeseries.gpu_series import gpu_series


@pytest.fixture
def looked_up(monkeypatch):
    """How many moments were looked up in running totals."""
    counted, interp = [], np.interp
    monkeypatch.setattr(np, "interp", lambda at, *given: counted.append(len(at)) or interp(at, *given))
    return counted


def curve_of(power_w):
    (series,) = gpu_series(make_run([90.0] * len(power_w), quantities={"power_w": power_w}))
    return energy(series)


def test_joules_of_spans_that_follow_each_other_are_looked_up_once(looked_up):
    curve = curve_of([100.0, 200.0, 300.0, 400.0])
    joules, sampled_s = curve.of_each(np.array([0.0, 1.0, 2.5]), np.array([1.0, 2.5, 4.0]))
    assert joules.tolist() == [100, 350, 550]
    assert sampled_s.tolist() == [1, 1.5, 1.5]
    assert sum(looked_up) == 2 * (3 + 1)  # two totals; each beginning, and the last end


def test_joules_of_spans_that_lie_apart_overlap_or_are_none():
    curve = curve_of([100.0, 200.0, 300.0, 400.0])
    joules, sampled_s = curve.of_each(np.array([0.0, 2.0, 1.0]), np.array([0.5, 4.0, 3.0]))
    assert (joules.tolist(), sampled_s.tolist()) == ([50, 700, 500], [0.5, 2, 2])
    joules, sampled_s = curve.of_each(np.empty(0), np.empty(0))
    assert len(joules) == len(sampled_s) == 0
