"""The phases seen from outside, held against what callbacks said of the labelled runs (docs/phases.md)."""

import json
from pathlib import Path

import pytest
from support.agreement import compare, labelled, worst

from gpu_report.analyse import analyse
from gpu_report.load import load_run

SAMPLES = Path(__file__).parent.parent.parent / "sample_runs"
RIGHT_PCT = {"faulted": 90.0, "fed": 93.5, "healthy": 96.5, "starved": 94.5}  # what they reach, less half a point
ROW_S = 0.01  # a row is placed by its file's time
# Where training goes on after a checkpoint. In `faulted` another process kept the GPU at work over one of them.
RESUMES_S = {"faulted": 1.3, "fed": 1.0, "healthy": 1.0, "starved": 1.0}


@pytest.fixture(scope="module", params=sorted(RIGHT_PCT))
def agreement(request):
    run = load_run(SAMPLES / request.param)
    labels = json.loads((SAMPLES / request.param / "labels.json").read_text())
    return request.param, compare(labelled(labels, run.start_wall_s), analyse(run).phases)


def test_nearly_every_second_is_in_the_right_phase(agreement):
    name, found = agreement
    assert found.seconds > 60
    assert found.right_pct >= RIGHT_PCT[name]


def test_the_ends_of_epochs_are_where_they_were(agreement):
    name, found = agreement
    assert len(found.row_ends) >= 3
    assert abs(worst(found.row_ends)) <= ROW_S
    assert abs(worst(found.epoch_ends)) <= RESUMES_S[name]


def test_all_but_the_disturbed_checkpoint_of_faulted_end_within_a_second(agreement):
    _, found = agreement
    late = [error for error in found.epoch_ends if abs(error) > 1.0]
    assert len(late) <= (1 if agreement[0] == "faulted" else 0)


def test_startup_is_told_from_training(agreement):
    _, found = agreement
    assert found.right_pct_of("startup") > 99
