"""Functions of the user's own that take a share of a training beside what holds it back most."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run
from support.stacks import LOG, TRAINER, process

from gpu_report.analyse import analyse
from gpu_report.analyse.build_context import build_context
from gpu_report.analyse.signals.thresholds import OWN_SHARE
from gpu_report.model import Frame, InsideEpoch, InsideRun, Options, Phase, Probes, YoloRun
from gpu_report.render.next_steps import next_step
from gpu_report.render.speedup_rows import speedup_rows

MODULE = Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1751, "_wrapped_call_impl")
CALLS = Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py", 234, "run_callbacks")
STEP, LOGS = (MODULE, TRAINER), (LOG, CALLS, TRAINER)
TASKS = Frame("/venv/lib/python3.11/site-packages/ultralytics/nn/tasks.py", 162, "forward")
LOSS = (Frame("/home/u/loss.py", 18, "rare_weight"), Frame("/home/u/loss.py", 26, "loss"), TASKS, MODULE, TRAINER)
HOST = {"main_cpu_pct": 95.0, "workers_cpu_pct": 30.0, "busiest_worker_cpu_pct": 10.0, "workers": 4.0}
BEGINS_S, EPOCHS, EPOCH_S = 10.0, 4, 30.0
OVER_S = BEGINS_S + EPOCHS * EPOCH_S


def trained(logs_share, *, util=30.0, computes=False, grown=0.0, stack=LOGS, swings=0.0, first=(0.0, STEP)):
    """Return a training whose steps launch, and whose callback takes a share of each second; its GPU is idle there.

    The share grows evenly by `grown` up to the end. With `swings` every second second has twice of it, in the others
    there is none; by so many points the GPU is busier then, and less busy in the others. `first` is the share of each
    second that it stands in another stack before.
    """
    phases = [Phase("startup", None, 0.0, BEGINS_S, "callbacks", "first batch")]
    epochs, stays = [], [(0.0, BEGINS_S, STEP)]
    for number in range(EPOCHS):
        start_s = BEGINS_S + number * EPOCH_S
        phases.append(Phase("train", number + 1, start_s, start_s + EPOCH_S, "callbacks"))
        epochs.append(InsideEpoch(number + 1, 1, start_s, start_s + EPOCH_S, 1000, 100, 0.0, 0.0, 0.0))
    for second in np.arange(BEGINS_S, OVER_S):
        share = logs_share + grown * (second - BEGINS_S) / (OVER_S - BEGINS_S)
        share *= 2 * (second % 2) if swings else 1
        began, before = second + first[0], first[1]
        stays += [(second, began, before), (began, began + share, stack), (began + share, second + 1, STEP)]
    looks = np.arange(BEGINS_S, OVER_S) + logs_share / 2
    probes = Probes(looks, np.full(len(looks), 1.0 if computes else 0.0))
    notes = dataclasses.replace(process(*[stay for stay in stays if stay[1] > stay[0]]), probes=probes)
    seconds = range(1, round(OVER_S - BEGINS_S) + 1)
    run = make_run(
        [0.0] * round(BEGINS_S) + [util + (swings if second % 2 else -swings) for second in seconds],
        quantities={"sm_active_pct": [10.0] * round(OVER_S)},
    )
    host = run.host.reindex(range(round(OVER_S)))
    host["t_s"], host["main_cpu_pct"], host["workers_cpu_pct"], host["workers"] = (
        np.arange(1.0, OVER_S + 1),
        95.0,
        30.0,
        4.0,
    )
    host["busiest_worker_cpu_pct"] = 10.0
    inside = InsideRun(
        1, 0, 1, "train", {"batch": 32, "workers": 4, "batches": 100}, tuple(phases), tuple(epochs), "finished"
    )
    yolo = (YoloRun(1, None, {"batch": 32, "workers": 4}, "recorded", None),)
    return dataclasses.replace(run, inside=(inside,), yolo_runs=yolo, stacks=(notes,), host=host)


def own(run):
    return [finding for finding in analyse(run).findings if finding.rule == "user-code"]


@pytest.mark.parametrize(("computes", "cause"), [(False, "trainer-blocked"), (True, "main-process")])
def test_a_callback_beside_launching_is_a_finding_of_its_own(computes, cause):
    run = trained(0.3, computes=computes)
    (finding,) = own(run)
    assert (finding.severity, finding.cause.name) == ("warning", cause)
    assert finding.summary.endswith(" of training time on GPU 0 went into log_images (callbacks.py:41)")
    assert (finding.where[0].function, finding.where[0].line) == (LOG.function, LOG.line)
    analysis = analyse(run)
    (starved,) = [f for f in analysis.findings if f.rule == "starved"]
    assert starved.cause.name == "launch-bound"
    # no larger batch can be said to fit, so what can be looked at comes first
    assert analysis.verdict.text.startswith("Look at `log_images` (callbacks.py:41): it took")


def test_what_is_left_beside_a_wait_is_launching_and_each_limit_follows_what_it_is_of():
    """The callback waits for 40 % of the time; in the rest the steps launch."""
    analysis = analyse(trained(0.4))
    assert {f.rule: f.cause.name for f in analysis.findings if f.cause} == {
        "user-code": "trainer-blocked",
        "starved": "launch-bound",
    }
    first, second = analysis.verdict.sentences[:2]
    assert first.text.startswith("Look at `log_images` (callbacks.py:41): it took 40 % of training time")
    assert second.text == "Without it an epoch takes about 18.0 s instead of 30.0 s."
    assert sum(each.kind == "speed-up" for each in analysis.verdict.sentences) == 1


def test_a_loss_whose_kernels_keep_the_gpu_busy_is_no_wait_for_python():
    """The GPU is busy for 58 % of the time, and idle for less than half of the loss."""
    analysis = analyse(trained(0.56, util=62.0, stack=LOSS, computes=True))
    (finding,) = [each for each in analysis.findings if each.rule == "user-code"]
    assert finding.cause.name == "own-gpu-work"
    assert "in fewer steps or on fewer layers" in finding.advice[0].text
    assert not [each for each in analysis.findings if each.rule == "starved" and each.cause.name == "main-process"]
    assert next_step(finding, analysis) == ""


def test_what_epochs_would_be_without_it_has_a_row_beside_that_of_the_small_steps():
    analysis = analyse(trained(0.3))
    (row,) = [row for row in speedup_rows(analysis) if row.limit.location]
    assert row.name == "Your log_images (callbacks.py:41)"
    assert row.limit_s == pytest.approx(0.7 * row.now_s, rel=0.02)
    assert not [row for row in speedup_rows(analyse(trained(0.0))) if row.limit.location]


def test_a_loss_during_which_the_gpu_still_works_holds_up_a_gpu_that_waits():
    """The GPU was idle in it for less than OWN_SHARE of its idle time, but the next step waits for all of it."""
    run = trained(0.12, stack=LOSS, swings=25.0)
    (finding,) = own(run)
    assert finding.summary == "12 % of training time on GPU 0 went into rare_weight (loss.py:18)"
    assert (finding.where[0].function, finding.where[0].line) == ("rare_weight", 18)
    assert finding.where[0].share == pytest.approx(0.12, abs=0.005)
    context = build_context(run, Options())
    assert context.signals.of_training(0, context.trainings[0]).idle_location.call_share < OWN_SHARE


def test_what_it_took_is_all_of_its_time():
    (finding,) = own(trained(0.3, util=50.0))
    assert finding.summary.startswith("30 % of training time")


def test_one_that_takes_ever_longer_leads():
    run = trained(0.0, grown=0.45, util=20.0)
    (finding,) = own(run)
    assert "It took " in finding.summary
    numbers = {each.key: each.value for each in finding.evidence if each.key}
    assert 2 * numbers["grown_from_s"] < numbers["grown_to_s"]
    assert 2 < numbers["grows_on_s"] <= 3.4  # 0.11 s more a second in each epoch of 30 s: of that at least so much
    text = analyse(run).verdict.text
    assert text.startswith("Look at `log_images` (callbacks.py:41): it took ")
    assert "each epoch takes at least 2.8 s longer than the one before" in text


def saved_share(run):
    """Return what is at most saved by the row of the user's function, as a share (0 to 1) of training."""
    return [
        row.limit.saves_at_most_s / row.limit.epoch_s_now for row in speedup_rows(analyse(run)) if row.limit.location
    ]


