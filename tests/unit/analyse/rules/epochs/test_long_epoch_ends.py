"""Trainings whose time goes into the ends of epochs: small data sets on fast GPUs, and long validations."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.runs import make_run
from support.stacks import LOGS, TRAINS, process

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.model import InsideEpoch, InsideRun, Phase, ProcessWait, RecordedEvent, Setting, Validation, YoloRun

ARGS = {"epochs": 100, "batch": 16}
STEP_S = 0.2  # the GPU works half of it: in a longer step what it idles would have a cause of its own


def trained(
    train_s, validation_s, checkpoint_s=0.0, *, count=12, args=ARGS, settings=None, source="inside", parts=None, **more
):
    """Return a training of some epochs; `parts` are those of each validation (s), `more` is for make_run."""
    phases, epochs, t_s = [Phase("startup", None, 0.0, 10.0, source)], [], 10.0
    each_s = validation_s if isinstance(validation_s, list) else [validation_s] * count
    for number, valid_s in enumerate(each_s, 1):
        ends = [t_s + train_s, t_s + train_s + valid_s, t_s + train_s + valid_s + checkpoint_s]
        phases.append(Phase("train", number, t_s, ends[0], source))
        validated = None if parts is None else Validation(ends[0], ends[1], number, 200, 10, parts, 0.0, 20, 8)
        phases.append(Phase("validation", number, ends[0], ends[1], source, validated=validated))
        phases.append(Phase("checkpoint", number, ends[1], ends[2], source))
        batches = max(10, round(train_s / STEP_S))
        epochs.append(InsideEpoch(number, 1, t_s, ends[0], 16 * batches, batches, 0.0, 0.0, 0.0))
        t_s = ends[2]
    run = make_run([0.0] * 10 + [50.0] * round(t_s - 10), **more)
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
    assert advice.short == "Validate and save less often, in epochs 10 times as long"
    assert "`epochs=10`" in advice.text
    assert (advice.settings, advice.images_times) == ((Setting("epochs", "100", "10"),), 10)
    first = analyse(run).verdict.sentences[0]
    assert first.text.startswith("Validate and save less often, in epochs 10 times as long: about 2.5\u00d7 faster.")


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
    assert ("less often, in epochs" in analyse(run).verdict.sentences[0].text) == leads


def test_two_times_are_twice():
    (advice,) = ends(trained(1.0, 1.2, 0.8, args=ARGS | {"epochs": 12}))[0].advice
    assert (advice.short, advice.images_times) == ("Validate and save less often, in epochs twice as long", 2)
    assert advice.text.startswith("List the training images twice in `data.yaml`")


def test_a_third_of_the_time_leads_where_that_is_minutes():
    text = analyse(trained(20.0, 12.0)).verdict.text  # 384 s, of which longer epochs win a third
    assert text.startswith(
        "Validate less often, in epochs 10 times as long: about 1.5\u00d7 faster. Validation takes 38 %"
    )
    assert "less often, in epochs" not in analyse(trained(2.0, 1.2)).verdict.sentences[0].text  # 38 s


def test_small_steps_that_are_but_a_note_say_nothing_of_the_ends_of_epochs():
    assert analyse(trained(20.0, 1.0)).verdict.text.count("faster") <= 1


@pytest.mark.parametrize(("saving_s", "share"), [(24.0, 10), (11.0, 5), (9.0, None), (120.0, 37)])
def test_saving_that_takes_far_longer_than_weights_need_is_a_warning(saving_s, share):
    analysis = analyse(trained(200.0, 8.0, saving_s, count=6))
    found = [each for each in analysis.findings if each.rule == "long-epoch-ends" and each.severity == "warning"]
    assert [each.summary for each in found] == [f"Saving and callbacks take {share} % of each epoch"] * bool(share)
    assert analysis.verdict.text.startswith("Find what takes long after each validation: saving") == bool(share)


@pytest.mark.parametrize(("saving_s", "found"), [(27.0, 1), (9.0, 0)])
def test_saving_that_is_longer_than_the_first_epochs_training_tells_at_once(saving_s, found):
    """Checkpoints on a home of 25 MB/s: 27 s after 3 s of training, until Ctrl-C (H200, 2026-11-27)."""
    summaries = [each.summary for each in analyse(trained(20.0, 9.5, saving_s, count=1)).findings]
    assert len([each for each in summaries if each.startswith("Saving")]) == found


@pytest.mark.parametrize(
    ("train_s", "end_s", "found"),
    [(60, 90, 1), (60, 30, 0), (120, 60, 1), (8, 9, 0)],
    ids=["most of it", "a third", "a third, a minute each time", "too short"],
)
def test_ends_seen_from_outside_count_where_they_are_long_and_most_of_an_epoch(train_s, end_s, found):
    each, epochs = train_s + end_s, 8
    util = [0.0] * 10 + ([90.0] * train_s + [25.0] * (end_s - 1) + [0.0]) * epochs
    run = make_run(util, rows=[(n, 10.0 + n * each - 1) for n in range(1, epochs + 1)], epochs_asked=epochs)
    assert len(ends(run)) == found


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
    assert ends(trained(1.0, 1.5, count=5)) == []  # the first does not count
    assert len(ends(trained(1.0, 1.5, count=6))) == 1


@pytest.mark.parametrize(
    ("train_s", "validations", "found"),
    [
        (2.7, [20.5, 8.8, 9.6, 11.8], True),  # what they differ by changes nothing
        (2.7, [20.5, 8.8, 11.8], False),
        (9.5, [20.5, 8.8, 9.6, 11.8], False),  # not mostly ends
        (0.5, [2.0, 1.1, 1.4, 1.9], False),
    ],
)
def test_three_epochs_are_enough_that_are_mostly_their_ends(train_s, validations, found):
    assert bool(ends(trained(train_s, validations))) == found


@pytest.mark.parametrize(
    ("part", "seconds", "found"),
    [
        ("metrics", 8.0, True),
        ("data", 8.0, False),
        ("inference", 8.0, False),
        ("plots", 8.0, False),
        ("metrics", 3.1, True),  # a quarter of both
        ("metrics", 2.5, False),
    ],
)
def test_one_validation_tells_what_it_takes_in_parts_that_come_again(part, seconds, found):
    run = trained(8.7, seconds + 1.0, count=1, parts={part: seconds, "loss": 1.0})
    assert bool(ends(run)) is found


def test_of_two_epochs_what_ends_take_is_that_of_the_second():
    """The first one's validation loads kernels for 3 s: in medians of both that would count."""
    (finding,) = ends(trained(6.0, [6.0, 3.0], count=2, parts={"metrics": 2.4, "inference": 0.5}))
    assert finding.summary.startswith("Validation takes 33 % of each epoch")
    assert finding.start_t_s == 10.0


