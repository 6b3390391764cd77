"""Trainings whose epochs begin without data: a loader that is made anew for each (H200, 2026-11-27)."""

import dataclasses

import pytest
from support.runs import make_run, readings
from support.stacks import TRAINER, TRAINS, process

from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.causes import Explanation
from gpu_report.analyse.causes.late_first_batches import ADVICE, with_late_first_batch, with_late_first_batches
from gpu_report.analyse.causes.start_work import SPAWNS
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.model import Cause, Frame, InsideEpoch, InsideRun, Options

STALLED = Explanation(Cause("input-stalled", 0.7, "workers were blocked again and again"))
SMALL_STEPS = Explanation(Cause("launch-bound", 0.8, "each batch was too small to keep the GPU busy"))


def training(waits, *, batches=20, workers=10, first_s=1.2):
    """Return a training of epochs of 3.5 s that waited so long for data, of that so long for their first batch."""
    epochs = tuple(
        InsideEpoch(n + 1, 1, 5.0 * n, 5.0 * n + 3.5, 640, batches, wait_s, min(first_s, wait_s), min(first_s, wait_s))
        for n, wait_s in enumerate(waits)
    )
    told = InsideRun(1, 0, 1, "train", {"workers": workers}, (), epochs)
    return Training(1, (0.0, 5.0 * len(epochs)), RankGroup((told,)), settings={"workers": workers})


def test_waits_at_the_beginnings_of_epochs_are_a_loader_that_starts_anew():
    found = with_late_first_batches(training([2.0, 1.4, 1.3, 1.2, 1.4]), STALLED)
    assert found.cause.explanation.startswith("epochs began without data")
    assert (found.cause.name, found.advice) == ("input-start", (ADVICE,))
    assert found.evidence[0].value == pytest.approx(1.2)


@pytest.mark.parametrize(
    "told",
    [
        training([2.0, 1.4, 1.3]),  # two that tell, besides the first one of the process
        training([2.0, 3.0, 3.2, 2.9, 3.1]),  # it waits later on, too, and longer
        training([2.0, 1.4, 1.3, 1.2, 1.4], batches=8),  # one burst of all workers may be what an epoch waits for
        training([2.0, 1.4, 1.3, 1.2, 1.4], workers=0),
        training([2.0, 0.2, 0.2, 0.2, 0.2], first_s=0.2),
    ],
)
def test_other_waits_are_what_they_were(told):
    assert with_late_first_batches(told, STALLED) == STALLED


def test_a_cause_outside_the_loader_stays():
    assert with_late_first_batches(training([2.0, 1.4, 1.3, 1.2, 1.4]), SMALL_STEPS) == SMALL_STEPS


LAUNCH = Frame("/usr/lib/python3.12/multiprocessing/popen_spawn_posix.py", 62, "_launch", "write")
SPAWNING = (
    LAUNCH,
    Frame("/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py", 1192, "__init__"),
    TRAINER,
)


@pytest.mark.parametrize(("seconds", "name"), [(6.0, "input-start"), (2.0, "input-stalled")])
def test_a_drop_in_which_workers_were_spawned_is_their_start(seconds, name):
    stays = (0.0, 10.0, TRAINS), (10.0, 10.0 + seconds, SPAWNING), (10.0 + seconds, 30.0, TRAINS)
    run = make_run(readings((90, 10), (0, 7), (90, 13)))
    context = build_context(dataclasses.replace(run, stacks=(process(*stays),)), Options())
    found = with_late_first_batch(context, Drop(0, 10.0, 17.0, 90.0, 0.0, sustained=False), STALLED)
    assert found.cause.name == name
    assert (found.advice == (SPAWNS.advice,)) == (name == "input-start")