CLIP = Frame("/home/u/trainer.py", 15, "optimizer_step")
CLIPS, WAITS_THERE = (CLIP, TRAINER), (CLIP._replace(called="item"), TRAINER)


def test_to_wait_for_the_steps_own_work_on_the_gpu_is_not_what_a_function_costs():
    """YOLO shows the loss a moment later, for which it waits as long. What a callback waits for is work of its own."""
    run = trained(0.2, util=50.0, stack=CLIPS, first=(0.2, WAITS_THERE))
    (finding,) = own(run)
    assert finding.summary.startswith("20 % of training time on GPU 0 went into optimizer_step (trainer.py:15)")
    assert saved_share(run) == [pytest.approx(0.2, abs=0.02)]
    assert [each.value for each in finding.evidence if "waited there" in each.text] == [pytest.approx(20, abs=2)]
    logs = trained(0.2, util=50.0, first=(0.2, (LOG._replace(called="item"), CALLS, TRAINER)))
    assert saved_share(logs) == [pytest.approx(0.4, abs=0.02)]


def test_what_any_step_does_to_its_gradients_is_no_work_of_an_override():
    scaler = Frame("/venv/lib/python3.11/site-packages/torch/amp/grad_scaler.py", 358, "unscale_")
    run = trained(0.2, stack=CLIPS, first=(0.2, (scaler, *CLIPS)))
    assert saved_share(run) == [pytest.approx(0.2, abs=0.02)]