def test_two_epochs_are_enough_whose_ends_are_long_and_alike():
    assert len(ends(trained(8.0, 5.0, count=3))) == 1
    assert ends(trained(8.0, 5.0, count=2)) == []
    assert len(ends(trained(4.0, 5.0, count=2))) == 1  # what the first has besides can only make it longer
    assert ends(trained(4.0, 5.0, count=1)) == []
    assert ends(trained(4.0, [3.0, 5.0], count=2)) == []


def test_a_validation_in_which_the_training_was_stopped_is_none_to_compare():
    run = trained(2.0, [9.0, 9.0, 4.0], count=3, parts={"inference": 7.0})
    phases = [dataclasses.replace(each, validated=None) if each.epoch == 3 else each for each in run.inside[0].phases]
    (finding,) = ends(dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], phases=tuple(phases)),)))
    assert next(each.value for each in finding.evidence if each.text == "validation of an epoch (median)") == 9.0


def broken_off(run):
    """Return a run that was stopped in its last validation: it saved nothing any more."""
    phases = run.inside[0].phases
    assert phases[-1].name == "checkpoint"
    return dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], phases=phases[:-1]),))


def test_an_epoch_whose_validation_was_broken_off_says_nothing_of_how_long_one_takes():
    """In the third of three, 4 s of 20 had been validated."""
    analysis = analyse(broken_off(trained(10.0, [20.0, 20.0, 4.0], 1.0, count=3)))
    assert [each.partial for each in analysis.epochs] == [False, False, True]
    assert analysis.epoch_now.seconds == pytest.approx(31.0)
    assert "cut short" in analysis.epoch_now.now_is


def test_where_nothing_is_ever_saved_the_last_validation_is_as_whole_as_others():
    """So does each node of a job but the one that saves for all."""
    analysis = analyse(trained(10.0, 20.0, count=3))
    assert not any(each.partial for each in analysis.epochs)


def test_more_images_to_validate_than_to_train_are_named_first():
    sets = {"images": 400, "val_images": 4400}
    run = trained(1.0, 14.0, count=3, parts={"inference": 9.0}, settings=sets)
    assert analyse(run).verdict.text.startswith("Check `train` and `val` in `data.yaml` (400 images train, 4,400 val")
    (finding,) = ends(run)
    assert finding.advice[0].gain_at_most == pytest.approx(14 / 15 * (1 - 400 / 4400))
    fewer = trained(1.0, 14.0, count=3, parts={"inference": 9.0}, settings={**sets, "val_images": 400})
    assert "data.yaml` (" not in analyse(fewer).verdict.text
    part = trained(1.0, 14.0, count=3, parts={"inference": 9.0}, settings=sets, args={**ARGS, "fraction": 0.1})
    assert "data.yaml` (" not in analyse(part).verdict.text  # of which the training took a tenth


