"""What is said of a run that only validated models: figures of validation, and no word of training."""

import dataclasses

import pytest
from support.calls import make_calls, make_served
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare, unfinished
from gpu_report.model import InsideRun, Phase, RecordedEvent, Validation

PARTS = {"data": 1.0, "preprocess": 1.0, "inference": 4.0, "loss": 0.0, "postprocess": 3.0, "metrics": 1.0}


def validation(start_s=10.0, images=1800, first_wait_s=0.5, workers=12, **parts):
    """Return a validation of ten seconds."""
    return Validation(start_s, start_s + 10, None, images, 57, {**PARTS, **parts}, first_wait_s, 32, workers)


def validated(*found, task="val", gpus=1):
    """Return a run in which models were validated one after the other, on the first of some GPUs."""
    startup = Phase("startup", None, 0.0, 10.0, "callbacks")
    phases = [Phase("validation", None, v.start_t_s, v.end_t_s, "callbacks", validated=v) for v in found]
    inside = tuple(InsideRun(None, 0, 7, task, {}, (startup, phase), ()) for phase in phases)
    worked, idle = readings((0.0, 10.0), (60.0, 30.0)), readings((0.0, 40.0))
    return dataclasses.replace(make_run([worked, *[idle] * (gpus - 1)]), inside=inside)


def said(run):
    return {sentence.kind: sentence.text for sentence in analyse(run).verdict.sentences}


def test_how_fast_it_was_and_where_the_time_went():
    words = said(validated(validation()))
    assert words["nothing"] == "Nothing to fix was found in the validation."
    assert words["speed"] == "Validated 1,800 images in 10.0 s (180 images/s)."
    assert words["part"].startswith("Inference 40 %, postprocessing (NMS) 30 %,")
    assert words["work"] == "Meanwhile GPU 0 was busy 60 %."
    assert words["start"] == "Start-up took 10 s of 40 s, validating 10 s."


def test_several_validations_are_told_one_after_the_other():
    found = [validation(10.0 + 10 * k, images=images) for k, images in enumerate((1800, 900, 600))]
    named = "Validated 1,800 images in 10.0 s (180 images/s), then 900 images in 10.0 s (90 images/s)"
    assert said(validated(*found))["speed"] == f"{named}; 1 more validation in the table."


@pytest.mark.parametrize(("data", "first_wait_s", "waits"), [(2.0, 0.5, False), (6.0, 0.5, True), (6.0, 5.5, False)])
def test_a_loader_that_is_waited_for_after_the_first_batch_leads(data, first_wait_s, waits):
    analysis = analyse(validated(validation(data=data, first_wait_s=first_wait_s, workers=2)))
    led = "Set more `workers` (now 2), or `cache=ram`: validation waited for images 55 % of its time."
    assert analysis.verdict.text.startswith(led) == waits
    assert analysis.verdict.text.startswith("Nothing to fix") != waits


def test_a_validation_that_never_ended_is_said_to_have_none():
    run = validated(validation())
    unfinished = tuple(dataclasses.replace(each, phases=each.phases[:1]) for each in run.inside)
    assert said(dataclasses.replace(run, inside=unfinished))["validation"] == "No validation came to its end."


def test_another_gpu_is_not_free_beside_a_training_where_nothing_trains():
    analysis = analyse(validated(validation(), gpus=2))
    assert analysis.is_validation
    assert "unused-gpu" not in {finding.rule for finding in analysis.findings}
    assert "train" not in analysis.verdict.text
    alone = analyse(validated(validation()))
    assert analysis.ledger == alone.ledger  # validation takes one GPU: the other one lost nothing


@pytest.mark.parametrize("task", ["predict", "export"])
def test_a_gpu_is_free_beside_no_training_where_yolo_did_something_else(task):
    analysis = analyse(validated(validation(), task=task, gpus=2))
    assert "unused-gpu" not in {finding.rule for finding in analysis.findings}


def test_a_validation_beside_calls_or_a_training_is_part_of_these():
    calls = make_served(make_calls(300))
    mixed = analyse(dataclasses.replace(calls, inside=(*calls.inside, *validated(validation()).inside)))
    assert mixed.is_inference
    assert not mixed.is_validation
    assert not analyse(validated(validation(), task="train")).is_validation


def test_a_validation_that_failed_says_so_once_and_not_that_nothing_is_to_fix():
    run = validated(validation())
    ended = RecordedEvent(39.0, "command_ended", None, {"exit_code": 1})
    failed = dataclasses.replace(
        run, events=(ended,), recording=dataclasses.replace(run.recording, ended_by="command", exit_code=1)
    )
    text = analyse(failed).verdict.text
    assert text.count("exit code 1") == 1
    assert "Nothing to fix" not in text
    assert "Validated 1,800 images" in text


def test_a_validation_is_compared_with_nothing_and_asked_for_no_epochs():
    run, training = analyse(validated(validation())), analyse(make_run(readings((60.0, 40.0)), rows=[(1, 20), (2, 40)]))
    calls = analyse(make_served(make_calls(300)))
    own = "The run only validates models: trainings are compared, and calls of models."
    assert compare((), run).verdict == own
    for baseline in (run, training, calls):
        assert compare((baseline,), run).verdict == f"Not comparable. {own}"
    for other, does in ((training, "trains"), (calls, "only calls models")):
        found = compare((run,), other)
        assert found.outcome == "not measured"
        assert f"The run {does}, and the baseline only validates models." in found.verdict
    assert unfinished(run) == "It only validates models, and holds no training"
