"""The phases seen from outside, held against what callbacks said of the same runs (docs/phases.md)."""

import dataclasses

import pytest
from support.agreement import compare, labelled, worst
from support.labels import HELD_OUT
from support.samples import OF_A_JOB, SAMPLES, SERVED, labels_of, run_of

from gpu_report.analyse import analyse

# What the runs reach, less half a point where the ticks are given, and less a point where file times are missing too.
RIGHT_PCT = {
    "faulted": 94.2,
    "fed": 92,
    "healthy": 97,
    "starved": 95.7,
    "m-blocked": 97.7,
    "m-ddp": 94.5,
    "m-ddp-stopped": 97.1,
    "m-healthy": 96.5,
    "m-other-process-leak": 90.1,
    "n-fed": 95.4,
    "n-small-batch": 97.4,
    "n-starved": 95.5,
    "n-xid": 95.3,
    "s-cpu-taken": 95.4,
    "s-ddp-hog": 90.1,
    "s-healthy": 94,
    "s-killed": 95.9,
    "s-loader-stall": 96.6,
    "s-oom": 95.5,
    "s-storage": 97,
    # held out: recorded after every rule and threshold of the phases stood
    "ab-batch-128": 95,
    "ab-batch-32": 95.5,
    "ab-batch-64": 95,
    "ab-batch-8": 90.8,
    "ab-s-workers-10": 96.9,
    "ab-s-workers-3": 94.6,
    "ab-workers-14": 96.1,
    "ab-workers-2": 95.4,
    "ab-workers-2-ram": 93.6,
    "ab-workers-4": 92.8,
    "ab-workers-8": 95.1,
    "l-healthy": 97.1,
    "m-ddp4": 96.4,
    "m-mixed": 96.5,
    "n-cpu-quota": 94.3,
    "m-storage": 97.4,
    "m-two-gpus-one-used": 97.7,
    "n-ddp-late": 95.3,
    "n-healthy-disk": 95.4,
    "n-mixed": 95.2,
    "n-oom-killed": 95.2,
    "s-ddp-stall": 96.2,
    "s-early-stop": 95.9,
    "s-leak-oom": 96.2,
    "s-memory-steps": 94.9,
    "s-batchwork": 96.9,
    "m-long-stall": 93.9,  # its last epoch, which was cut short, is taken for the final evaluation
}
NOT_HELD = {
    "m-long-validation": "ended within a validation, of which no row tells",
    "n-profiled": "a profiler ran in it, and its export looks like the end of an epoch",
    "m-rank-pinned": "its ranks trained on when the recording had ended",
    "s-latency": "one epoch only came to its end",
    "s-shared-gpu": "the work of somebody else's training is taken for its own: startup is right by 90 %",
}
ROW_S = 0.01  # a row is placed by its file's time
LATE_ROW_S = 0.04  # the same, of a row that was written while every core was taken by others, or one of four ranks
RESUMES_S = 1.0  # where training goes on after a checkpoint: with one reading a second
BESIDE_S = 2.5  # the same, of the checkpoint beside which another process kept the GPU at work
TRAIN_ENDS_S = 1.0  # where training ends: nine in ten
TRAIN_ENDS_SHARE = 0.9
HELD_OUT_SHARE = 0.84  # of the runs that were recorded later, mostly on slower machines
LONG_STARTUP_PCT = 98.0  # of 86 s, in which four ranks cache images one after the other
STARTUP_PCT = 98.5  # startup ends with a reading of the first work, up to 0.2 s late


def agreement_of(name):
    run, labels = run_of(name), labels_of(name)
    outside = analyse(dataclasses.replace(run, inside=())).phases
    if labels.first_work_t_s is not None:
        return compare(labelled(labels), outside)
    return compare([phase for inside in run.inside if inside.rank == 0 for phase in inside.phases], outside)


@pytest.fixture(scope="module")
def agreements():
    return {name: agreement_of(name) for name in RIGHT_PCT}


@pytest.fixture(params=sorted(RIGHT_PCT))
def agreement(request, agreements):
    return request.param, agreements[request.param]


def test_every_run_with_a_view_from_inside_is_held(agreements):
    assert {*agreements, *NOT_HELD} >= {path.parent.name for path in SAMPLES.glob("*/inside")} - {*SERVED, *OF_A_JOB}


def test_nearly_every_second_is_in_the_right_phase(agreement):
    name, found = agreement
    assert found.seconds > 29
    assert found.right_pct >= RIGHT_PCT[name]


def test_the_ends_of_epochs_are_where_they_were(agreement):
    name, found = agreement
    assert len(found.row_ends) >= 2
    assert abs(worst(found.row_ends)) <= (LATE_ROW_S if name in {"n-mixed", "m-ddp4"} else ROW_S)
    assert abs(worst(found.epoch_ends)) <= (BESIDE_S if name == "m-other-process-leak" else RESUMES_S)


@pytest.mark.parametrize("is_held_out", [False, True])
def test_nine_ends_of_training_in_ten_are_where_they_were(agreements, is_held_out):
    mine = [found for name, found in agreements.items() if (labels_of(name).of == HELD_OUT) is is_held_out]
    errors = [abs(error) for found in mine for error in found.train_ends]
    assert len(errors) >= 90
    share = HELD_OUT_SHARE if is_held_out else TRAIN_ENDS_SHARE
    assert sum(error <= TRAIN_ENDS_S for error in errors) >= share * len(errors)


def test_startup_is_told_from_training(agreement):
    name, found = agreement
    assert found.right_pct_of("startup") > (LONG_STARTUP_PCT if name == "m-ddp4" else STARTUP_PCT)
