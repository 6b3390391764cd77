"""Arguments by which a model computes more of each image than it need."""

import dataclasses

import pytest
from support.calls import make_calls, make_served

from gpu_report.analyse import analyse

PLAIN = {"format": "pt", "task": "detect", "end2end": False, "half": True}


def findings(calls, **more):
    found = analyse(make_served(calls, util_pct=75.0, **more)).findings
    return {finding.rule: finding for finding in found}


def test_augmented_calls_are_told_what_one_size_wins_at_most():
    advice = findings(make_calls(1500, **PLAIN, augment=True))["augmented-calls"].advice[0]
    assert (advice.argument, advice.from_value, advice.to_value) == ("augment", "True", "False")
    assert advice.gain_at_most == pytest.approx(0.53 * 10 / 14, abs=0.01)


@pytest.mark.parametrize("other", [{"augment": False}, {"end2end": True}, {"format": "engine"}, {"task": "segment"}])
def test_what_looks_once_is_no_finding(other):
    assert "augmented-calls" not in findings(make_calls(1500, **{**PLAIN, "augment": True, **other}))


@pytest.mark.parametrize(
    ("image_px", "imgsz", "enough"),
    [(320, [1280, 1280], "320"), (650, [1280, 1280], "672"), (100, [640, 640], "320")],
)
def test_images_that_are_far_smaller_than_imgsz_need_no_enlarging(image_px, imgsz, enough):
    calls = dataclasses.replace(make_calls(1500, **PLAIN, imgsz=imgsz), image_px=image_px)
    advice = findings(calls)["enlarged-images"].advice[0]
    assert (advice.argument, advice.from_value, advice.to_value) == ("imgsz", str(imgsz[0]), enough)


@pytest.mark.parametrize(("image_px", "imgsz"), [(1920, [640, 640]), (480, [640, 640]), (None, [1280, 1280])])
def test_images_as_large_as_imgsz_or_of_unknown_size_are_no_finding(image_px, imgsz):
    calls = dataclasses.replace(make_calls(1500, **PLAIN, imgsz=imgsz), image_px=image_px)
    assert "enlarged-images" not in findings(calls)


def test_where_inference_is_a_small_part_of_the_call_its_size_hardly_matters():
    calls = make_calls(1500, **PLAIN, imgsz=[1280, 1280], augment=True, parts_ms=(40.0, 5.0, 1.0))
    assert not {"enlarged-images", "augmented-calls"} & set(findings(dataclasses.replace(calls, image_px=320)))