def test_swapped_sets_lead_where_validation_takes_less_than_half_too():
    run = trained(8.0, 5.0, parts={"inference": 4.0}, settings={"images": 160, "val_images": 400})
    assert analyse(run).verdict.text.startswith("Check `train` and `val` in `data.yaml`")
    (finding,) = ends(run)
    assert finding.severity == "warning"
    assert ["They may be swapped" in each.text for each in finding.advice] == [True]  # nothing that would not fit then


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


# A training whose epochs train for 6 s and validate for 4 s.
SEEN = {"val": True, "plots": True, "conf": None, "workers": 4, "nbs": 64, "time": 1.0}  # with `time`: no longer epochs
PARTS = {"data": 0.1, "inference": 3.4, "metrics": 0.2, "plots": 0.0, "other": 0.3}


def validated(parts=None, cores=64, memory_mib=20_000.0, args=None, **more):
    args = {**ARGS, **SEEN, **(args or {})}
    run = trained(6.0, 4.0, parts={**PARTS, **(parts or {})}, args=args, **more)
    samples = run.samples.assign(memory_used_mib=memory_mib)
    return dataclasses.replace(run, samples=samples, recording=dataclasses.replace(run.recording, cores=cores))


def advised(run):
    (finding,) = ends(run)
    return {advice.argument: advice for advice in finding.advice}


@pytest.mark.parametrize(("batches", "offered"), [(2, False), (3, True)])
def test_a_larger_batch_leaves_a_validation_more_than_one(batches, offered):
    """A single batch would be loaded without workers."""
    run = validated()
    (inside,) = run.inside
    phases = tuple(
        dataclasses.replace(each, validated=dataclasses.replace(each.validated, batches=batches))
        if each.validated
        else each
        for each in inside.phases
    )
    run = dataclasses.replace(run, inside=(dataclasses.replace(inside, phases=phases),))
    assert ("batch" in advised(run)) == offered


def test_what_validation_takes_is_said_part_by_part():
    (finding,) = ends(validated())
    assert finding.summary == "Validation takes 40 % of each epoch; 85 % of validation is inference"
    said = {each.text: each.value for each in finding.evidence}
    assert said["validation: inference (median)"] == pytest.approx(3.4)
    assert said["images validated per second (median)"] == pytest.approx(50)
    assert "validation: plots (median)" not in said


def test_of_validations_that_reported_no_parts_it_is_advised_how_often_to_validate():
    (finding,) = ends(trained(6.0, 4.0, args={**ARGS, **SEEN}))
    assert finding.summary == "Validation takes 40 % of each epoch"
    assert [each.argument for each in finding.advice] == ["val"]
    (never,) = ends(trained(6.0, 4.0, args={**ARGS, **SEEN, "val": False}))
    assert never.advice == ()


@pytest.mark.parametrize("validation_s", [1.9, 2.1])
def test_a_quarter_of_the_time_in_validation_is_enough(validation_s):
    assert len(ends(trained(6.0, validation_s))) == (validation_s > 2)
    assert ends(trained(6.0, 0.0, validation_s)) == []  # of saving it takes more


