"""What holds a GPU back all the time, in real runs of one set-up: the main process, or a loader that stands still."""

from dataclasses import replace
from functools import cache
from types import SimpleNamespace as Some

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run
from support.samples import SAME_SETUP

from gpu_report.analyse import analyse
from gpu_report.analyse.busy_in_training import steady_words
from gpu_report.analyse.causes import Explanation, explain_waiting
from gpu_report.analyse.causes.confidence import WEAK
from gpu_report.analyse.causes.data_loading import loader_idle_at_times
from gpu_report.analyse.rules import low_utilisation
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signal_table import SignalTable
from gpu_report.analyse.signals.signals_index import SignalsIndex
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import gpu_series
from gpu_report.load import load_run
from gpu_report.model import Cause, Finding


@cache
def starved(name: str) -> Finding | None:
    found = analyse(load_run(SAME_SETUP / name)).findings
    return next((finding for finding in found if finding.rule == "starved"), None)


@pytest.mark.parametrize("name", ["stalls-1", "stalls-2"])
def test_a_loader_that_stands_still_in_every_epoch_is_the_cause(name):
    found = starved(name)
    assert found is not None
    assert (found.cause.name, found.severity) == ("input-stalled", "warning")
    assert any("while training waited" in each.text for each in found.evidence)


@pytest.mark.parametrize("name", ["run-4", "run-5", "run-7"])
def test_a_full_main_process_whose_data_came_is_the_cause_at_any_utilisation(name):
    found = starved(name)
    assert found is not None
    assert 50 <= found.evidence[0].value < 60
    assert (found.cause.name, found.severity) == ("launch-bound", "info")  # between starved and healthy it is a note


def test_the_finding_says_what_its_utilisation_is_over():
    found = starved("run-4")
    assert " % of training time: " in found.summary
    assert found.evidence[0].text == "utilisation in steady state (without first batches and slow epochs)"


def test_what_is_healthy_is_not_starved():
    assert starved("run-1") is None


def signals(workers_pct: float, *, waits: bool = True, workers: float = 8.0) -> IntervalSignals:
    times = np.arange(60.0)
    columns = {"main_cpu_pct": 5.0, "workers_cpu_pct": workers_pct, "workers": workers, "io_pressure_pct": 0.0}
    rows = {name: np.full(60, value) for name, value in columns.items()}
    host = SignalTable(times, rows, np.zeros(60, dtype=bool))
    return IntervalSignals(gpu=0, start_t_s=0.0, end_t_s=60.0, host=host, own=host, cores=16, waits=waits)


@pytest.mark.parametrize(
    ("workers_pct", "workers", "stood_still"),
    [(240, 8, True), (0, 8, True), (640, 8, False), (240, 2, False), (0, 0, False)],
)
def test_workers_that_work_while_the_trainer_waits_did_not_stand_still(workers_pct, workers, stood_still):
    assert (loader_idle_at_times(signals(workers_pct, workers=workers)) is not None) == stood_still


def test_workers_that_work_at_other_times_stood_still_and_images_are_not_slow_all_the_time():
    """A NAS that hangs for 10 s every 25 s: more workers would hang, too (H100, 2026-11-27)."""
    waiting = replace(signals(1.0), data_wait_share=0.3)
    columns = {**waiting.host.columns, "workers_cpu_pct": np.where(np.arange(60) < 30, 1.0, 600.0)}
    steady = np.arange(60) >= 30
    stalled = replace(waiting, end_t_s=30.0, host=SignalTable(waiting.host.t_s, columns, steady), is_steady=True)
    assert explain_waiting(stalled).cause.name == "input-stalled"
    assert explain_waiting(replace(stalled, waits=False)).cause.name == "input-latency"


@pytest.mark.parametrize(
    ("tick_s", "rows", "known"), [(1.0, 5, True), (1.0, 4, False), (0.2, 24, False), (0.2, 25, True), (10.0, 1, True)]
)
def test_waits_of_five_seconds_are_a_habit_at_any_distance_of_rows(tick_s, rows, known):
    run = make_run([90.0] * 60, interval_s=tick_s)
    main = np.where(np.arange(60) < rows, 5.0, 95.0)
    run = replace(run, host=pd.DataFrame({"t_s": np.arange(60) * tick_s, "main_cpu_pct": main}))
    whole = (0.0, 60 * tick_s)
    waits = SignalsIndex(run, gpu_series(run), [whole]).of(0, *whole).while_waiting()
    assert (waits is not None) == known


