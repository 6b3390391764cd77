"""Calls of a new shape: found where they are many and far slower, with what is known to choose kernels anew."""

import dataclasses

import numpy as np
import pytest
from support.calls import make_calls, make_served
from support.stacks import process

from gpu_report.analyse import analyse
from gpu_report.model import Frame, SettingLocation

YOLO = "/venv/lib/python3.11/site-packages/ultralytics"
IN_CALL = (
    Frame(f"{YOLO}/engine/predictor.py", 185, "inference"),
    Frame(f"{YOLO}/engine/predictor.py", 380, "stream_inference"),
    Frame("/home/me/serve.py", 12, "<module>"),
)
CONVOLUTION = (Frame("/venv/torch/nn/modules/conv.py", 554, "_conv_forward", called="conv2d"), *IN_CALL)
ACTIVATION = (Frame("/venv/torch/nn/functional.py", 2380, "silu", called="silu_"), *IN_CALL)


def shaped(widths, new_ms=200.0, known_ms=10.0, **settings):
    """Return calls of these widths; inference of those that are new takes `new_ms`."""
    widths = np.asarray(widths, dtype=float)
    _, first = np.unique(widths, return_index=True)
    inference = np.full(len(widths), known_ms)
    inference[first] = new_ms
    calls = make_calls(len(widths), noise=0.0, **settings)
    total = inference + 3.0
    starts = 5.0 + np.concatenate([[0.0], np.cumsum(total[:-1] + 1.0)]) / 1000.0
    return dataclasses.replace(calls, width=widths, inference_ms=inference, total_ms=total, start_s=starts)


def found_in(calls, util_pct=5.0, stack=(), modes=(), places=()):
    run = make_served(calls, util_pct=util_pct)
    inside = tuple(
        dataclasses.replace(each, settings={"slow_modes": list(modes)}, setting_locations=places) for each in run.inside
    )
    stays = [(start, end, stack) for start, end in zip(calls.start_s, calls.end_s, strict=True)]
    run = dataclasses.replace(run, inside=inside, stacks=(process(*stays, pid=calls.pid),))
    return {finding.rule: finding for finding in analyse(run).findings}


def test_new_shapes_that_are_far_slower_than_known_ones_are_found():
    calls = shaped([640] * 100 + [each for at in range(100) for each in (at + 641, 640)])
    finding = found_in(calls)["new-shapes"]
    assert finding.severity == "warning"
    assert "inference takes 200 ms then, 10 ms for a shape that it knows" in finding.summary
    assert finding.advice[0].text.startswith("Give the model images of one size")
    assert 0.8 < finding.advice[0].gain_at_most < 1


def test_the_setting_that_tries_kernels_is_named_with_its_line():
    calls = shaped(32 * np.arange(1, 61))
    places = (SettingLocation("cudnn_benchmark", "/srv/speed.py", 6), SettingLocation("affinity", "/srv/host.py", 9))
    finding = found_in(calls, modes=["cudnn_benchmark"], places=places)["new-shapes"]
    assert finding.advice[0].text.startswith("Remove `torch.backends.cudnn.benchmark = True` (speed.py:6), or give")


def test_a_compiled_model_is_compiled_anew():
    finding = found_in(shaped(32 * np.arange(1, 61), compile=True))["new-shapes"]
    assert finding.advice[0].text.startswith("Compile with `dynamic=True`")


def test_where_all_shapes_are_new_a_reason_must_be_known():
    calls = shaped(32 * np.arange(1, 61))
    by_lines, by_setting = found_in(calls, stack=CONVOLUTION), found_in(calls, modes=["cudnn_benchmark"])
    assert by_lines["new-shapes"].cause.confidence < by_setting["new-shapes"].cause.confidence
    assert "small-calls" not in found_in(calls, stack=CONVOLUTION)  # more of them would launch no faster
    assert "new-shapes" not in found_in(calls, stack=ACTIVATION)
    assert "new-shapes" not in found_in(calls)
    assert not any("lists of" in each.text for each in found_in(calls)["small-calls"].advice)
    assert "new-shapes" not in found_in(calls, 95.0, modes=["cudnn_benchmark"])  # the GPU worked all the time


@pytest.mark.parametrize(
    "calls",
    [
        shaped([640] * 60),
        shaped([640] * 100 + [each for at in range(100) for each in (32 * at + 1000, 640)], new_ms=12.0),
        shaped([640] * 2000 + [672, 704, 736, 768, 800, 832] + [640] * 2000),  # few of many
    ],
)
def test_shapes_that_are_known_or_as_fast_or_few_are_no_finding(calls):
    assert "new-shapes" not in found_in(calls, modes=["cudnn_benchmark"])


def test_shapes_that_are_not_known_are_neither_new_nor_known():
    calls = shaped(32 * np.arange(1, 61))
    blank = dataclasses.replace(calls, width=np.full(60, np.nan))
    assert "new-shapes" not in found_in(blank, stack=CONVOLUTION)
    half = dataclasses.replace(calls, width=np.where(np.arange(60) % 2, calls.width, np.nan))
    assert "new-shapes" in found_in(half, stack=CONVOLUTION)