@pytest.mark.parametrize(
    ("argument", "parts", "now", "then", "gain"),
    [
        ("val", {}, "True", "False", 0.4 * 0.99),
        ("conf", {"metrics": 1.2, "postprocess": 0.8, "inference": 1.6}, "0.001", "0.01", 0.2),
        ("plots", {"plots": 1.5, "inference": 1.9}, "True", "False", 12 * 1.5 / 130),  # with its start-up
        ("workers", {"data": 2.0, "inference": 1.5}, "4", "8", 0.2),
        ("batch", {}, "16", "32", 0.19),  # of 4 s the GPU is idle for 2, and waits for data in 0.1 of them
    ],
)
def test_what_takes_the_time_has_its_argument(argument, parts, now, then, gain):
    advice = advised(validated(parts))[argument]
    assert (advice.from_value, advice.to_value) == (now, then)
    assert advice.gain_at_most == pytest.approx(gain, rel=0.01)
    assert advice.gain_estimate is None
    without = {name: value for name, value in {**ARGS, **SEEN}.items() if name != argument}
    run = validated(parts)
    run = dataclasses.replace(run, yolo_runs=(dataclasses.replace(run.yolo_runs[0], args=without),))
    assert argument not in advised(run)


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("val", {"args": {"val": False}}),
        ("conf", {"parts": {"metrics": 0.1}}),
        ("conf", {"parts": {"metrics": 2.0, "inference": 1.6}, "args": {"conf": 0.25}}),
        ("conf", {"parts": {"metrics": 2.0, "inference": 1.6}, "args": {"conf": "all"}}),
        ("plots", {"parts": {"plots": 1.5, "inference": 1.9}, "args": {"plots": False}}),
        ("workers", {"parts": {"data": 2.0, "inference": 1.5}, "cores": 8}),
        ("workers", {"parts": {"data": 2.0, "inference": 1.5}, "cores": None}),
        ("workers", {"parts": {"data": 2.0, "inference": 1.5}, "args": {"workers": 8}}),  # of which it got fewer
        ("batch", {"memory_mib": 80_000.0}),
        ("batch", {"memory_mib": float("nan")}),
        ("batch", {"args": {"batch": 64}}),
        ("batch", {"interval_s": 5.0}),
    ],
)
def test_nothing_is_advised_that_would_not_help(argument, change):
    assert argument not in advised(validated(**change))


def with_final(run, **parts):
    """Return the run with a final evaluation of the same images as its validations."""
    (inside,) = run.inside
    start_s, end_s = (inside.phases[-1].end_t_s + after_s for after_s in (0.0, 2.0))
    validated = Validation(start_s, end_s, None, 200, 10, {"inference": 1.0, **parts}, 0.0, 20, 8)
    phase = Phase("final evaluation", None, start_s, end_s, "inside", validated=validated)
    inside = dataclasses.replace(inside, phases=(*inside.phases, phase))
    return dataclasses.replace(run, inside=(inside,), duration_s=run.duration_s + 3)


@pytest.mark.parametrize(("final_s", "is_held_up"), [(0.3, True), (0.6, False), (1.5, False)])
def test_metrics_that_are_far_faster_with_no_loader_beside_them_want_no_fewer_boxes(final_s, is_held_up):
    """Rowing (YOLO11s-pose, H200, 2026-11-28): 1.4 s in epochs, 0.5 s in the final evaluation."""
    run = with_final(validated({"metrics": 1.2, "inference": 2.4}), metrics=final_s, postprocess=0.0)
    assert ({"conf", "val"} <= set(advised(run))) == (not is_held_up)
    said = [each.short for each in ends(run)[0].advice]
    assert ("Find what slows NMS and metrics: 1.20 s, and 0.30 s in the final evaluation" in said) == is_held_up


def test_validations_beside_which_small_tensors_are_handed_over_are_judged_later():
    slow = {"metrics": 1.2, "inference": 2.4}
    many = validated(slow, settings={"batch_tensors": 6000, "workers": 4})
    assert not {"conf", "val"} & set(advised(many))
    assert {"conf", "val"} <= set(advised(validated(slow, settings={"batch_tensors": 8, "workers": 4})))


def test_files_that_somebody_asked_for_lead():
    run = validated({"metrics": 2.4, "inference": 1.1})
    with_files = dataclasses.replace(run.yolo_runs[0], args={**run.yolo_runs[0].args, "save_txt": True})
    run = dataclasses.replace(run, yolo_runs=(with_files,))
    assert analyse(run).verdict.sentences[0].text.startswith("Set `save_txt=False` (now True): validation takes 40 %")
    assert "conf" not in advised(run)  # NMS is little, and its metrics write files


def test_where_more_is_advised_on_its_steps_they_are_left_alone():
    run = validated({"data": 0.8, "inference": 2.7})
    assert {"workers", "batch"} <= set(advised(run))
    busy = run.samples["gpu_util_pct"]
    starved = dataclasses.replace(run, samples=run.samples.assign(gpu_util_pct=busy.where(busy == 0, 20.0)))
    assert "starved" in {finding.rule for finding in analyse(starved).findings}
    assert not {"workers", "batch"} & set(advised(starved))


def test_each_argument_advised_is_one_that_ultralytics_takes():
    check = pytest.importorskip("ultralytics.cfg").check_cfg
    slow = {"data": 0.8, "inference": 1.4, "metrics": 0.8, "plots": 1.0, "other": 0.0}
    advice = advised(validated(slow))
    assert set(advice) == {"val", "conf", "plots", "workers", "batch"}
    kinds = {"val": bool, "conf": float, "plots": bool, "workers": int, "batch": int}
    check({name: kinds[name](each.to_value != "False" and each.to_value) for name, each in advice.items()})


