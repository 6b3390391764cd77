"""The one sentence: it calls nothing healthy beside a bad end, a guest or a set-up at odds, and says what they were."""

import dataclasses

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import InsideEpoch, InsideRun, KernelEvent, Phase, RecordedEvent

NAN = float("nan")
HEALTHY = ", which is healthy for YOLO. No unexpected drop."
BUSY = "The GPU was busy 90 % of the 1 min 50 s in which it trained"


def trained(util=90.0, **settings):
    run = make_run(readings((0, 10), (util, 110)))
    phases = (Phase("startup", None, 0.0, 10.0, "inside"), Phase("train", 1, 10.0, 120.0, "inside"))
    return dataclasses.replace(run, inside=(InsideRun(1, 0, 41, "train", settings, phases, (), "finished"),))


def with_guest(run):
    came, went = (
        (20.0, 0, 77, "python3", 900.0, "appeared", "other", 86.0),
        (60.0, 0, 77, "", NAN, "gone", "other", NAN),
    )
    table = pd.DataFrame([dict(zip(PROCESSES, row, strict=True)) for row in (came, went)], columns=PROCESSES)
    return dataclasses.replace(run, processes=table)


def machine(run, **known):
    return dataclasses.replace(run, recording=dataclasses.replace(run.recording, **known))


def killed(run):
    ended = RecordedEvent(120.0, "command_ended", None, {"signal": "SIGKILL"})
    (inside,) = run.inside
    return dataclasses.replace(run, events=(ended,), inside=(dataclasses.replace(inside, ended=None),))


def test_a_run_that_nothing_mars_is_called_healthy():
    assert analyse(trained()).verdict == f"{BUSY}{HEALTHY}"


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (killed(trained()), f"SIGKILL ended the command, 2 min 0 s after the recording began. {BUSY}."),
        (
            with_guest(trained()),
            f"{BUSY}. python3 (pid 77) worked on GPU 0 beside the training for 40 s.",
        ),
        (
            machine(
                trained(data_folder="/data/coco", workers=8, prefetch=4, batch=16, imgsz=640),
                shm_total_mib=64.0,
            ),
            f"{BUSY}{HEALTHY}",  # a note mars nothing
        ),
    ],
)
def test_no_run_is_called_healthy_beside_what_marred_it(run, verdict):
    assert analyse(run).verdict == verdict


def test_a_set_up_at_odds_is_told_before_the_work():
    run = machine(trained(util=0.0, torch="2.13.0+cpu", device="cpu"), cuda="13.0")
    odds = "The training ran on the CPU beside GPU 0 (NVIDIA H200): its torch 2.13.0+cpu was built without CUDA."
    assert analyse(run).verdict == f"{odds} No GPU worked during this recording."


def test_a_slow_epoch_is_told_after_the_work():
    phases, epochs, t_s = [Phase("startup", None, 0.0, 10.0, "inside")], [], 10.0
    for number, length in enumerate([20.0, 20.0, 20.0, 40.0, 20.0, 20.0], 1):
        phases.append(Phase("train", number, t_s, t_s + length, "inside"))
        epochs.append(InsideEpoch(number, 1, t_s, t_s + length, 100, 10, 0.0, 0.0, 0.0))
        t_s += length
    inside = InsideRun(1, 0, 41, "train", {}, tuple(phases), tuple(epochs), "finished")
    run = dataclasses.replace(make_run(readings((0, 10), (90, 140))), inside=(inside,))
    busy = "The GPU was busy 90 % of the 2 min 20 s in which it trained"
    assert analyse(run).verdict == f"{busy}. The training of epoch 4 took 40.0 s, usually 20.0 s: 20 s lost."


def test_what_another_program_did_to_itself_does_not_mar_a_training():
    fault = KernelEvent(50.0, "segfault", "warning", "x", "a program crashed")
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 120)], kernel=[fault])
    assert analyse(run).verdict == f"A program crashed. {BUSY}{HEALTHY}"


def test_the_kernels_line_of_a_kill_is_not_said_again_after_the_end():
    kill = KernelEvent(
        119.0, "oom", "critical", "Killed process 41", "host memory ran out: x", pid=41, process="python3"
    )
    run = killed(trained())
    run = dataclasses.replace(run, kernel=dataclasses.replace(run.kernel, events=(kill,)))
    end = "The kernel's OOM killer ended the training: host memory ran out, 2 min 0 s after the recording began."
    assert analyse(run).verdict == f"{end} {BUSY}."


def test_a_low_utilisation_is_read_as_ever_beside_what_marred_the_run():
    assert "it mostly waited" in analyse(killed(trained(util=30.0))).verdict
