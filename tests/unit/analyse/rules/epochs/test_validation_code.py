"""Functions of the user's own that take a share of epochs within their validations."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run
from support.stacks import TRAINER, process

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.model import Frame, InsideEpoch, InsideRun, Phase, Validation, YoloRun

VALIDATOR = Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/validator.py", 228, "__call__")
STEP, VALIDATES = (TRAINER,), (VALIDATOR, TRAINER)
SOFT_NMS = (Frame("/home/u/soft_nms.py", 17, "soft_nms"), VALIDATOR, TRAINER)
MAIN = Frame("/home/u/check.py", 16, "<module>")
TIMER = Frame("/home/u/.venv/lib/gpu_report/inside/on_path/gpu_report_inside/startup.py", 40, "__call__")  # ours
METRIC = (Frame("/home/u/light.py", 7, "brightness"), Frame("/home/u/validator.py", 22, "update_metrics"))
BEGINS_S, TRAINS_S, VALIDATES_S = 10.0, 20.0, 10.0


def validated(seconds, *, util=5.0):
    """Return a training of one epoch, whose validation of 10 s is in the user's function for so many seconds."""
    trained_s = BEGINS_S + TRAINS_S
    over_s = trained_s + VALIDATES_S
    phases = (
        Phase("startup", None, 0.0, BEGINS_S, "callbacks", "first batch"),
        Phase("train", 1, BEGINS_S, trained_s, "callbacks"),
        Phase("validation", 1, trained_s, over_s, "callbacks"),
    )
    stays = [
        (0.0, trained_s, STEP),
        (trained_s, trained_s + seconds, SOFT_NMS),
        (trained_s + seconds, over_s, VALIDATES),
    ]
    run = make_run([0.0] * round(BEGINS_S) + [90.0] * round(TRAINS_S) + [util] * round(VALIDATES_S))
    epochs = (InsideEpoch(1, 1, BEGINS_S, trained_s, 1000, 100, 0.0, 0.0, 0.0),)
    inside = InsideRun(1, 0, 1, "train", {"batch": 32, "workers": 4, "batches": 100}, phases, epochs, "finished")
    yolo = (YoloRun(1, None, {"batch": 32, "workers": 4}, "recorded", None),)
    notes = process(*[stay for stay in stays if stay[1] > stay[0]])
    return dataclasses.replace(run, inside=(inside,), yolo_runs=yolo, stacks=(notes,))


def test_a_validator_of_ones_own_is_named_with_its_line_after_one_validation():
    analysis = analyse(validated(6.0))
    (found,) = [finding for finding in analysis.findings if finding.rule == "user-code"]
    assert found.summary == "20 % of the time of epochs on GPU 0 went into soft_nms (soft_nms.py:17), in validation"
    assert (found.where[0].line, found.phase) == (17, "validation")
    lost = next(each.value for each in found.evidence if each.key == "user_code_idle_pct")
    assert lost == pytest.approx(19.0, abs=0.1)
    said = "Look at `soft_nms` (soft_nms.py:17): it took 20 % of the time of epochs, in validation."
    assert said in [sentence.text for sentence in analysis.verdict.sentences]


def only_validated(*calls, util=5.0):
    """Return a program that validates twice for 10 s, after 10 s; each time it is so many seconds in each call."""
    parts = {"data": 1.0, "preprocess": 0.0, "inference": 1.0, "loss": 0.0, "postprocess": 0.0, "metrics": 8.0}
    phases, stays = [], []
    for begins_s in (10.0, 20.0):
        done, t_s = Validation(begins_s, begins_s + 10, None, 400, 13, parts, 0.5, 32, 8), begins_s
        phases.append(Phase("validation", None, begins_s, begins_s + 10, "callbacks", validated=done))
        for stack, seconds in calls:
            stays.append((t_s, t_s + seconds, (*stack, TIMER, VALIDATOR, MAIN)))
            t_s += seconds
        stays.append((t_s, begins_s + 10, (VALIDATOR, MAIN)))
    inside = InsideRun(None, 0, 1, "val", {}, tuple(phases), ())
    run = make_run([0.0] * 10 + [util] * 20) if util is not None else make_run([], duration_s=30.0)
    return dataclasses.replace(run, inside=(inside,), stacks=(process(*stays),))


@pytest.mark.parametrize(("util", "then"), [(5.0, "4.30 s"), (None, "4.00 s")], ids=["GPU", "CPU"])
def test_a_metric_of_ones_own_leads_where_nothing_was_trained(util, then):
    analysis = analyse(only_validated((METRIC, 6.0), util=util))
    (found,) = [finding for finding in analysis.findings if finding.rule == "user-code"]
    assert found.summary == "60 % of validation went into brightness (light.py:7), called in update_metrics()"
    lead = f"Look at `brightness` (light.py:7): 10.0 s a validation become about {then} without it."
    assert analysis.verdict.text.startswith(lead)
    assert "Nothing to fix" not in analysis.verdict.text
    assert "epoch" not in analysis.verdict.text


def test_each_function_that_takes_a_share_of_validations_is_named():
    other = (Frame("/home/u/plots.py", 31, "finalize_metrics"),)
    analysis = analyse(only_validated((METRIC, 4.0), (other, 2.0)))
    assert [finding.where[0].line for finding in analysis.findings if finding.rule == "user-code"] == [7, 31]


@pytest.mark.parametrize(
    "run", [only_validated(), only_validated((METRIC, 0.3)), only_validated((METRIC, 6.0), util=97.0)]
)
def test_a_validation_with_little_of_ones_own_or_a_busy_gpu_has_nothing_to_fix(run):
    assert analyse(run).verdict.text.startswith("Nothing to fix")


@pytest.mark.parametrize(
    "run", [validated(0.0), validated(1.0), validated(6.0, util=95.0)], ids=["none", "1 s", "busy"]
)
def test_what_takes_little_of_the_epochs_or_keeps_the_gpu_busy_is_none(run):
    assert [finding for finding in analyse(run).findings if finding.rule == "user-code"] == []


@pytest.mark.parametrize(
    ("cpu_pct", "cause", "first"),
    [(100.0, "main-process", "Do the work of `"), (2.0, "trainer-blocked", "Do what `")],
)
def test_what_waits_is_not_told_to_compute_faster(cpu_pct, cause, first):
    run = validated(6.0)
    table = pd.DataFrame({"t_s": np.arange(40.0), **{column.name: np.nan for column in schema.HOST_QUANTITIES}})
    analysis = analyse(dataclasses.replace(run, host=table.assign(main_cpu_pct=cpu_pct)))
    (found,) = [finding for finding in analysis.findings if finding.rule == "user-code"]
    assert (found.cause.name, found.advice[0].text.startswith(first)) == (cause, True)
