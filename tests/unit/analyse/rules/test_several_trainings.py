"""Several trainings in one recording, set up otherwise: what is said of each rests on its own set-up."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.analyse.advice.run_settings import run_settings_of
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Gpu, InsideEpoch, InsideRun, Options, Phase, RecordedEvent, YoloRun
from gpu_report.render.run.terminal import render_text

UUIDS = ("GPU-a", "GPU-b")
EPOCHS, EPOCH_S, STARTUP_S = 5, 20.0, 10.0
LASTS_S = STARTUP_S + EPOCHS * EPOCH_S
STARVED = {"main_cpu_pct": 30.0, "workers_cpu_pct": 198.0, "busiest_worker_cpu_pct": 99.0, "cpu_pct": 15.0}
FED = {"main_cpu_pct": 80.0, "workers_cpu_pct": 400.0, "busiest_worker_cpu_pct": 50.0, "cpu_pct": 20.0}
SLOW = {"workers": 2, "gpu": 0, "util": 20.0, "wait_s": 15.0, "host": STARVED}
FAST = {"workers": 8, "gpu": 1, "util": 90.0, "wait_s": 0.1, "host": FED}


def told(number, start_s, workers, gpu, wait_s):
    """Return a training of five epochs as its process told it."""
    spans = [(start_s + STARTUP_S + n * EPOCH_S, start_s + STARTUP_S + (n + 1) * EPOCH_S) for n in range(EPOCHS)]
    phases = [Phase("startup", None, start_s, start_s + STARTUP_S, "inside")]
    phases += [Phase("train", n, start, end, "inside") for n, (start, end) in enumerate(spans, 1)]
    epochs = [InsideEpoch(n, 1, start, end, 4000, 32, wait_s, 0.1, 1.0) for n, (start, end) in enumerate(spans, 1)]
    settings = {"workers": workers, "world_size": 1, "device": f"cuda:{gpu}", "gpu_uuid": UUIDS[gpu], "batch": 128}
    settings |= {"imgsz": 640, "prefetch": 4}
    return InsideRun(number, 0, 40 + number, "train", settings, tuple(phases), tuple(epochs), "finished")


def sweep(*trainings):
    """Return trainings one after the other, each on its GPU, on a machine of two GPUs and 32 cores."""
    util = [[reading for one in trainings for reading in on(one, gpu)] for gpu in (0, 1)]
    begins = [number * LASTS_S for number in range(len(trainings))]
    inside = tuple(
        told(number, begin, one["workers"], one["gpu"], one["wait_s"])
        for number, (begin, one) in enumerate(zip(begins, trainings, strict=True), 1)
    )
    run = make_run(util, events=[RecordedEvent(0.0, "command_started", None, {"pid": 30})])
    host = [{**one["host"], "memory_available_mib": 9000.0} for one in trainings for _ in range(int(LASTS_S))]
    table = pd.DataFrame(host, columns=[column.name for column in schema.HOST_QUANTITIES], dtype=float)
    table.insert(0, "t_s", np.arange(len(table), dtype=float))
    args = [{"workers": one["workers"], "device": str(one["gpu"]), "batch": 128} for one in trainings]
    rows = [(begin + 2, one["gpu"], 40 + n) for n, (begin, one) in enumerate(zip(begins, trainings, strict=True), 1)]
    seen = [(t_s, gpu, pid, "python", 9000.0, "appeared", "trainer", np.nan) for t_s, gpu, pid in rows]
    return dataclasses.replace(
        run,
        host=table,
        inside=inside,
        processes=pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in seen], columns=PROCESSES),
        gpus=tuple(Gpu(index, uuid=uuid, memory_total_mib=143_771.0) for index, uuid in enumerate(UUIDS)),
        recording=dataclasses.replace(run.recording, cores=32, cores_online=32, shm_total_mib=7000.0),
        yolo_runs=tuple(YoloRun(number, None, each, "recorded", None) for number, each in enumerate(args, 1)),
    )


def on(training, gpu):
    return readings((0, STARTUP_S), (training["util"] if training["gpu"] == gpu else 0, EPOCHS * EPOCH_S))


@pytest.fixture(params=[(SLOW, FAST), (FAST, SLOW)], ids=["slow first", "slow last"])
def order(request):
    return request.param


def found(run, rule):
    return [finding for finding in analyse(run).findings if finding.rule == rule]


def begin_of(order, training):
    return STARTUP_S + LASTS_S * order.index(training)


def test_each_training_has_its_own_set_up_and_gpu(order):
    context = build_context(sweep(*order), Options())
    for training, one in zip(context.trainings, order, strict=True):
        assert (training.workers, training.gpus) == (one["workers"], frozenset({one["gpu"]}))
        assert (training.args["device"], training.args["workers"]) == (str(one["gpu"]), one["workers"])
        assert run_settings_of(context, training).workers == one["workers"]
        assert len(training.train_spans) == EPOCHS


def test_a_moment_is_held_against_the_training_that_it_lies_in(order):
    context = build_context(sweep(*order), Options())
    for one in order:
        signals = context.signals.of(one["gpu"], begin_of(order, one) + 30, begin_of(order, one) + 45)
        assert signals.loader_workers == one["workers"]
        assert signals.typical("workers_cpu_pct") == one["host"]["workers_cpu_pct"]
        assert signals.gpu_typical("gpu_util_pct") == one["util"]


def test_only_the_training_that_starves_is_said_to_and_advised_on(order):
    (finding,) = found(sweep(*order), "starved")
    begin_s = begin_of(order, SLOW)
    assert (finding.gpu, finding.cause.name) == (0, "input-cpu")
    assert (finding.start_t_s, finding.end_t_s) == (begin_s, begin_s + EPOCHS * EPOCH_S)


def test_the_time_that_one_training_waited_is_not_booked_in_the_other(order):
    ledger = {row.name: row.gpu_seconds for row in analyse(sweep(*order)).ledger}
    assert ledger["input-cpu"] == pytest.approx(0.8 * EPOCHS * EPOCH_S, rel=0.02)
    assert ledger["short gaps"] == pytest.approx(0.1 * EPOCHS * EPOCH_S, rel=0.02)


def test_bounds_and_advice_are_of_the_longest_run_alone(order):
    """Both are as long; the first of them is meant, and what starves the other is no cause in it."""
    analysis = analyse(sweep(*order))
    causes = {bound.cause for bound in analysis.speedup_limits}
    advised = [advice for f in analysis.findings if f.rule == "starved" for advice in f.advice]
    if order[0] is SLOW:
        assert "input-cpu" in causes
        assert [(advice.argument, advice.from_value) for advice in advised] == [("workers", "2")]
    else:
        assert "input-cpu" not in causes
        assert advised == []


def test_a_gpu_is_free_while_the_training_that_does_not_use_it_trains(order):
    findings = sorted(found(sweep(*order), "unused-gpu"), key=lambda finding: finding.start_t_s)
    assert [finding.start_t_s for finding in findings] == [begin_of(order, one) for one in order]
    said = {one["gpu"]: f"GPU {1 - one['gpu']} was free while GPU {one['gpu']} trained" for one in order}
    assert [finding.summary for finding in findings] == [said[one["gpu"]] for one in order]


def test_trainings_alike_share_one_finding_of_a_free_gpu():
    (finding,) = found(sweep(SLOW, SLOW), "unused-gpu")
    assert (finding.start_t_s, finding.end_t_s) == (STARTUP_S, 2 * LASTS_S)
    (other,) = found(sweep(SLOW, {**SLOW, "gpu": 0, "workers": 3}), "unused-gpu")
    assert other.summary == finding.summary


def test_the_queues_of_batches_are_those_of_each_training(order):
    """8 workers' batches of 128 take 4.7 GiB, 2 workers' 1.2."""
    run = sweep(*order)
    small = dataclasses.replace(run, recording=dataclasses.replace(run.recording, shm_total_mib=2000.0))
    (finding,) = found(small, "environment")
    assert "8 workers" in finding.summary
    assert finding.start_t_s == begin_of(order, FAST) - STARTUP_S


def test_a_gpu_that_waits_for_its_turn_falls_in_no_drop(order):
    analysis = analyse(sweep(*order))
    assert [f.id for f in analysis.findings if f.rule in {"drop", "sustained-low", "slowdown"}] == []
    utils = {one["workers"]: one["util"] for one in order}
    assert [epoch.gpu_util_pct for epoch in analysis.epochs] == pytest.approx(
        [utils[one["workers"]] for one in order for _ in range(EPOCHS)]
    )


def test_the_level_is_that_of_the_training():
    """On one GPU, from 90 to 30 %: another training and no drop; a drop of its own is held against its own level."""
    slower = {**FAST, "gpu": 0, "util": 30.0}
    run = sweep({**FAST, "gpu": 0}, slower)
    samples = run.samples.copy()
    stalled = (samples["gpu"] == 0) & samples["t_s"].between(170.0, 184.0)
    samples.loc[stalled, "gpu_util_pct"] = 0.0
    (drop,) = found(dataclasses.replace(run, samples=samples), "drop")
    assert (drop.start_t_s, drop.end_t_s, drop.level_pct) == (170.0, 185.0, 30.0)
    assert found(run, "drop") == found(run, "sustained-low") == []


def test_trainings_at_once_are_told_apart_by_their_gpu():
    run = sweep(SLOW, FAST)
    first, second = run.inside
    moved = told(2, 0.0, FAST["workers"], FAST["gpu"], FAST["wait_s"])
    context = build_context(
        dataclasses.replace(run, inside=(first, dataclasses.replace(moved, pid=second.pid))), Options()
    )
    assert [context.training_at(50.0, gpu).workers for gpu in (0, 1)] == [SLOW["workers"], FAST["workers"]]


@pytest.mark.parametrize(
    ("told", "workers"), [({"workers": None}, 8), ({}, 8), ({"workers": 0}, 0), ({"workers": 2}, 2)]
)
def test_workers_that_were_not_told_are_those_asked_for(told, workers):
    assert Training(1, (0.0, 100.0), args={"workers": 8}, settings=told).workers == workers


def test_a_process_that_did_not_train_beside_one_that_does_is_not_said_to_starve():
    run = sweep(SLOW)
    (slow,) = run.inside
    phases = (Phase("startup", None, 30.0, 34.0, "inside"), Phase("final evaluation", None, 34.0, 100.0, "inside"))
    beside = dataclasses.replace(slow, run=2, pid=77, phases=phases, epochs=())
    both = dataclasses.replace(run, inside=(slow, beside))
    assert [training.train_spans for training in build_context(both, Options()).trainings][1] == []
    (finding,) = found(both, "starved")
    assert (finding.start_t_s, finding.end_t_s) == (STARTUP_S, LASTS_S)


def test_the_report_says_which_training_it_is_about_and_counts_each(order):
    analysis = analyse(sweep(*order))
    number = order.index(SLOW) + 1
    assert f"Training {number} of 2: 1 data-loader worker could not keep up." in analysis.verdict.text
    text = render_text(analysis, colour=False)
    assert "10 epochs in 2 trainings" in text
    each = "training 1: 20.0 s each; training 2: 20.0 s each (medians, without the first)"
    assert f"Epochs: 10, in 2 trainings; {each}." in " ".join(text.split())
    assert "The last of 2 trainings " in text


def test_of_one_training_nothing_is_counted():
    analysis = analyse(sweep(SLOW))
    assert " of 2" not in analysis.verdict.text + render_text(analysis, colour=False)
    assert "trainings" not in render_text(analysis, colour=False)