@pytest.mark.parametrize(
    ("train_s", "validation_s", "batches", "is_told"),
    [
        (6.0, 95.0, 30, True),
        (6.0, 25.0, 30, False),  # as long as what a first validation may need besides
        (60.0, 50.0, 300, False),  # training is the larger part
        (20.0, 50.0, 1000, False),  # ... of a whole epoch: `time` cut this one to a tenth
    ],
)
def test_one_long_validation_is_told_of_however_few_the_epochs(train_s, validation_s, batches, is_told):
    args = {"epochs": 300, "time": 0.02, "conf": 1e-05, "max_det": 3000, "iou": 0.7}
    parts = {"inference": 0.9 * validation_s, "postprocess": 0.1 * validation_s}
    run = trained(train_s, validation_s, count=1, args=args, settings={"batches": batches}, parts=parts)
    assert [finding.summary for finding in ends(run)] == [
        f"Validation takes {95 / 1.01:.0f} % of each epoch; 90 % of validation is inference"
    ] * is_told
    lead, *others = (each.text for each in analyse(run).verdict.sentences)
    assert lead.startswith("Set `conf=0.01` (now 1e-05): validation takes") == is_told
    if is_told:
        assert others[0] == "The training itself is too short to judge: the GPU trained for only 6 s."
        (advice,) = (each for finding in ends(run) for each in finding.advice if each.argument == "conf")
        assert "`max_det=3000` keeps more than its default (300)" in advice.text


def test_boxes_beyond_the_defaults_are_offered_where_conf_is_high():
    args = {"epochs": 300, "time": 0.02, "conf": 0.1, "max_det": 3000, "iou": 0.95}
    (finding,) = ends(trained(6.0, 95.0, count=1, args=args, parts={"postprocess": 95.0}))
    offered = {advice.argument: (advice.from_value, advice.to_value) for advice in finding.advice}
    assert offered == {"iou": ("0.95", "0.7"), "max_det": ("3000", "300")}


def slowing(run):
    return [finding for finding in analyse(run).findings if finding.rule == "epochs-slowing"]


def test_validations_that_get_longer_make_epochs_slower():
    (finding,) = slowing(trained(60.0, [10.0 + 5 * number for number in range(12)]))
    assert finding.cause.name == "validation"
    assert finding.summary == "Epochs got slower: validation went from 20.0 s to 60 s an epoch"
    assert finding.advice[0].short == "Find what makes validation longer"


@pytest.mark.parametrize(
    "validations", [[10.0 + number for number in range(12)], [40.0 - number for number in range(12)]]
)
def test_validations_that_get_hardly_longer_or_shorter_are_none(validations):
    assert slowing(trained(60.0, validations)) == []


def test_ends_of_epochs_that_were_held_up_tell_of_no_rise():
    run = trained(60.0, [20.0] * 6 + [80.0] * 6)
    held_up = [phase for phase in run.inside[0].phases if phase.name == "train" and phase.epoch > 6]
    gaps = tuple(RecordedEvent(phase.start_t_s + 40, "gap", None, {"seconds": 30.0}) for phase in held_up)
    assert len(slowing(run)) == 1
    assert slowing(dataclasses.replace(run, events=gaps)) == []


@pytest.mark.parametrize(("validations", "told"), [([130.0, 125.0], 1), ([20.0, 125.0], 0), ([30.0, 25.0], 0)])
def test_two_long_ends_that_agree_are_enough_also_shorter_than_training(validations, told):
    assert len(ends(trained(200.0, validations))) == told


def test_saving_that_gets_longer_is_said_so():
    """Each epoch saves for as long as its number says, twice."""
    run = trained(40.0, [4.0] * 12, 0.0)
    (process,) = run.inside
    phases, t_s = [], 10.0
    for number in range(1, 13):
        for name, length_s in (("train", 40.0), ("validation", 4.0), ("checkpoint", 2.0 * number)):
            phases.append(Phase(name, number, t_s, t_s + length_s, "inside"))
            t_s += length_s
    starts = {phase.epoch: phase for phase in phases if phase.name == "train"}
    epochs = tuple(
        dataclasses.replace(each, start_t_s=starts[each.epoch].start_t_s, end_t_s=starts[each.epoch].end_t_s)
        for each in process.epochs
    )
    inside = dataclasses.replace(process, phases=(process.phases[0], *phases), epochs=epochs)
    longer = dataclasses.replace(make_run([0.0] * 10 + [50.0] * round(t_s - 10)), inside=(inside,))
    (finding,) = slowing(longer)
    assert (finding.cause.name, finding.advice[0].short) == ("checkpoint", "Find what makes saving longer")
    assert finding.summary == "Epochs got slower: saving went from 6.0 s to 22.0 s an epoch"
    saves = [phase for phase in phases if phase.name == "checkpoint"]
    waits = tuple(ProcessWait(*each.span, 41, "main", "D", "", "write", "/mnt/nas/last.pt", "nfs4") for each in saves)
    yolo = (YoloRun(1, None, {"save_period": 2}, "recorded", None),)
    (finding,) = slowing(dataclasses.replace(longer, waits=waits, yolo_runs=yolo))
    shorts = ["Save to a local disk (set `project`)", "Leave out `save_period=2`"]
    assert [each.short for each in finding.advice] == shorts


