"""A log without callbacks that ends with a full GPU and its process gone, and the memory of an end's last minute."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import Gpu, InsideRun, Phase, RecordedEvent, YoloRun

NAN = float("nan")
CARD_MIB = 80_000
SECONDS = 120
FULL = [1_000.0] * 10 + [79_000.0] * 90
GONE = (100.0, 0, 41, "python3", NAN, "gone", "trainer", NAN)
CAME = (12.0, 0, 41, "python3", 79_000.0, "appeared", "trainer", NAN)


def log(memory, *, processes=(), events=(), capacity=CARD_MIB, **recording):
    run = make_run(readings((0, 10), (90, 90), (0, 20)), quantities={"memory_used_mib": list(memory)}, events=events)
    return dataclasses.replace(
        run,
        gpus=(Gpu(0, memory_total_mib=capacity),),
        processes=pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in processes], columns=PROCESSES),
        recording=dataclasses.replace(run.recording, **{"source": "nvidia-smi", "ended_by": "import", **recording}),
    )


def ends(run):
    return [finding for finding in analyse(run).findings if finding.rule == "run-ended"]


@pytest.mark.parametrize(("processes", "confidence"), [((), 0.6), ((CAME, GONE), 0.7)])
def test_a_log_that_ends_full_and_empty_was_probably_out_of_memory(processes, confidence):
    (finding,) = ends(log([*FULL, *[4.0] * 20], processes=processes))
    assert finding.summary == "The training probably ran out of memory on GPU 0, which was full as it ended"
    assert (finding.severity, finding.end_t_s, finding.cause.confidence) == ("warning", 100.0, confidence)
    assert "batch" in finding.advice[0].text
    assert [round(each.value, 2) for each in finding.evidence] == [77.15, 78.12, 0.0]


@pytest.mark.parametrize(
    "run",
    [
        log([*FULL, *[79_000.0] * 20]),  # it goes on
        log([*FULL, *[20_000.0] * 20]),  # the process is there: it took less
        log([*FULL, *[4.0] * 10, *[30_000.0] * 10]),  # and trains again, with a smaller batch
        log([*[1_000.0] * 10, *[60_000.0] * 90, *[4.0] * 20]),  # never full
        log([*FULL[:-6], *[60_000.0] * 6, *[4.0] * 20]),  # a training that ends well empties its cache before
        log([*FULL, *[4.0] * 20], processes=[CAME]),  # nobody saw it go
        log([*FULL, *[4.0] * 20], capacity=None),
        log([NAN] * SECONDS),
        log([*FULL, *[4.0] * 20], events=[RecordedEvent(101.0, "command_ended", None, {"exit_code": 0})]),
        log([*FULL, *[4.0] * 20], exit_code=0),
    ],
)
def test_what_does_not_end_full_and_gone_is_no_such_case(run):
    assert ends(run) == []


def test_a_training_that_its_results_say_has_finished_did_not_run_out():
    run = make_run(readings((0, 10), (90, 90), (0, 20)), rows=[(1, 50.0), (2, 99.0)])
    full = dataclasses.replace(
        run,
        gpus=(Gpu(0, memory_total_mib=CARD_MIB),),
        samples=run.samples.assign(memory_used_mib=[*FULL, *[4.0] * 20]),
    )

    def asked(epochs):
        return dataclasses.replace(full, yolo_runs=(YoloRun(1, None, {"epochs": epochs}, "recorded", None),))

    assert ends(asked(2)) == []
    assert len(ends(asked(9))) == 1


@pytest.mark.parametrize(
    ("fields", "memory", "words"),
    [
        ({"exit_code": 1}, FULL, "The command ended with exit code 1, probably out of memory: GPU 0 was 99 % full"),
        ({"exit_code": 2}, FULL, "The command ended with exit code 2"),
        ({"exit_code": 1}, [60_000.0] * 100, "The command ended with exit code 1"),
    ],
)
def test_a_command_without_callbacks_that_failed_on_a_full_card(fields, memory, words):
    event = RecordedEvent(100.0, "command_ended", None, fields)
    (finding,) = ends(log([*memory, *[4.0] * 20], events=[event], source="gpu-report record"))
    assert (finding.summary, finding.severity) == (words, "critical")


def test_the_last_minute_is_that_of_the_training_that_ended():
    phases = (Phase("startup", None, 80.0, 85.0, "inside"), Phase("train", 1, 85.0, 100.0, "inside"))
    short = InsideRun(1, 0, 41, "train", {"epochs": 3}, phases, (), "exception", "ValueError")
    memory = np.concatenate([np.full(70, 79_000.0), np.full(50, 20_000.0)])  # another one had filled the card before
    told = analyse(dataclasses.replace(log(memory), inside=(short,))).ending.last_minute
    assert {each.text: each.value for each in told}["memory of that GPU in use, at most"] == 25.0


def test_what_another_process_held_long_before_is_none_of_the_end():
    phases = (Phase("startup", None, 0.0, 10.0, ""), Phase("train", 1, 10.0, 110.0, "inside"))
    oom = InsideRun(1, 0, 41, "train", {}, phases, (), "exception", "OutOfMemoryError")
    other = ((15.0, 60_000.0, "appeared"), (30.0, 5_000.0, "changed"))
    rows = [(t_s, 0, 77, "serve", mib, change, "other", 0.0) for t_s, mib, change in other]
    own = (12.0, 0, 41, "python3", 10_000.0, "appeared", "trainer", NAN)
    run = dataclasses.replace(log([70_000.0] * 30 + [79_000.0] * 90, processes=[own, *rows]), inside=(oom,))
    (finding,) = ends(run)
    told = {each.text: each.value for each in finding.evidence}
    assert told["memory of serve (pid 77), at most"] == pytest.approx(5_000 / 1024)
