"""The one sentence: it calls nothing healthy beside a bad end, another process or a set-up at odds, and says which."""

import dataclasses

import pandas as pd
import pytest
from support.runs import PROCESSES, make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import InsideEpoch, InsideRun, KernelEvent, Phase, RecordedEvent
from gpu_report.render.run.terminal import render_text

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


KILLED = "SIGKILL ended the command: somebody or something sent it, not the kernel's OOM killer"


def test_a_run_that_nothing_mars_is_called_healthy():
    assert analyse(trained()).verdict.text == f"{BUSY}{HEALTHY}"


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (killed(trained()), f"{KILLED}, 2 min 0 s after the recording began. {BUSY}."),
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
    assert analyse(run).verdict.text == verdict


def test_a_set_up_at_odds_is_told_before_the_work():
    run = machine(trained(util=0.0, torch="2.13.0+cpu", device="cpu"), cuda="13.0")
    odds = "The training ran on the CPU beside GPU 0 (NVIDIA H200): its torch 2.13.0+cpu was built without CUDA."
    assert analyse(run).verdict.text == f"{odds} No GPU worked during this recording."


def test_a_slow_epoch_is_told_after_the_work():
    phases, epochs, t_s = [Phase("startup", None, 0.0, 10.0, "inside")], [], 10.0
    for number, length in enumerate([20.0, 20.0, 20.0, 40.0, 20.0, 20.0], 1):
        phases.append(Phase("train", number, t_s, t_s + length, "inside"))
        epochs.append(InsideEpoch(number, 1, t_s, t_s + length, 100, 10, 0.0, 0.0, 0.0))
        t_s += length
    inside = InsideRun(1, 0, 41, "train", {}, tuple(phases), tuple(epochs), "finished")
    run = dataclasses.replace(make_run(readings((0, 10), (90, 140))), inside=(inside,))
    busy = "The GPU was busy 90 % of the 2 min 20 s in which it trained"
    assert analyse(run).verdict.text == f"{busy}. The training of epoch 4 took 40.0 s, usually 20.0 s: 20 s lost."


def test_what_another_program_did_to_itself_does_not_mar_a_training():
    fault = KernelEvent(50.0, "segfault", "warning", "x", "a program crashed")
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 120)], kernel=[fault])
    assert analyse(run).verdict.text == f"A program crashed. {BUSY}{HEALTHY}"


def test_the_kernels_line_of_a_kill_is_not_said_again_after_the_end():
    kill = KernelEvent(
        119.0, "oom", "critical", "Killed process 41", "host memory ran out: x", pid=41, process="python3"
    )
    run = killed(trained())
    run = dataclasses.replace(run, kernel=dataclasses.replace(run.kernel, events=(kill,)))
    end = "The kernel's OOM killer ended the training: host memory ran out, 2 min 0 s after the recording began."
    assert analyse(run).verdict.text == f"{end} {BUSY}."


def test_a_low_utilisation_is_read_as_ever_beside_what_marred_the_run():
    assert "it mostly waited" in analyse(killed(trained(util=30.0))).verdict.text


def test_a_run_with_an_unexpected_drop_is_not_called_healthy():
    run = make_run(readings((0, 10), (90, 50), (0, 20), (90, 40)), rows=[(1, 115)])
    assert analyse(run).verdict.text.startswith(
        "The GPU was busy 74 % of the 1 min 50 s in which it trained. 1 unexpected"
    )


def test_training_too_short_to_judge_is_not_said_to_have_no_drop():
    run = make_run(readings((0, 112), (90, 8)))
    assert analyse(run).verdict.text == ("The GPU was busy 90 % of 8 s after startup, which is too short to judge.")


def test_the_one_gpu_of_several_that_trained_is_named():
    run = make_run([readings((0, 10), (90, 110)), readings((0, 120))])
    assert analyse(run).verdict.text.startswith("GPU 0 was busy 90 % of")


def test_what_a_process_of_somebody_elses_did_is_told_after_the_training():
    fault = KernelEvent(50.0, "xid", "warning", "x", "a bad address", "", 0, 31, 99, "python3")
    epochs = tuple(InsideEpoch(n, 1, t_s, t_s + 50.0, 10, 1, 0.1, 0.1, 0.1) for n, t_s in ((1, 10.0), (2, 65.0)))
    phases = tuple(Phase("train", epoch.epoch, epoch.start_t_s, epoch.end_t_s, "inside") for epoch in epochs)
    run = make_run(readings((0, 10), (90, 110)), rows=[(1, 60), (2, 115)], kernel=[fault])
    said = analyse(dataclasses.replace(run, inside=(InsideRun(1, 0, 41, "train", {}, phases, epochs),))).verdict.text
    assert said.startswith("The GPU was busy 90 %")
    assert said.endswith("GPU 0: a bad address; it was python3 (pid 99), not the training, which went on.")


def test_a_gpu_that_only_waits_for_another_counts_as_idle_and_is_told_with_what_it_waits_for():
    late, spins = (readings((0, 10), (80, 50), (percent, 15), (80, 45)) for percent in (0, 100))
    power = [90.0] * 10 + [500.0] * 50 + [121.0] * 15 + [500.0] * 45
    run = make_run([spins, late], rows=[(1, 40), (2, 115)], quantities={"power_w": power})
    assert analyse(run).verdict.text.startswith(
        "2 GPUs were busy 69 % of the 1 min 50 s in which they trained. 1 unexpected drop took 15 s on GPU 1: "
        "not explained by anything recorded. Meanwhile GPU 0 waited for it, though reading as fully busy."
    )


def test_startup_is_told_beside_the_largest_loss_of_training():
    said = analyse(make_run(readings((0, 60), (50, 60)), rows=[(1, 60), (2, 118)])).verdict.text
    assert "Start-up took " in said
    assert " of all GPU time; of what else was lost, short gaps between batches took most: " in said


def test_a_few_readings_are_no_proof_that_nothing_worked():
    said = "Too little was recorded to say whether a GPU worked: 1 reading of utilisation in 0 s, 95 % at most."
    assert analyse(make_run([95.0], duration_s=0.0)).verdict.text == said
    assert analyse(make_run([0.0, 0.0])).verdict.text == "No GPU worked during this recording."
    nothing = make_run([float("nan")] * 20)
    assert analyse(nothing).verdict.text.startswith("Nobody read how busy a GPU was")


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (8, "Too little was recorded to say whether a GPU worked: 8 readings of utilisation in 8 s, 0 % at most."),
        (20, "No GPU worked in the 20 s that were measured. 80 % of the time was not measured: what happened then is"),
        (98, "No GPU worked during this recording."),
    ],
)
def test_an_idle_beginning_is_no_proof_that_nothing_worked(seconds, said):
    assert analyse(make_run(readings((0, seconds)), duration_s=100.0)).verdict.text.startswith(said)


def test_of_a_log_that_knows_no_training_nothing_is_said_of_startup_or_batches():
    run = make_run(readings((50, 120)))
    verdict = analyse(run).verdict.text
    assert "busy 50 % of the 2 min 0 s recorded" in verdict
    assert "batches" not in verdict
    assert "batches" not in render_text(analyse(run))
    assert "Short gaps between batches" in render_text(analyse(make_run(readings((50, 120)), rows=[(1, 60), (2, 120)])))