def with_stacks(run, in_callback_s, part="validation"):
    """Return the run with a callback that takes so many seconds of each epoch's end, which is a `part`."""
    (inside,) = run.inside
    phases = [dataclasses.replace(p, name=part) if p.name == "validation" else p for p in inside.phases]
    at_ends = [phase for phase in phases if phase.name == part]
    stays = [(phase.start_t_s, phase.end_t_s, TRAINS) for phase in phases if phase.name == "train"]
    for phase, seconds in zip(at_ends, in_callback_s, strict=True):
        stays += [(phase.start_t_s, phase.end_t_s - seconds, TRAINS), (phase.end_t_s - seconds, phase.end_t_s, LOGS)]
    idle = run.samples["t_s"].apply(lambda t_s: any(each.start_t_s < t_s <= each.end_t_s for each in at_ends))
    samples = run.samples.assign(gpu_util_pct=run.samples["gpu_util_pct"].where(~idle, 0.0))
    stacks = (process(*(stay for stay in sorted(stays) if stay[0] < stay[1])),)
    inside = dataclasses.replace(inside, phases=tuple(phases))
    return dataclasses.replace(run, inside=(inside,), stacks=stacks, samples=samples)


@pytest.mark.parametrize(
    ("part", "took"), [("validation", "it took 29 % of the time of epochs"), ("checkpoint", "it cost about 3 min 40 s")]
)
def test_a_callback_that_grows_leads_and_not_the_part_that_it_follows(part, took):
    grows_s = [1.0 + 5 * number for number in range(12)]
    run = with_stacks(trained(60.0, [10.0 + seconds for seconds in grows_s]), grows_s, part)
    (finding,) = slowing(run)
    assert finding.summary == "Epochs got slower: log_images (callbacks.py:41) went from 11.0 s to 51.0 s an epoch"
    assert (finding.cause.name, finding.where[0].line) == ("main-process", 41)
    looks = [each.text for each in analyse(run).verdict.sentences if "`log_images`" in each.text]
    assert [each.startswith(f"Look at `log_images` (callbacks.py:41): {took}") for each in looks] == [True]


def test_a_callback_that_stays_as_long_is_not_what_grew():
    run = with_stacks(trained(60.0, [10.0 + 5 * number for number in range(12)]), [8.0] * 12)
    assert slowing(run)[0].cause.name == "validation"


LOADS = {"data": 3.4, "inference": 0.3, "metrics": 0.25, "other": 0.05}  # of 4 s
LARGE = {"images": 300, "val_images": 40, "imgsz": 640, "image_px": 4000, "scaled_down": [1.0, 4000, 0.0256]}


def test_what_waits_for_data_is_advised_what_loads_faster():
    run = validated(LOADS, args={"imgsz": 640, "cache": False}, settings=LARGE)
    advice = advised(run)
    assert (advice["cache"].to_value, advice["cache"].gain_at_most) == ("ram", pytest.approx(0.34))
    assert advice[None].short == "Resize the images once to 640 px (now 4,000)"
    assert advice[None].images_px == 640
    many = validated(LOADS, args={"imgsz": 640, "cache": False}, settings={**LARGE, "images": 100_000})
    assert "cache" not in advised(many)
    cached = validated(LOADS, args={"imgsz": 640, "cache": "ram"}, settings=LARGE)
    assert not {"cache", None} & set(advised(cached))


