"""What lies within calls besides the model's own parts."""

import dataclasses

import pytest
from support.calls import make_calls, make_served
from support.stacks import process

from gpu_report.analyse import analyse
from gpu_report.analyse.inference.call_kinds import kind_in_call
from gpu_report.model import Frame

YOLO = "/venv/lib/python3.11/site-packages/ultralytics/"
TORCH = Frame("/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", 1794, "_call_impl")
MAIN = Frame("/home/me/serve.py", 12, "<module>")
STREAM = Frame(YOLO + "engine/predictor.py", 382, "stream_inference")
CONV = Frame(YOLO + "nn/modules/conv.py", 98, "forward_fuse")
HOOK = (Frame("/home/me/serve.py", 7, "keep", called="compress"), TORCH, CONV, STREAM, MAIN)
LAYER = (Frame("/home/me/layers.py", 7, "forward"), TORCH, STREAM, MAIN)
GMC = (Frame(YOLO + "trackers/utils/gmc.py", 250, "apply", called="calcOpticalFlowPyrLK"), STREAM, MAIN)
DRAWS = (Frame(YOLO + "utils/plotting.py", 466, "box_label"), Frame(YOLO + "engine/results.py", 9, "plot"), STREAM)
CROPS = (Frame(YOLO + "utils/plotting.py", 760, "save_one_box"), Frame(YOLO + "engine/results.py", 806, "save_crop"))
CROPS = (*CROPS, Frame(YOLO + "engine/predictor.py", 415, "write_results"), STREAM, MAIN)
LABELS = (Frame(YOLO + "engine/results.py", 771, "save_txt"), STREAM, MAIN)
CALL = (CONV, STREAM, MAIN)
AFTER = (Frame("/home/me/serve.py", 20, "draw"), MAIN)


@pytest.mark.parametrize(
    ("stack", "kind"),
    [
        (HOOK, "own code"),
        (LAYER, None),
        (GMC, "tracking"),
        (DRAWS, "drawing and saving"),
        (CROPS, "cutting out boxes"),
        (LABELS, "writing labels"),
        (CALL, None),
        (AFTER, None),
        ((), None),
    ],
)
def test_each_stack_is_of_a_kind_within_calls_or_of_none(stack, kind):
    assert kind_in_call(stack) == kind


def found(*stacks, models=1):
    """Return findings of calls in which the process stood in these stacks by turns."""
    calls = make_calls(600)
    spans = enumerate(zip(calls.start_s, calls.end_s, strict=True))
    stays = [(start, end, stacks[at % len(stacks)]) for at, (start, end) in spans]
    served = make_served([calls, *(dataclasses.replace(calls, number=2 + at) for at in range(models - 1))])
    run = dataclasses.replace(served, stacks=(process(*stays, pid=calls.pid),))
    return {finding.rule: finding for finding in analyse(run).findings}


@pytest.mark.parametrize(
    ("stack", "rule", "function"),
    [
        (HOOK, "slow-code-in-calls", "keep"),
        (GMC, "slow-tracking", "apply"),
        (DRAWS, "slow-saving", "box_label"),
    ],
)
def test_what_takes_much_of_the_calls_is_named_with_its_line(stack, rule, function):
    finding = found(stack, CALL)[rule]
    assert finding.where[0].function == function
    assert finding.advice[0].gain_at_most == pytest.approx(0.46, abs=0.02)  # half of calls, a ms between two of them


def test_what_an_argument_of_its_own_writes_is_told_apart_from_drawing():
    run = make_served(calls := make_calls(600))
    thirds = [
        (start, end, (CROPS, DRAWS, DRAWS)[at % 3])
        for at, (start, end) in enumerate(zip(calls.start_s, calls.end_s, strict=True))
    ]
    findings = analyse(dataclasses.replace(run, stacks=(process(*thirds, pid=calls.pid),))).findings
    saves = [(f.advice[0].text, f.advice[0].gain_at_most) for f in findings if f.rule == "slow-saving"]
    assert {text.partition(",")[0] for text, _ in saves} == {
        "Set `save_crop=False`",
        "Draw and save in other processes",
    }
    assert sum(gain for _, gain in saves) == pytest.approx(0.92, abs=0.04)


def test_what_takes_little_is_no_finding():
    assert "slow-tracking" not in found(GMC, *[CALL] * 5)


def test_of_two_models_in_one_process_nobody_knows_whose_call_it_is():
    assert "slow-code-in-calls" not in found(HOOK, CALL, models=2)


def hooked(util_pct, *stacks):
    """Return what is said of calls in which the process stood in these stacks by turns, the GPU as busy as that."""
    calls = make_calls(600)
    spans = enumerate(zip(calls.start_s, calls.end_s, strict=True))
    stays = [(start, end, stacks[at % len(stacks)]) for at, (start, end) in spans]
    return analyse(dataclasses.replace(make_served(calls, util_pct=util_pct), stacks=(process(*stays, pid=calls.pid),)))


def small(util_pct, *stacks):
    return next((finding for finding in hooked(util_pct, *stacks).findings if finding.rule == "small-calls"), None)


def test_inference_with_code_of_ones_own_in_it_says_so():
    assert " Inference, your code in it included, takes " in hooked(30.0, HOOK, CALL).verdict.text
    assert " Inference takes " in hooked(30.0, CALL, CALL).verdict.text


def test_launching_is_not_blamed_for_what_a_hook_of_ones_own_takes():
    """It runs for half of inference: in the other half, the GPU is busy for most of the time."""
    assert small(30.0, CALL, CALL) is not None
    assert small(30.0, HOOK, CALL) is None


def test_what_launching_takes_besides_is_said_without_it_and_promises_less():
    plain, hooked = small(5.0, CALL, CALL), small(5.0, HOOK, CALL)
    assert "During inference, your own code left out, GPU 0 is busy" in hooked.summary
    assert hooked.advice[0].gain_estimate < plain.advice[0].gain_estimate
