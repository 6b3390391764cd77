"""Steps that take longer and longer within epochs that are too few to say so."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run
from support.stacks import TRAINER, process

from gpu_report.analyse import analyse
from gpu_report.model import Frame, InsideEpoch, InsideRun, Phase, Progress, YoloRun

STARTS_S, REPORTED_S, BATCHES = 10.0, 3.0, 150
MODULE = Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1846, "inner")
HOOK = Frame("/home/me/activations.py", 22, "hook", "mean")


def trained(step_s, *, waits=lambda _: 0.0, of_hook=None, epochs=2):
    """Return a training of `epochs`, whose n-th step takes `step_s(n)`, of that `waits(n)` for data.

    In `of_hook(n)` s of it the main process is in a hook.
    """
    phases, told, progress, stays, t_s, count = [Phase("startup", None, 0.0, STARTS_S, "inside")], [], [], [], 10.0, 0
    for number in range(1, epochs + 1):
        start_s, waited_s, heard_s = t_s, 0.0, t_s
        for done in range(1, BATCHES + 1):
            hook_s = of_hook(count) if of_hook else 0.0
            stays += [(t_s, t_s + hook_s, (HOOK, MODULE, TRAINER))] * (hook_s > 0)
            stays.append((t_s + hook_s, t_s + step_s(count), (TRAINER,)))
            t_s, waited_s, count = t_s + step_s(count), waited_s + waits(count), count + 1
            if t_s - heard_s >= REPORTED_S:
                progress.append(Progress(t_s - 1e-6, done, waited_s))
                heard_s = t_s
        phases.append(Phase("train", number, start_s, t_s, "inside"))
        told.append(InsideEpoch(number, 1, start_s, t_s, 32 * BATCHES, BATCHES, waited_s, 0.0, 0.0))
        stays.append((t_s, t_s + 2, (TRAINER,)))
        t_s += 2.0
        phases.append(Phase("validation", number, t_s - 2, t_s, "inside"))
    settings = {"batches": BATCHES, "batch": 32}
    inside = InsideRun(1, 0, 1, "train", settings, tuple(phases), tuple(told), "finished", progress=tuple(progress))
    seconds = np.arange(round(t_s) + 2)
    run = make_run(np.where(seconds >= STARTS_S, 95.0, 0.0).tolist())
    yolo = YoloRun(1, None, {}, "recorded", None)
    return dataclasses.replace(run, inside=(inside,), yolo_runs=(yolo,), stacks=(process(*stays),))


def slowing(run):
    return [finding for finding in analyse(run).findings if finding.rule == "epochs-slowing"]


def test_hooks_that_are_added_at_each_batch_are_told_with_the_line_that_grew():
    """Eight more forward hooks a batch: 193 ms a step, then 451 ms, on a GPU that was busy (H200, 2026-11-28)."""
    run = trained(lambda n: 0.1 + 0.001 * n, of_hook=lambda n: 0.02 + 0.0009 * n)
    (finding,) = slowing(run)
    assert finding.summary == "Each step took longer than the ones before: from 167 ms to 353 ms over 300 steps"
    assert finding.advice[0].short == "Look at `hook` (activations.py:22)"
    assert finding.where[0].line == 22
    said = analyse(run).verdict.text
    assert said.startswith(
        "Look at `hook` (activations.py:22): it cost about 25 s of training. It grew from 72 ms to 247 ms"
    )


def test_what_grows_elsewhere_names_no_function_of_the_users():
    (finding,) = slowing(trained(lambda n: 0.1 + 0.001 * n, of_hook=lambda _: 0.02))
    assert finding.where == ()
    assert finding.advice[0].short == "Find what makes the GPU's work longer"


def with_counts(run, **counts):
    """Return a run that reports how many hooks or callbacks there are, by the batches done in all."""
    told, before, done = [], 0, 0
    for each in run.inside[0].progress:
        done += each.batches - before if each.batches >= before else each.batches
        before = each.batches
        told.append(dataclasses.replace(each, **{name: count(done) for name, count in counts.items()}))
    return dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], progress=tuple(told)),))


def test_hooks_that_are_registered_at_each_batch_are_counted():
    run = trained(lambda n: 0.1 + 0.001 * n, of_hook=lambda n: 0.02 + 0.0009 * n)
    (finding,) = slowing(with_counts(run, hooks=lambda done: 40 + 8 * done, callbacks=lambda _: 30))
    assert ", as the model's hooks grew from " in finding.summary
    assert "Register each hook once, or remove it (`handle.remove()`): the model's hooks" in finding.advice[0].text
    assert finding.advice[0].short == "Look at `hook` (activations.py:22)"
    (finding,) = slowing(with_counts(trained(lambda n: 0.1 + 0.001 * n), callbacks=lambda done: 30 + done))
    assert finding.advice[0].short == "Call `add_callback` once, not at each batch"
    (finding,) = slowing(with_counts(run, hooks=lambda done: 40 + 8 * (done // 150), callbacks=lambda _: None))
    assert "grew from" not in finding.summary  # a few in each epoch


@pytest.mark.parametrize(
    "step_s",
    [
        lambda n: 0.2 + 0.02 * (n % 5),  # uneven, and no slower
        lambda n: 0.2 + 0.0001 * n,  # by a seventh
        lambda n: 0.2 if n < BATCHES else 0.4,  # once
        lambda n: 0.4 - 0.001 * n,  # faster and faster
    ],
    ids=["uneven", "little", "a step", "faster"],
)
def test_steps_that_do_not_go_on_growing_are_none(step_s):
    assert slowing(trained(step_s)) == []


def test_a_wait_for_data_that_grows_is_no_longer_step():
    grows = lambda n: 0.001 * n  # noqa: E731
    assert slowing(trained(lambda n: 0.1 + grows(n), waits=grows)) == []


def test_seconds_lost_in_all_are_too_little_to_tell():
    assert slowing(trained(lambda n: 0.05 + 0.0002 * n, epochs=1)) == []


def test_epochs_enough_to_say_so_themselves_say_it():
    (finding,) = slowing(trained(lambda n: 0.1 + 0.0005 * n, epochs=8))
    assert finding.summary.startswith("Epochs got slower")