def test_what_takes_little_of_a_validation_leads_nothing():
    parts = {"data": 7.2, "inference": 0.1, "metrics": 0.6, "postprocess": 0.1}
    args = {"val": True, "conf": None, "imgsz": 640, "epochs": 100, "time": 1.0}
    run = trained(1.0, 8.0, parts=parts, args=args)
    assert "conf" in advised(run)
    assert analyse(run).verdict.sentences[0].text.startswith("Set `val=False` (now True): validation takes 89 %")
    large = trained(1.0, 8.0, parts=parts, args={**args, "cache": False}, settings=LARGE)
    assert analyse(large).verdict.sentences[0].text.startswith("Set `cache=ram` (now False): validation takes 89 %")
    unknown = trained(1.0, 8.0, parts=parts, args={**args, "cache": None}, settings=LARGE)
    assert analyse(unknown).verdict.sentences[0].text.startswith("Resize the images once to 640 px (now 4,000)")


@pytest.mark.parametrize(("data_s", "is_said"), [(25.0, True), (2.0, False)])
def test_validations_that_wait_for_images_while_training_does_not_say_where_to_look(data_s, is_said):
    run = trained(60.0, 30.0, count=6, parts={"data": data_s, "inference": 30.0 - data_s})
    (finding,) = ends(run)
    assert ("Find why validations wait for their images" in {each.short for each in finding.advice}) == is_said


def on_gpus(*work):
    """Return a training with validations, of GPUs that read so much (% busy, W) in these; None: no power is read."""
    run = trained(60.0, 60.0, count=6, args={"epochs": 100, "patience": 30, "device": list(range(len(work)))})
    spans = [phase for phase in run.inside[0].phases if phase.name == "validation"]
    frames = []
    for gpu, (util_pct, power_w) in enumerate(work):
        frame = run.samples.assign(gpu=gpu, gpu_util_pct=99.0, power_w=400.0)
        validates = sum(frame["t_s"].between(each.start_t_s, each.end_t_s, inclusive="right") for each in spans) > 0
        frame.loc[validates, "gpu_util_pct"] = util_pct
        frame["power_w"] = frame["power_w"].mask(validates, power_w) if power_w is not None else float("nan")
        frames.append(frame)
    gpus = tuple(dataclasses.replace(run.gpus[0], index=gpu) for gpu in range(len(work)))
    return dataclasses.replace(run, samples=pd.concat(frames, ignore_index=True), gpus=gpus)


WAITS, VALIDATES = (100.0, 180.0), (30.0, 150.0)


@pytest.mark.parametrize(
    ("work", "said"),
    [
        ((VALIDATES, WAITS, WAITS), "; GPU 0 alone validates, and 2 GPUs wait for it"),
        ((VALIDATES, WAITS), "; GPU 0 alone validates, and the other GPU waits"),
        ((VALIDATES, VALIDATES), ""),
        ((VALIDATES, (100.0, 390.0), WAITS), ""),
        ((VALIDATES, (100.0, None)), ""),
        ((VALIDATES,), ""),
    ],
)
def test_gpus_that_wait_while_one_validates_are_counted(work, said):
    (finding,) = ends(on_gpus(*work))
    assert finding.summary == f"Validation takes 50 % of each epoch{said}"


def test_the_model_is_not_called_the_limit_where_longer_epochs_lead():
    words = analyse(on_gpus(VALIDATES, WAITS)).verdict.text
    assert words.startswith("Validate less often, in epochs 10 times as long")
    assert "2 GPUs were busy 99 % of training time, not counting the ends of epochs." in words


@pytest.mark.parametrize(
    ("asked", "patience", "to"), [(100, 30, "3"), (100, 100, None), (40, 100, None), (40, 38, None)]
)
def test_a_patience_that_never_ends_a_training_is_left_out(asked, patience, to):
    (finding,) = ends(trained(1.0, 2.0, args={"epochs": asked, "patience": patience}))
    assert {each.argument: each.to_value for each in finding.advice[0].settings}.get("patience") == to


@pytest.mark.parametrize(
    ("images", "validate", "enough"),
    [(24_000, 18_000, "6,000"), (4000, 12_000, None), (8000, 12_000, "5,000"), (24_000, 6000, None), (300, 400, None)],
)
def test_a_large_validation_set_is_named_and_how_many_images_are_enough(images, validate, enough):
    """Sets that may be swapped are asked about; those of COCO's size, or a fourth of the training's, are usual."""
    run = trained(100.0, 50.0, parts={"inference": 40.0}, settings={"images": images, "val_images": validate})
    (finding,) = ends(run)
    fewer = [each for each in finding.advice if each.short == "Validate on fewer images"]
    assert [f": {enough} are mostly enough" in each.text for each in fewer] == [True] * bool(enough)
    said = f"{validate:,} images validate, {images:,} train"
    assert (said in finding.summary) == bool(enough)
    assert analyse(run).verdict.text.startswith("Validate on fewer images, or less often, in epochs") == bool(enough)


