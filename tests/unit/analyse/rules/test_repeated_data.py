"""Validations of images that their list names several times."""

import dataclasses

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.model import InsideRun, Phase, Validation

PARTS = {"data": 1.0, "preprocess": 1.0, "inference": 2.0, "loss": 0.0, "postprocess": 1.0, "metrics": 1.0}


def validated(images, distinct, count=2, val_s=6.0):
    """Return a program that validates a list so often; it waits for the first batch for 1 s."""
    settings = {"images": images, "distinct_images": distinct}
    settings = {name: value for name, value in settings.items() if value is not None}
    inside = []
    for number in range(count):
        begin_s = 10.0 + number * val_s
        done = Validation(begin_s, begin_s + val_s, None, images, 33, PARTS, 1.0, 32, 8)
        phase = Phase("validation", None, begin_s, begin_s + val_s, "callbacks", validated=done)
        inside.append(InsideRun(None, 0, 7, "val", settings, (phase,), ()))
    return dataclasses.replace(make_run(readings((0.0, 10.0), (20.0, val_s * count))), inside=tuple(inside))


def found_in(run):
    return next((each for each in analyse(run).findings if each.rule == "repeated-data"), None)


def test_a_list_that_names_images_several_times_leads_with_how_long_a_validation_would_take():
    run = validated(1050, 300)
    finding = found_in(run)
    assert (finding.severity, finding.cause.name) == ("warning", "repeated-data")
    assert finding.summary == "The validation's list names 1,050 images, of which 300 are different"
    once = "List each image once: 6.00 s a validation become about 2.43 s"  # 1 s, and 300 / 1050 of 5 s
    assert finding.advice[0].short == once
    assert analyse(run).verdict.text.startswith(f"{once}. The validation's list names 1,050 images")


@pytest.mark.parametrize(("images", "distinct"), [(1050, 1050), (1050, 1000), (1050, None), (None, 300), (0, 0)])
def test_lists_without_repeats_and_those_that_nobody_counted_are_none(images, distinct):
    assert found_in(validated(images, distinct)) is None


def test_a_short_validation_is_a_note():
    assert found_in(validated(1050, 300, count=1, val_s=2.0)).severity == "info"
