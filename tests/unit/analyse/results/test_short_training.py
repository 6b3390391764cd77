"""A training of some seconds: its steps and readings say whether it is long enough to be judged."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.busy_in_training import busy_in_training
from gpu_report.analyse.results import short_training
from gpu_report.model import InsideEpoch, InsideRun, Options, Phase, YoloRun

EVERY_S, START_S = 0.2, 20.0
NOISE = (-9, 4, 0, 6, -3, 2)  # points of single readings


def short(util=75.0, seconds=9.0, batches=48, *, stalls=False, waited_s=0.02, workers_pct=400.0):
    """Return a training of two epochs in so many seconds, between a start and an end that idle, read every 0.2 s."""
    count = round(seconds / EVERY_S)
    read = [util + NOISE[at % len(NOISE)] for at in range(count)]
    read = [0.0 if stalls and at > count / 2 else value for at, value in enumerate(read)]
    idle = [0.0] * round(START_S / EVERY_S)
    run = make_run([*idle, *read, *idle], interval_s=EVERY_S)
    half_s, end_s = START_S + seconds / 2, START_S + seconds
    spans = ((START_S, half_s), (half_s, end_s))
    phases = [Phase("startup", None, 5.0, START_S, "callbacks", "first batch")]
    phases += [Phase("train", number, *span, "callbacks") for number, span in enumerate(spans, 1)]
    phases.append(Phase("final_eval", None, end_s, end_s + 8, "callbacks"))
    epochs = [InsideEpoch(n, 1, *span, 640, batches // 2, waited_s / 2, 0.0, 0.0) for n, span in enumerate(spans, 1)]
    settings = {"workers": 12, "batch": 16, "batches": batches // 2}
    inside = InsideRun(1, 0, 1, "train", settings, tuple(phases), tuple(epochs), "finished")
    t_s = np.arange(0.0, 2 * START_S + seconds)
    host = {"t_s": t_s, "main_cpu_pct": 105.0, "workers_cpu_pct": workers_pct, "workers": 12, "cpu_pct": 30.0}
    yolo = (YoloRun(1, None, {}, "recorded", None),)
    return dataclasses.replace(run, host=pd.DataFrame(host), inside=(inside,), yolo_runs=yolo)


def said(run):
    return [each.text for each in analyse(run).verdict.sentences]


@pytest.mark.parametrize(
    ("fields", "is_enough"),
    [
        ({}, True),  # YOLO26l at 1,280 px with batch 16: 47 steps in 9.2 s (H200)
        ({"seconds": 5.4, "batches": 40}, True),
        ({"batches": 16}, False),  # fewer steps than two rounds of the 12 workers
        ({"seconds": 1.6}, False),  # 8 readings
        ({"stalls": True}, False),
        ({"workers_pct": 1190.0}, False),  # workers never rest: the queue is what they filled before
    ],
)
def test_a_short_training_is_judged_by_its_steps_and_by_how_alike_its_readings_are(fields, is_enough):
    context = build_context(short(**fields), Options())
    assert short_training.is_enough(context, busy_in_training(context)) == is_enough


def test_one_that_is_enough_is_judged_and_another_one_is_not():
    assert said(short())[0].startswith("Nothing to fix: the GPU was busy 75 % of training time")
    assert said(short(workers_pct=1190.0))[0] == "Too short to judge: the GPU trained for only 9 s."


def test_one_that_idles_has_no_steady_state_yet_so_that_its_cause_is_a_guess():
    sentences = analyse(short(util=35.0, seconds=5.4, batches=40)).verdict.sentences
    assert [(each.kind, each.text) for each in sentences[:4]] == [
        ("work", "Too short to judge: the GPU was busy 35 % of training time, warming up included."),
        ("work", "It hardly waited for data (0.4 % of that time)."),
        ("guess", "Guess: each batch was too small to keep the GPU busy."),
        ("guess", "To check: train one epoch with twice the `batch`; faster means yes."),
    ]


def test_one_that_waited_for_data_says_so_and_is_no_guess():
    sentences = analyse(short(util=35.0, seconds=5.4, batches=40, waited_s=3.0)).verdict.sentences
    assert "56 % of that went into waiting for data." in [each.text for each in sentences]
