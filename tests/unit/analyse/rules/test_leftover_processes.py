"""Processes of a training that outlive the command that started them."""

import pytest
from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.model import RecordedEvent


def found(**fields):
    run = make_run([90.0] * 60, events=[RecordedEvent(58.0, "left_behind", None, fields)])
    return [finding for finding in analyse(run).findings if finding.rule == "left-behind"]


def test_ranks_that_go_on_are_a_warning_and_how_to_end_them_is_said():
    (finding,) = found(pids=[9749, 9750], gpus=[0, 1])
    assert (finding.severity, finding.gpu, finding.span) == ("warning", None, (58.0, 58.0))
    assert finding.summary == "2 processes (pid 9749, 9750) kept running after the command ended, and held GPUs 0 and 1"
    assert finding.advice[0].short == "Stop what still runs on GPUs 0 and 1 (`ps -p 9749,9750` shows it)"


def test_a_command_that_names_some_of_them_says_so():
    (finding,) = found(pids=list(range(100, 112)), gpus=[0])
    assert finding.summary.startswith("12 processes kept running")
    assert finding.advice[0].short.endswith("107` shows the first 8 of 12 processes)")


def test_one_on_no_gpu_is_a_note():
    (finding,) = found(pids=[7], gpus=[])
    assert (finding.severity, finding.advice) == ("info", ())
    assert finding.summary == "1 process (pid 7) kept running after the command ended"


@pytest.mark.parametrize("fields", [{}, {"pids": []}, {"pids": "1 2"}, {"pids": [True, "x", None, -1, 0, 1]}])
def test_what_makes_no_sense_is_nothing(fields):
    assert found(**fields) == []
