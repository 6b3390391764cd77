"""SignalsIndex of a long recording: what they share is worked out once, and what is usual stays each training's own."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run

from gpu_report.analyse.signals import signals_index as module
from gpu_report.analyse.signals.signals_index import SignalsIndex
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import gpu_series
from gpu_report.model import JobPart

LASTS_S = 100.0
TRAININGS = tuple(Training(n, (n * LASTS_S, (n + 1) * LASTS_S - 1), gpus=frozenset({0})) for n in range(3))
CALM = [(n * LASTS_S + 10, n * LASTS_S + 90) for n in range(2)] + [(2 * LASTS_S + 10, 2 * LASTS_S + 11)]
UTIL = np.repeat([30.0, 60.0, 90.0], int(LASTS_S))


@pytest.fixture
def signals():
    run = make_run([list(UTIL)])
    run = replace(run, host=pd.DataFrame({"t_s": np.arange(300.0), "main_cpu_pct": UTIL + 5}))
    return SignalsIndex(run, gpu_series(run), CALM, trainings=TRAININGS)


def at(signals, number):
    return signals.of(0, number * LASTS_S + 40, number * LASTS_S + 60)


def test_what_is_usual_is_that_of_each_training_and_of_all_where_one_is_too_short(signals):
    for number, typical in ((0, 30.0), (1, 60.0), (2, 60.0), (0, 30.0)):  # of all: 80 rows of 30, 80 of 60, 1 of 90
        found = at(signals, number)
        assert (found.gpu_typical("gpu_util_pct"), found.typical("main_cpu_pct")) == (typical, typical + 5)


def test_trainings_share_the_columns_of_a_table(signals):
    first, second = at(signals, 0), at(signals, 1)
    assert first.host.columns["main_cpu_pct"] is second.host.columns["main_cpu_pct"]
    assert first.own.columns["gpu_util_pct"] is second.own.columns["gpu_util_pct"]


def test_ordinary_training_is_looked_through_once_a_training(signals, monkeypatch):
    looked = []
    monkeypatch.setattr(module, "length_s", lambda spans: looked.append(len(spans)) or sum(b - a for a, b in spans))
    within = Training.within
    monkeypatch.setattr(Training, "within", lambda self, spans: looked.append(self.number) or within(self, spans))
    for _ in range(5):
        for number in range(3):
            at(signals, number)
            signals.steady_of(TRAININGS[number])
    assert len(looked) == 2 * len(TRAININGS)


@pytest.mark.parametrize(
    ("world_size", "nodes", "ranks", "all_reduces"),
    [(1, 1, 1, False), (2, 1, 2, True), (2, 2, 1, True), (None, 2, 1, True)],
)
def test_a_rank_alone_on_its_node_exchanges_gradients_with_those_of_others(world_size, nodes, ranks, all_reduces):
    job = JobPart(nodes=nodes, world_size=world_size)
    run = replace(make_run([list(UTIL)]), job=job)
    device = None if world_size is None else list(range(world_size))
    here = None if nodes == 1 else 1
    training = Training(0, (0.0, 300.0), args={"device": device}, gpus=frozenset({0}), of_this_node=here)
    found = SignalsIndex(run, gpu_series(run), CALM, trainings=[training]).of(0, 40.0, 60.0)
    assert (found.ranks, found.all_reduces) == (ranks, all_reduces)
