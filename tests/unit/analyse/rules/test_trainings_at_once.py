"""Trainings of one recording that share a GPU at the same time."""

import dataclasses

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import Gpu, InsideEpoch, InsideRun, Phase

UUIDS = ("GPU-a", "GPU-b")


def training(number, start_s, trains_s, *, pid, gpu=0, rank=0, world_size=1):
    """Return what a process told of a training of one epoch after a start-up of 5 s."""
    train = (start_s + 5.0, start_s + 5.0 + trains_s)
    phases = (Phase("startup", None, start_s, train[0], "callbacks"), Phase("train", 1, *train, "callbacks"))
    epochs = (InsideEpoch(1, 1, *train, 1000, 50, 0.0, 0.0, 0.0),)
    settings = {"gpu_uuid": UUIDS[gpu], "world_size": world_size}
    return InsideRun(number, rank, pid, "train", settings, phases, epochs, "finished")


def found(*told):
    util = [readings((0, 5), (90, 75)), readings((0, 5), (90, 75))]
    gpus = tuple(Gpu(index, uuid=uuid, memory_total_mib=143_771.0) for index, uuid in enumerate(UUIDS))
    analysis = analyse(dataclasses.replace(make_run(util), inside=told, gpus=gpus))
    return analysis, [f for f in analysis.findings if f.rule == "other-process"]


def test_two_trainings_of_two_processes_are_found_while_both_trained():
    analysis, (finding,) = found(training(1, 0.0, 60.0, pid=10), training(2, 20.0, 50.0, pid=11))
    assert (finding.severity, finding.gpu, finding.span) == ("warning", 0, (25.0, 65.0))
    assert finding.summary == "2 trainings shared GPU 0 for 40 s"
    assert analysis.verdict.sentences[0].text.startswith("Train one after the other, or each on a GPU of its own")


def test_three_at_once_are_counted():
    _, (finding,) = found(*(training(n, 2.0 * n, 60.0, pid=n) for n in (1, 2, 3)))
    assert finding.summary.startswith("3 trainings shared GPU 0")
    assert finding.evidence[0].value == 3


@pytest.mark.parametrize(
    "told",
    [
        (training(1, 0.0, 30.0, pid=10), training(2, 35.0, 30.0, pid=11)),
        (training(1, 0.0, 60.0, pid=10), training(2, 0.0, 60.0, pid=11, gpu=1)),
        (training(1, 0.0, 60.0, pid=10), training(2, 20.0, 30.0, pid=10)),
        (training(1, 0.0, 60.0, pid=10), training(2, 58.0, 20.0, pid=11)),
        (
            training(1, 0.0, 60.0, pid=10, world_size=2),
            training(1, 0.0, 60.0, pid=11, gpu=1, rank=1, world_size=2),
        ),
    ],
    ids=["one after the other", "a GPU each", "one process", "for a moment", "two ranks"],
)
def test_what_shares_no_gpu_at_the_same_time(told):
    assert found(*told)[1] == []


def test_those_that_meet_twice_are_told_of_each_time_alone():
    long = training(1, 0.0, 69.0, pid=10)
    _, mine = found(long, training(2, 5.0, 10.0, pid=11), training(3, 50.0, 12.0, pid=12))
    spans = [one.span for finding in mine for one in finding.each]
    assert sorted(spans) == [(10.0, 20.0), (55.0, 67.0)]
    assert {finding.summary.partition(" shared ")[0] for finding in mine} == {"2 trainings"}
