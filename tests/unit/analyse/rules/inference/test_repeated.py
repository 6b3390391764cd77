"""Several calls of a model for one image: counted where images were compared, else guessed of a SAM alone."""

import dataclasses

import numpy as np
import pytest
from support.calls import make_calls, make_served
from support.stacks import process

from gpu_report.analyse import analyse
from gpu_report.model import Frame

MAIN = Frame("/home/me/sheets.py", 12, "<module>")
LIBRARY = "/venv/lib/python3.11/site-packages/ultralytics"
STREAM = Frame(f"{LIBRARY}/engine/predictor.py", 395, "stream_inference")
CALL = (
    STREAM,
    Frame(f"{LIBRARY}/models/sam/model.py", 80, "predict"),
    Frame("/home/me/leaves.py", 10, "outline"),
    MAIN,
)
DETECTS = (STREAM, MAIN)


def found(run):
    return next((each for each in analyse(run).findings if each.rule == "repeated-images"), None)


def by_turns(in_a_row, turns=30, **settings):
    """Return calls of a detector, each of which that many of a second model follow, 13 ms each."""
    first = make_calls(turns, gap_ms=14.0 * in_a_row + 1.0, noise=0.0, start_s=5.0)
    gaps_ms = np.where(np.arange(turns * in_a_row) % in_a_row == 0, 15.0, 1.0)
    second = make_calls(turns * in_a_row, gap_ms=gaps_ms, noise=0.0, start_s=5.014, **settings)
    return first, dataclasses.replace(second, number=2)


def noted(both):
    stays = [
        (a, b, stack)
        for of, stack in zip(both, (DETECTS, CALL), strict=True)
        for a, b in zip(of.start_s, of.end_s, strict=True)
    ]
    return dataclasses.replace(make_served(both, util_pct=60.0), stacks=(process(*sorted(stays), pid=both[0].pid),))


def test_calls_with_the_image_of_the_call_before_are_named_with_the_line_that_makes_them():
    first, second = by_turns(12, format="sam", model=None)
    both = dataclasses.replace(first, repeated=0), dataclasses.replace(second, repeated=330)
    finding = found(noted(both))
    assert finding.summary == "The SAM model is called 12 times for each image: outline (leaves.py:10)"
    assert (finding.severity, finding.where[0].line) == ("warning", 10)
    once = (
        "Call SAM once for each image in `outline` (leaves.py:10), with all boxes (`bboxes=`): at most 79 % less time"
    )
    assert finding.advice[0].text == once  # 11 of 12 calls of 13 ms, of 182 ms in all
    assert analyse(noted(both)).verdict.text.startswith(once)


def test_calls_in_a_row_are_a_guess_of_a_sam_and_of_no_other_model():
    assert "12 times in a row, perhaps for one image" in found(noted(by_turns(12, format="sam"))).summary
    assert found(noted(by_turns(12))) is None
    assert found(noted(by_turns(1, turns=300, format="sam"))) is None


def test_a_sam_that_is_alone_is_no_guess():
    assert found(make_served(make_calls(300, format="sam"))) is None


@pytest.mark.parametrize(("repeated", "said"), [(None, False), (0, False), (299, False), (295, False), (200, True)])
def test_a_model_that_gets_each_image_several_times_is_no_benchmark_of_a_few(repeated, said):
    calls = dataclasses.replace(make_calls(300), repeated=repeated)
    finding = found(make_served(calls))
    assert (finding is not None) == said
    assert finding is None or finding.advice[0].text.startswith("Call the model once for each image, and keep its res")


@pytest.mark.parametrize(("images", "said"), [(None, True), (200, True), (60, True), (3, False)])
def test_a_stream_that_stood_still_repeats_few_of_its_images(images, said):
    """Of 300 calls 100 had another image than the call before; that many of these came again."""
    calls = dataclasses.replace(make_calls(300), repeated=200, repeated_images=images)
    assert (found(make_served(calls)) is not None) == said