def with_host(run, ends, **columns):
    """Return a run with rows of the host; `ends` are (period, train): the GPU is idle in the end of each period."""
    seconds = np.arange(round(run.duration_s) + 1)
    period_s, train_s = ends
    in_end = (seconds > 10) & ((seconds - 10 - 1) % period_s >= train_s)
    host = pd.DataFrame({"t_s": seconds.astype(float), **{c.name: np.nan for c in schema.HOST_QUANTITIES}})
    values = {name: np.where(in_end, there, elsewhere) for name, (there, elsewhere) in columns.items()}
    t_s = run.samples["t_s"].to_numpy()
    idle = (t_s >= 10) & ((t_s - 10) % period_s >= train_s)
    samples = run.samples.assign(gpu_util_pct=np.where(idle | (t_s < 10), 0.0, 97.0))
    return dataclasses.replace(run, host=host.assign(**values), samples=samples)


def saved(**columns):
    """Return a training that trains for 60 s and saves for 30 s, six times."""
    return with_host(trained(60.0, 0.0, 30.0, count=6), (90, 60), **columns)


@pytest.mark.parametrize(
    ("columns", "cause", "begins"),
    [
        ({"main_cpu_pct": (2.0, 80.0), "io_pressure_pct": (0.0, 0.0)}, "trainer-blocked", "Run slow callbacks"),
        ({"main_cpu_pct": (2.0, 80.0)}, "checkpoint", "Find what takes long"),  # a disk is not excluded
        ({"main_cpu_pct": (2.0, 80.0), "io_pressure_pct": (90.0, 0.0)}, "checkpoint", "Save weights on a faster disk"),
        ({"main_cpu_pct": (99.0, 80.0), "io_pressure_pct": (0.0, 0.0)}, "main-process", "Compute less after each val"),
        ({"main_cpu_pct": (40.0, 80.0), "io_pressure_pct": (0.0, 0.0)}, "checkpoint", "Find what takes long"),
        ({}, "checkpoint", "Find what takes long"),
    ],
    ids=["sleeps", "sleeps, disk unknown", "disk", "computes", "some of each", "nothing recorded"],
)
def test_what_takes_long_after_validations_follows_what_was_recorded_there(columns, cause, begins):
    run = saved(**columns)
    (finding,) = ends(run)
    assert finding.cause.name == cause
    assert finding.advice[0].short.startswith(begins)
    assert analyse(run).verdict.text.startswith(begins)
    (limit,) = analyse(run).speedup_limits
    assert (limit.cause, limit.saves_at_most_s) == (cause, pytest.approx(30.0))


def test_how_busy_gpus_were_is_said_to_leave_out_ends_of_epochs_that_are_long():
    text = analyse(saved(main_cpu_pct=(2.0, 80.0), io_pressure_pct=(0.0, 0.0))).verdict.text
    assert "The GPU was busy 97 % of training time, not counting the ends of epochs." in text
    assert "most likely waiting for the network. Without that epochs are up to 1.5\u00d7 faster." in text


def test_a_main_process_that_the_kernel_saw_asleep_waits_for_no_disk():
    starts = range(71, 550, 90)
    waits = tuple(ProcessWait(at + 0.0, at + 28.0, 41, "main", "S", "poll_schedule_timeout") for at in starts)
    (finding,) = ends(dataclasses.replace(saved(main_cpu_pct=(2.0, 80.0)), waits=waits))
    assert finding.cause.name == "trainer-blocked"


@pytest.mark.parametrize(
    ("args", "main", "begins"),
    [
        (
            {"save_json": True},
            99.0,
            "Set `save_json=False` (now True): validation takes 33 % of each epoch; the main",
        ),
        ({"save_txt": True}, 99.0, "Set `save_txt=False`"),
        ({"save_json": True}, 20.0, None),
        ({"save_json": False}, 99.0, None),
    ],
)
def test_files_lead_where_the_main_process_computes_in_validations_seen_from_outside(args, main, begins):
    run = trained(600.0, 300.0, count=6, args={**ARGS, **SEEN, "time": None, "epochs": 12, **args})
    run = with_host(run, (900, 640), main_cpu_pct=(main, 80.0), io_pressure_pct=(0.0, 0.0))  # it validates for 40 s
    (finding,) = ends(run)
    assert analyse(run).verdict.text.startswith(begins or "Validate less often")
    assert finding.severity == ("warning" if begins else "info")
    gains = [each.gain_at_most for each in finding.advice if each.argument in {"save_json", "save_txt"}]
    assert gains == [pytest.approx(260 / 900, abs=0.01)] * bool(begins)
