"""What to do about a part of calls: by the lines in which it stood, and only where it is the calls' own work."""

import dataclasses

import pytest
from support.calls import make_calls, make_served
from support.stacks import process

from gpu_report.analyse import analyse
from gpu_report.model import Frame

YOLO = "/venv/lib/python3.11/site-packages/ultralytics"
MAIN = Frame("/home/me/serve.py", 12, "<module>")
IN_CALL = Frame(f"{YOLO}/engine/predictor.py", 380, "stream_inference"), MAIN
POST = Frame(f"{YOLO}/models/yolo/detect/predict.py", 55, "postprocess"), *IN_CALL
NMS = Frame(f"{YOLO}/utils/nms.py", 157, "non_max_suppression"), *POST
MASKS = Frame(f"{YOLO}/utils/ops.py", 545, "process_mask"), *POST
COPIES = Frame(f"{YOLO}/utils/ops.py", 730, "convert_torch2numpy_batch", called="cpu"), *POST
DEFAULTS = {"conf": 0.25, "max_det": 300}


def calls_of(**settings):
    return make_calls(1500, parts_ms=(1.0, 6.0, 8.0), model="best.pt", **settings)


def advice_of(calls, stack=()):
    stays = [(start, end, stack) for start, end in zip(calls.start_s, calls.end_s, strict=True)]
    run = dataclasses.replace(make_served(calls, util_pct=40.0), stacks=(process(*stays, pid=calls.pid),))
    found = {finding.rule: finding for finding in analyse(run).findings}
    return found["slow-postprocessing"].advice


@pytest.mark.parametrize("stack", [NMS, MASKS])
def test_many_boxes_are_what_nms_and_masks_take_long_for(stack):
    (advice,) = advice_of(calls_of(conf=0.001, max_det=3000), stack)
    assert [(each.argument, each.from_value, each.to_value) for each in advice.settings] == [
        ("conf", "0.001", "0.25"),
        ("max_det", "3000", "300"),
    ]
    (advice,) = advice_of(calls_of(**DEFAULTS), stack)
    assert advice.text.startswith("Let fewer boxes through: a higher `conf`")
    assert not advice.settings


def test_copies_of_images_are_no_boxes():
    (advice,) = advice_of(calls_of(**DEFAULTS, source="tensor"), COPIES)
    assert "boxes" not in advice.text
    assert "copies every image back" in advice.text


def test_without_lines_nothing_is_said_of_boxes_but_where_more_come_through_than_by_default():
    assert advice_of(calls_of(**DEFAULTS)) == ()
    (advice,) = advice_of(calls_of(conf=0.01, max_det=300))
    assert advice.text == "Let fewer boxes through: `conf=0.25`"


def test_the_parts_of_calls_that_overlap_are_no_findings_and_never_all_of_the_time():
    one = calls_of(**DEFAULTS)
    other = dataclasses.replace(one, number=2, settings={**one.settings, "model": "other.pt"})
    found = analyse(make_served([one, other], util_pct=80.0))
    assert "slow-postprocessing" not in {finding.rule for finding in found.findings}
    gains = [each.gain_at_most for finding in found.findings for each in finding.advice]
    assert all(gain is None or gain < 1 for gain in gains)


def test_calls_that_overlap_a_little_have_parts_of_their_own():
    one = calls_of(**DEFAULTS)
    rare = dataclasses.replace(
        make_calls(100, parts_ms=(1.0, 6.0, 8.0), gap_ms=200.0), number=2, settings=dict(one.settings)
    )
    found = {finding.rule for finding in analyse(make_served([one, rare], util_pct=80.0)).findings}
    assert "slow-postprocessing" in found