def test_it_is_asked_only_of_the_time_in_which_the_trainer_waited():
    assert loader_idle_at_times(signals(0, waits=False)) is None


@pytest.mark.parametrize(
    ("mean_pct", "steady_pct", "words"),
    [(33.0, 52.0, " (52 % without drops)"), (50.0, 52.0, ""), (50.0, None, ""), (60.0, 50.0, "")],
)
def test_the_steady_state_is_told_where_drops_took_much_of_the_idle_time(mean_pct, steady_pct, words):
    assert steady_words(mean_pct, steady_pct) == words


def test_of_a_gpu_that_mostly_waits_anyway_a_drop_that_took_much_of_the_work_is_told():
    assert steady_words(26.0, 39.0) == ""
    assert steady_words(26.0, 39.0, fell=True) == " (39 % without drops)"
    assert steady_words(33.0, 39.0, fell=True) == ""


def test_why_a_loader_does_not_keep_up_is_asked_of_the_loader_alone():
    waiting = signals(700.0)
    full = {**waiting.host.columns, "main_cpu_pct": np.full(60, 100.0), "busiest_worker_cpu_pct": np.full(60, 95.0)}
    waiting = replace(waiting, host=SignalTable(waiting.host.t_s, full, waiting.host.steady))
    assert explain_waiting(waiting).cause.name == "input-cpu"


def test_small_steps_that_also_wait_for_data_follow_the_loader(monkeypatch):
    """Larger steps would wait for as many images a second: it is the loader that is to be made faster."""
    busy = waiting = replace(signals(700.0), data_wait_share=0.25)
    found = Explanation(Cause("launch-bound", 0.8, "each batch was too small to keep the GPU busy", None))
    monkeypatch.setattr(low_utilisation, "explain", lambda _: found)
    monkeypatch.setattr(IntervalSignals, "while_waiting", lambda _: waiting)
    assert low_utilisation._explained(busy, 0.25).cause.name.startswith("input-")
    assert low_utilisation._explained(busy, 0.15) is found


def test_a_training_whose_processes_nobody_sees_waits_for_data_where_it_says_so():
    nobody = SignalTable(np.arange(60.0), {}, np.zeros(60, dtype=bool))
    unseen = IntervalSignals(gpu=0, start_t_s=0.0, end_t_s=60.0, host=nobody, own=nobody, data_wait_share=0.32)
    cause = low_utilisation._explained(unseen, 0.32).cause
    assert (cause.name, cause.confidence) == ("input-latency", WEAK)
    assert low_utilisation._explained(unseen, 0.15).cause.confidence == 0  # a fifth is worth a fix


@pytest.mark.parametrize(
    ("sm_pct", "main_pct", "small"), [(25.0, 99.0, True), (80.0, 99.0, False), (25.0, 60.0, False)]
)
def test_kernels_that_leave_most_sms_idle_are_small_at_any_utilisation(sm_pct, main_pct, small, monkeypatch):
    """SM activity is 80 to 88 % of utilisation where a batch fills the GPU (H200)."""
    columns = {"gpu_util_pct": 97.0, "sm_active_pct": sm_pct, "main_cpu_pct": main_pct, "workers_cpu_pct": 80.0}
    rows = {name: np.full(60, value) for name, value in columns.items()}
    table = SignalTable(np.arange(60.0), rows, np.ones(60, dtype=bool))
    busy = replace(signals(80.0), host=table, own=table, data_wait_share=0.005)
    monkeypatch.setattr(low_utilisation, "nearly_empty", lambda *_: None)
    alone, pair = Training(1, (0.0, 60.0)), Some(ranks=2)
    assert low_utilisation._has_small_kernels(None, alone, busy) == small
    assert not low_utilisation._has_small_kernels(None, pair, busy)  # one of them may wait for the other
