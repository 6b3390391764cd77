"""The phases seen from outside, held against what callbacks said of the labelled runs (docs/phases.md)."""

import json
from pathlib import Path

import pytest
from support.agreement import compare, labelled, worst

from gpu_report.analyse import analyse
from gpu_report.load import load_run

SAMPLES = Path(__file__).parent.parent.parent / "sample_runs"
RIGHT_PCT = {"faulted": 95.5, "fed": 93.5, "healthy": 96.3, "starved": 94.3}  # what they reach, less half a point
ROW_S = 0.01  # a row is placed by its file's time
RESUMES_S = 1.0  # where training goes on after a checkpoint: with one reading a second


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
    _, found = agreement
    assert len(found.row_ends) >= 3
    assert abs(worst(found.row_ends)) <= ROW_S
    assert abs(worst(found.epoch_ends)) <= RESUMES_S


def test_startup_is_told_from_training(agreement):
    _, found = agreement
    assert found.right_pct_of("startup") > 99