def test_no_epoch_is_promised_that_is_shorter_than_the_gpus_work():
    """In a function that takes half of the time a GPU that is busy for 62 % works as well."""
    assert saved_share(trained(0.5, util=62.0)) == [pytest.approx(0.38, abs=0.02)]


@pytest.mark.parametrize("run", [trained(0.0), trained(0.04), trained(0.3, util=97.0)], ids=["none", "little", "busy"])
def test_what_takes_little_of_the_training_is_none(run):
    assert own(run) == []


def test_where_it_is_why_the_gpu_waits_it_is_told_once():
    run = trained(0.7, util=20.0)
    assert own(run) == []
    (starved,) = [f for f in analyse(run).findings if f.rule == "starved"]
    assert starved.cause.name == "trainer-blocked"


def test_without_lines_there_is_none():
    assert own(dataclasses.replace(trained(0.3), stacks=())) == []


@pytest.mark.parametrize(("util", "share"), [(20.0, 0.3), (40.0, 0.4)])
def test_the_limit_of_a_call_is_without_all_the_time_that_it_took(util, share):
    """It took 0.7 of each second; what the GPU did meanwhile is done in no less than that takes."""
    limits = analyse(trained(0.7, util=util)).speedup_limits
    (limit,) = [limit for limit in limits if limit.cause == "trainer-blocked"]
    assert limit.epoch_s_now == pytest.approx(EPOCH_S)
    assert limit.epoch_s_at_best == pytest.approx(share * EPOCH_S, rel=0.03)


def test_what_to_do_does_not_say_again_where():
    analysis = analyse(trained(0.3))
    (finding,) = [each for each in analysis.findings if each.rule == "user-code"]
    assert next_step(finding, analysis) == "Call it less often, or let a background thread wait instead."
