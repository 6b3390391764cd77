"""A log without callbacks that goes on after its training had left the GPU, with epochs still to come."""

import dataclasses

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import Gpu, YoloRun

CARD_MIB = 12_000
IDLE_S = 1800


def log(asked=80, idle_s=IDLE_S, left_mib=1.0, capacity=CARD_MIB):
    """Return a log of three epochs of 100 s and half of a fourth, and of a GPU that is idle afterwards."""
    memory = [1.0] * 10 + [9_000.0] * 350 + [left_mib] * idle_s
    util = readings((0, 10), (90, 350), (0, idle_s))
    run = make_run(util, rows=[(1, 110), (2, 210), (3, 310)], quantities={"memory_used_mib": memory})
    return dataclasses.replace(
        run,
        gpus=(Gpu(0, memory_total_mib=capacity),),
        yolo_runs=(YoloRun(1, None, {"epochs": asked}, "recorded", None),),
        recording=dataclasses.replace(run.recording, source="nvidia-smi", ended_by="import"),
    )


def test_a_training_that_left_with_epochs_to_come_has_ended_early():
    analysis = analyse(log())
    (finding,) = (each for each in analysis.findings if each.rule == "run-ended")
    assert (finding.severity, finding.start_t_s, finding.epoch) == ("warning", 360.0, 4)
    assert finding.summary == "The training ended after epoch 3 of 80, and its GPU was empty for 30 min"
    assert analysis.verdict.text.startswith(f"{finding.summary}. ")


@pytest.mark.parametrize(
    "run",
    [log(asked=3), log(idle_s=300), log(left_mib=9_000.0), log(capacity=None)],
    ids=["finished", "not for long", "still there", "how much a card holds is not known"],
)
def test_what_has_not_ended_early(run):
    assert [each for each in analyse(run).findings if each.rule == "run-ended"] == []
