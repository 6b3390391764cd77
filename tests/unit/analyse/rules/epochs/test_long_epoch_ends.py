"""Trainings whose time goes into the ends of epochs: small data sets on fast GPUs, and long validations."""

import dataclasses

import pytest
from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.model import InsideEpoch, InsideRun, Phase, YoloRun

ARGS = {"epochs": 100, "batch": 16}


def trained(train_s, validation_s, checkpoint_s=0.0, *, count=12, args=ARGS, settings=None, source="inside"):
    phases, epochs, t_s = [Phase("startup", None, 0.0, 10.0, source)], [], 10.0
    for number in range(1, count + 1):
        ends = [t_s + train_s, t_s + train_s + validation_s, t_s + train_s + validation_s + checkpoint_s]
        phases.append(Phase("train", number, t_s, ends[0], source))
        phases.append(Phase("validation", number, ends[0], ends[1], source))
        phases.append(Phase("checkpoint", number, ends[1], ends[2], source))
        epochs.append(InsideEpoch(number, 1, t_s, ends[0], 160, 10, 0.0, 0.0, 0.0))
        t_s = ends[2]
    run = make_run([0.0] * 10 + [50.0] * round(t_s - 10))
    inside = InsideRun(
        1, 0, 41, "train", settings or {}, tuple(p for p in phases if p.end_t_s > p.start_t_s), tuple(epochs), ""
    )
    return dataclasses.replace(run, inside=(inside,), yolo_runs=(YoloRun(1, None, args, "recorded", None),))


def ends(run):
    return [finding for finding in analyse(run).findings if finding.rule == "long-epoch-ends"]


def test_epochs_that_mostly_validate_and_save_are_to_be_longer():
    run = trained(1.0, 1.2, 0.8)
    (finding,) = ends(run)
    assert (finding.severity, finding.cause.name) == ("info", "validation")
    assert finding.summary == "Validation, saving and callbacks take 67 % of each epoch"
    (advice,) = finding.advice
    assert advice.gain_estimate == pytest.approx(2 / 3 * 0.9)
    assert advice.short == "Make each epoch 10 times as long"
    assert "`epochs=10`" in advice.text
    first = analyse(run).verdict.sentences[0]
    assert first.text.startswith("Make each epoch 10 times as long (about 2.5\u00d7 faster): ")


@pytest.mark.parametrize(
    ("parts", "share", "leads"),
    [
        ((1.0, 0.0, 1.1), 52, True),
        ((1.0, 0.6), 38, False),
        ((1.0, 0.3), None, False),
        ((9.0, 1.3, 0.1), None, False),
        ((0.03, 0.04, 0.04), None, False),
    ],
)
def test_how_much_of_an_epoch_its_end_takes(parts, share, leads):
    run = trained(*parts)
    assert [f"take {share} %" in finding.summary.replace("takes", "take") for finding in ends(run)] == [True] * bool(
        share
    )
    assert ("Make each epoch" in analyse(run).verdict.sentences[0].text) == leads


def test_what_saving_takes_is_its_cause():
    (finding,) = ends(trained(1.0, 0.0, 1.5))
    assert finding.cause.name == "checkpoint"
    assert finding.summary == "Saving and callbacks take 60 % of each epoch"


@pytest.mark.parametrize(
    ("asked", "said"), [(20, "4 times"), (9, None), (None, None), ("many", None), (43, "8 times"), (59, "9 times")]
)
def test_some_epochs_are_left_to_validate_after(asked, said):
    (finding,) = ends(trained(1.0, 2.0, args={"epochs": asked}))
    assert [said for advice in finding.advice if said in advice.text] == ([said] if said else [])
    assert len(finding.advice) == (said is not None)


def test_a_few_epochs_are_no_habit():
    assert ends(trained(1.0, 2.0, count=5)) == []  # the first does not count
    assert len(ends(trained(1.0, 2.0, count=6))) == 1


def test_a_training_that_is_judged_by_its_epochs_is_not_too_short_to_judge():
    texts = [sentence.text for sentence in analyse(trained(0.4, 0.6)).verdict.sentences]
    assert not any("Too short" in text for text in texts)
    texts = [sentence.text for sentence in analyse(trained(0.4, 0.1, count=6)).verdict.sentences]
    assert any("Too short" in text for text in texts)


def test_the_arguments_advised_are_those_that_ultralytics_takes():
    check = pytest.importorskip("ultralytics.cfg").check_cfg
    args = {"epochs": 59, "close_mosaic": 10, "patience": 5, "save_period": 3, "warmup_epochs": 3.0}
    (finding,) = ends(trained(1.0, 2.0, args=args))
    text = finding.advice[0].text
    told = dict(each.split("=") for each in text.split("set `")[1].split("`")[0].split())
    assert told == {
        "epochs": "6",
        "close_mosaic": "1",
        "patience": "1",
        "save_period": "1",
        "warmup_epochs": "0.333333",
    }
    check({name: float(value) if "." in value else int(value) for name, value in told.items()})


@pytest.mark.parametrize(
    ("args", "settings"),
    [
        ({"task": "classify"}, {}),
        ({"time": 0.5}, {}),
        ({"cache": "ram", "imgsz": 640}, {"images": 5000}),
        ({}, {"images": 17}),  # two batches an epoch now, eleven in ten of them
        ({}, {"images": 4}),
    ],
)
def test_epochs_are_not_made_longer_where_that_changes_the_training(args, settings):
    (finding,) = ends(trained(1.0, 2.0, args={**ARGS, **args}, settings=settings))
    assert finding.advice == ()


def test_a_small_cache_in_memory_may_hold_each_image_ten_times():
    args = {**ARGS, "cache": "ram", "imgsz": 640}
    (finding,) = ends(trained(1.0, 2.0, args=args, settings={"images": 64}))
    assert len(finding.advice) == 1
