"""Findings on calls: each where it should, and not where it should not."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from support.calls import make_calls, make_served
from support.stacks import process

from gpu_report import schema
from gpu_report.analyse import analyse
from gpu_report.model import Frame, RebuiltPredictor
from gpu_report.render.what_to_change import listed_changes

MAIN = Frame("/home/me/serve.py", 12, "<module>")
OWN = (Frame("/home/me/serve.py", 7, "prepare"), MAIN)
SLEEP = (Frame("/home/me/serve.py", 9, "<module>", called="sleep"),)
CALL = (Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/predictor.py", 395, "stream_inference"), MAIN)


def findings(run):
    return {finding.rule: finding for finding in analyse(run).findings}


def noted(run, calls, between):
    """Return the run with a note of where the process stood in each call and each gap."""
    stays = []
    for start, end, following in zip(calls.start_s, calls.end_s, calls.start_s[1:], strict=False):
        stays += [(start, end, CALL), (end, following, between)]
    return dataclasses.replace(run, stacks=(process(*stays, pid=calls.pid),))


def test_healthy_calls_are_no_finding():
    run = make_served(make_calls(1500, half=True), util_pct=75.0)
    assert findings(run) == {}
    assert analyse(run).verdict.text.startswith("Nothing to fix was found")


def test_code_between_calls_leads_with_its_line_and_the_speed_without_it():
    """What is not needed may go: that wins more than to run it beside calls of 13 ms."""
    calls = make_calls(600, gap_ms=30.0)
    run = noted(make_served(calls, util_pct=20.0), calls, OWN)
    found = findings(run)["slow-between-calls"]
    assert (found.cause.name, found.severity) == ("own-code", "warning")
    assert found.where[0].function == "prepare"
    assert [round(each.gain_estimate, 2) for each in found.advice] == [0.70, 0.30]
    assert {each.gain_at_most for each in found.advice} == {None}
    led = "Look at `prepare` (serve.py:7): without it 23 images/s become about 77"
    beside = "Run `prepare` in another thread or process while the model works: 23 images/s become about 33"
    assert [each.short for each in found.advice] == [led, beside]
    assert analyse(run).verdict.text.startswith(f"{led}. Before each call your code takes 30 ms")


def test_code_that_takes_far_longer_than_calls_is_not_to_be_run_beside_them():
    calls = make_calls(100, gap_ms=200.0)
    found = findings(noted(make_served(calls, util_pct=2.0), calls, OWN))["slow-between-calls"]
    assert [each.short.split(":")[0] for each in found.advice] == ["Look at `prepare` (serve.py"]


def alternately(other_every):
    """Return a run with another function in each gap of a number, else `prepare`."""
    calls = make_calls(600, gap_ms=30.0)
    other = (Frame("/home/me/serve.py", 30, "write"), MAIN)
    stays = []
    for at, (start, end, after) in enumerate(zip(calls.start_s, calls.end_s, calls.start_s[1:], strict=False)):
        stays += [(start, end, CALL), (end, after, other if at % other_every == 0 else OWN)]
    return dataclasses.replace(make_served(calls, util_pct=20.0), stacks=(process(*stays, pid=calls.pid),))


@pytest.mark.parametrize(("other_every", "named"), [(3, True), (10, False)])
def test_another_function_that_takes_a_tenth_of_the_time_is_named_with_what_it_saves_alone(other_every, named):
    found = findings(alternately(other_every))["slow-between-calls"]
    assert found.summary.endswith("mostly in prepare (serve.py:7), then write (serve.py:30)") == named
    assert [each.line for each in found.where] == [7, 30][: 1 + named]
    other = [each.short for each in found.advice if "`write`" in each.short]
    assert other == ["Look at `write` (serve.py:30): without it 23 images/s become about 30"] * named


def test_the_speed_without_a_function_is_that_without_it_alone():
    """A third of the gaps goes to another function, which stays."""
    short = findings(alternately(3))["slow-between-calls"].advice[0].short
    assert short == "Look at `prepare` (serve.py:7): without it 23 images/s become about 43"  # 13 + 10 ms


@pytest.mark.parametrize(("last_ms", "grew"), [(30.0, False), (50.0, False), (90.0, True)])
def test_time_between_calls_that_doubles_over_the_run_is_said_to_grow(last_ms, grew):
    gaps = np.linspace(30.0, last_ms, 600) * np.exp(0.1 * np.random.default_rng(1).normal(size=600))
    calls = make_calls(600, gap_ms=gaps)
    said = findings(noted(make_served(calls, util_pct=20.0), calls, OWN))["slow-between-calls"].summary
    assert ("It grew from 3" in said) == grew
    assert ("90 ms a call" in said) == grew or "It grew from 3" in said


def test_time_between_calls_that_stopped_growing_is_not_said_to_grow():
    gaps = np.concatenate([np.linspace(10.0, 60.0, 200), np.full(400, 60.0)])
    calls = make_calls(600, gap_ms=gaps)
    assert "grew" not in findings(noted(make_served(calls, util_pct=20.0), calls, OWN))["slow-between-calls"].summary


@pytest.mark.parametrize(("image_px", "shrinks"), [(None, False), (1279, False), (6000, True)])
def test_images_far_larger_than_the_model_sees_are_to_be_shrunk_before_they_are_decoded(image_px, shrinks):
    calls = dataclasses.replace(make_calls(600, gap_ms=30.0), image_px=image_px)
    reads = (Frame("/home/me/serve.py", 9, "read", called="imread"), MAIN)
    advice = findings(noted(make_served(calls, util_pct=20.0), calls, reads))["slow-between-calls"].advice
    beside = (
        "Decode the next images in several threads or processes while the model works: 23 images/s become 77 at most"
    )
    shrink = "Shrink the images once (now up to 6,000 px, `imgsz=640`): 23 images/s become 77 at most"
    assert [each.short for each in advice] == [*([shrink] if shrinks else []), beside]


@pytest.mark.parametrize(
    ("called", "gpu", "copies"), [("item", 0, True), ("float", 0, True), ("cpu", 0, False), ("item", None, False)]
)
def test_numbers_that_are_copied_from_the_gpu_one_by_one_are_to_be_copied_at_once(called, gpu, copies):
    calls = make_calls(600, gap_ms=30.0, gpu=gpu)
    rows = (Frame("/home/me/serve.py", 5, "rows", called=called), MAIN)
    found = findings(noted(make_served(calls, util_pct=20.0), calls, rows))["slow-between-calls"]
    assert found.summary.endswith(", which copies numbers from the GPU one by one") == copies
    assert any("Copy results to the CPU once" in each.text for each in found.advice) == copies


@pytest.mark.parametrize(
    ("called", "mib_s", "is_named"),
    [("to", 6000.0, True), ("matmul", 6000.0, False), ("to", 400.0, False), ("to", np.nan, False)],
)
def test_what_is_copied_to_the_gpu_for_each_call_is_named_where_it_is_far_more_than_images(called, mib_s, is_named):
    """23 calls a second of an image of 640 x 640, which takes 5 MiB at most."""
    calls = make_calls(600, gap_ms=30.0)
    search = (Frame("/home/me/serve.py", 5, "search", called=called), MAIN)
    run = noted(make_served(calls, util_pct=20.0), calls, search)
    run = dataclasses.replace(run, samples=run.samples.assign(pcie_rx_mib_s=mib_s))
    found = findings(run)["slow-between-calls"]
    assert found.summary.endswith(". search copies about 260 MiB to the GPU for each call") == is_named
    kept = "Keep on the GPU what `search` copies there for each call, as far as it stays the same"
    assert [each.text for each in found.advice[1:2] if each.text == kept] == [kept] * is_named


def test_what_several_models_copy_to_a_gpu_is_not_of_one():
    calls, second = make_calls(600, gap_ms=30.0), make_calls(60, gap_ms=300.0, pid=8)
    search = (Frame("/home/me/serve.py", 5, "search", called="to"), MAIN)
    run = noted(make_served([calls, second], util_pct=20.0), calls, search)
    run = dataclasses.replace(run, samples=run.samples.assign(pcie_rx_mib_s=6000.0))
    assert "MiB" not in findings(run)["slow-between-calls"].summary


def test_images_that_ultralytics_reads_are_named_by_its_line_and_by_the_users():
    calls = make_calls(600, gap_ms=30.0)
    site = "/venv/lib/python3.11/site-packages/ultralytics/"
    stream = Frame(f"{site}engine/predictor.py", 376, "stream_inference")
    reads = (Frame(f"{site}data/loaders.py", 495, "__next__"), stream, Frame("/home/me/scans.py", 3, "scans"), MAIN)
    found = findings(noted(make_served(calls, util_pct=20.0), calls, reads))["slow-between-calls"]
    assert found.summary.endswith(": __next__ (loaders.py:495), for scans (scans.py:3)")
    assert [each.function for each in found.where] == ["__next__", "scans"]


SELECT = (Frame("/usr/lib/python3.11/selectors.py", 468, "select", called="poll"), MAIN)


def test_waits_that_are_all_as_long_end_by_a_time_out():
    calls = make_calls(200, gap_ms=120.0, images=4, noise=0.2)
    run = noted(make_served(calls, util_pct=2.0), calls, SELECT)
    found = findings(run)["rare-calls"]
    assert "Each wait lasted 120 ms: it ends by a time-out, not by an arrival" in found.summary
    assert found.severity == "info"
    assert analyse(run).verdict.text.startswith("If images are collected before each call, wait shorter, or for fewer")


@pytest.mark.parametrize(
    ("gap_ms", "between"),
    [
        (np.random.default_rng(2).exponential(120.0, 200), SELECT),  # requests that come when they come
        (120.0, SLEEP),
        (1_200.0, SELECT),
    ],
)
def test_waits_that_differ_or_that_the_program_sleeps_end_by_no_time_out(gap_ms, between):
    calls = make_calls(200, gap_ms=gap_ms, noise=0.2)
    run = noted(make_served(calls, util_pct=2.0), calls, between)
    assert findings(run)["rare-calls"].advice == ()
    assert analyse(run).verdict.text.startswith("Nothing to fix was found")


@pytest.mark.parametrize("noise", [0.0, 0.002, 0.2])
def test_a_paced_camera_has_an_even_beat_and_no_even_waits(noise):
    """Its waits are what its calls leave of 67 ms: of calls that differ little waits do, too."""
    took = make_calls(200, noise=noise).total_ms
    calls = make_calls(200, gap_ms=np.concatenate([[1.0], 66.7 - took[:-1]]), noise=noise)
    run = noted(make_served(calls, util_pct=5.0), calls, SELECT)
    assert findings(run)["rare-calls"].advice == ()


def test_where_nobody_knows_what_most_of_the_time_went_to_it_is_not_said_that_nothing_is_to_fix():
    run = make_served(make_calls(600, gap_ms=30.0, half=True), util_pct=20.0)
    said = analyse(run).verdict.text
    assert said.startswith("Unknown what the program did for 70 % of the time from the first to the last call")
    assert "Nothing to fix" not in said


def test_time_in_calls_of_another_model_of_the_process_is_not_unknown():
    first, second = make_calls(300, gap_ms=13.0, half=True), make_calls(300, gap_ms=13.0, start_s=5.013, half=True)
    run = make_served([first, dataclasses.replace(second, number=2)], util_pct=70.0)
    assert "Nothing to fix was found" in analyse(run).verdict.text


def test_images_a_second_that_leave_waits_for_calls_out_say_so():
    """Every third gap the process sleeps, as a service does until a request comes: that is no part of 43 ms a call."""
    calls = make_calls(600, gap_ms=30.0)
    run = noted(make_served(calls, util_pct=20.0), calls, OWN)
    assert " images/s become" in findings(run)["slow-between-calls"].advice[0].short
    stays = list(zip(calls.start_s, calls.end_s, [*calls.start_s[1:], calls.end_s[-1]], strict=True))
    gaps = [(end, after, SLEEP if at % 3 == 0 else OWN) for at, (_, end, after) in enumerate(stays) if after > end]
    both = sorted([*((start, end, CALL) for start, end, _ in stays), *gaps])
    waits = dataclasses.replace(run, stacks=(process(*both, pid=calls.pid),))
    led = findings(waits)["slow-between-calls"].advice[0].short
    assert "images/s (waits for calls left out) become about" in led


def test_code_in_no_function_is_named_by_its_line():
    calls = make_calls(600, gap_ms=30.0)
    inline = (Frame("/home/me/serve.py", 9, "<module>", called="GaussianBlur"),)
    found = findings(noted(make_served(calls, util_pct=20.0), calls, inline))["slow-between-calls"]
    assert found.advice[0].short.startswith("Look at line 9 of serve.py: without it ")


def test_a_service_that_sleeps_is_not_under_utilised():
    calls = make_calls(60, gap_ms=2000.0)
    run = noted(make_served(calls, util_pct=1.0), calls, SLEEP)
    found = findings(run)
    assert set(found) == {"rare-calls"}
    assert found["rare-calls"].severity == "info"
    assert analyse(run).low_intervals == ()
    waits = "it mostly waits for the next request or image, so its latency is what matters. A call "
    assert f"Nothing to fix was found in the calls of yolo26n.pt: {waits}" in analyse(run).verdict.text


@pytest.mark.parametrize(("inner", "by_pil"), [("PIL/ImageDraw.py", True), ("ultralytics/utils/plotting.py", False)])
def test_drawing_by_pil_is_said_with_what_makes_it(inner, by_pil):
    calls = make_calls(600, gap_ms=30.0)
    site = "/venv/lib/python3.11/site-packages/"
    plots = Frame(f"{site}ultralytics/utils/plotting.py", 462, "box_label"), Frame("/home/me/serve.py", 14, "show")
    run = noted(make_served(calls, util_pct=20.0), calls, (Frame(site + inner, 636, "text"), *plots, MAIN))
    found = findings(run)["slow-between-calls"]
    assert found.advice[0].short.startswith("Look at `show` (serve.py:14): without it ")
    assert any("names in ASCII" in each.text for each in found.advice) == by_pil


IMDECODE = (Frame("/home/me/serve.py", 31, "do_POST", called="imdecode"), MAIN)


@pytest.mark.parametrize(("stack", "severity"), [(OWN, "warning"), (IMDECODE, "info")])
def test_what_a_service_that_mostly_waits_does_before_a_call_is_said_as_latency(stack, severity):
    """Of each 2 s between calls it works for 300 ms; images a second are as many as were asked for."""
    calls = make_calls(60, gap_ms=2000.0, noise=0.0)
    pairs = list(zip(calls.end_s, calls.start_s[1:], strict=False))
    stays = [(start, end, CALL) for start, end in zip(calls.start_s, calls.end_s, strict=True)]
    stays += [(end, after - 0.3, SELECT) for end, after in pairs] + [(after - 0.3, after, stack) for _, after in pairs]
    run = dataclasses.replace(make_served(calls, util_pct=1.0), stacks=(process(*sorted(stays), pid=calls.pid),))
    found = findings(run)["slow-between-calls"]
    assert found.severity == severity
    words = " ".join(each.short for each in found.advice)
    assert "images/s" not in words
    if severity == "warning":
        assert "without it 308 ms a call, with what comes before it, become about 13 ms" in words
    assert analyse(run).verdict.text.startswith("Nothing to fix") == (severity == "info")


def test_a_handler_that_waits_for_the_next_request_is_no_cause():
    calls = make_calls(60, gap_ms=500.0)
    lib = "/usr/lib/python3.12/"
    keep_alive = (
        Frame(f"{lib}socket.py", 707, "readinto", called="recv_into"),
        Frame(f"{lib}http/server.py", 404, "handle_one_request"),
        Frame(f"{lib}socketserver.py", 761, "__init__"),
    )
    assert set(findings(noted(make_served(calls, util_pct=1.0), calls, keep_alive))) == {"rare-calls"}
    asked = (keep_alive[0], Frame(f"{lib}http/client.py", 300, "begin"), MAIN)
    assert "slow-between-calls" in findings(noted(make_served(calls, util_pct=1.0), calls, asked))


def test_a_launch_bound_gpu_gets_the_batch_that_its_inference_time_allows():
    found = findings(make_served(make_calls(1500), util_pct=15.0))["small-calls"]
    assert found.cause.name == "small-calls"
    batch = found.advice[0]
    assert "lists of 4 images" in batch.short  # 2.1 ms of work in 10 ms of inference
    assert batch.argument is None  # `batch` has no effect on images that a program passes
    assert batch.gain_estimate == pytest.approx(1 - 1000 / 14 / (4000 / (4 * 4 + 10)), abs=0.05)


@pytest.mark.parametrize(
    ("source", "argument", "batch_is_offered"),
    [("files", "batch", True), ("from_img", None, True), ("stream", None, False), ("screenshot", None, False)],
)
def test_more_images_a_call_are_offered_as_the_source_allows(source, argument, batch_is_offered):
    advice = findings(make_served(make_calls(1500, source=source), util_pct=15.0))["small-calls"].advice
    larger = [each for each in advice if each.gain_estimate is not None]
    assert [(each.argument, each.to_value) for each in larger] == [(argument, argument and "4")] * batch_is_offered
    assert "TensorRT" in advice[-1].text


def in_threads(at_once, *, parts_ms=(1.0, 10.0, 1.0), **settings):
    """Return calls of which as many go on at once, as of threads that take turns to launch."""
    long = tuple(at_once * each for each in parts_ms)
    gap_ms = sum(parts_ms) - sum(long) - 1.0  # a new call begins when one of the others ends
    calls = make_calls(1500, parts_ms=long, gap_ms=gap_ms, noise=0.0, **settings)
    return dataclasses.replace(calls, gap_ms=np.maximum(calls.gap_ms, 0.0))


def test_threads_that_call_one_model_may_gather_their_images_in_one_call():
    """8 calls in turn take 96 ms. Together they launch once (the GPU takes 8 x 2 ms), and the rest 8 times (2 ms)."""
    batch, processes = findings(make_served(in_threads(8), util_pct=17.0))["small-calls"].advice
    assert batch.short.startswith(
        "Put the images of all threads into one call (lists of 8): from 83 images/s to about 2"
    )
    assert batch.gain_estimate == pytest.approx(1 - 33 / 96, abs=0.04)
    assert processes.short.startswith("Give each thread a process of its own")


@pytest.mark.parametrize("calls", [in_threads(8, source="stream"), in_threads(8, parts_ms=(5.0, 3.0, 5.0))])
def test_threads_gather_no_camera_streams_nor_what_wins_little(calls):
    found = findings(make_served(calls, util_pct=5.0)).get("small-calls")
    assert found is not None
    assert not any("Gather" in each.text for each in found.advice)


@pytest.mark.parametrize(("begins_s", "processes"), [(5.0, True), (5.013, False)])
def test_models_get_processes_where_threads_call_them_at_once_and_not_where_one_calls_them_in_turn(begins_s, processes):
    """Calls of 13 ms, one in 26 ms: those of the other model at the same time, or between them."""
    first, other = (make_calls(500, gap_ms=13.0, noise=0.0, start_s=at_s) for at_s in (5.0, begins_s))
    run = make_served([first, dataclasses.replace(other, number=2)], util_pct=10.0)
    advice = findings(run)["small-calls"].advice
    assert any("process of its own" in each.text for each in advice) == processes


@pytest.mark.parametrize("util_pct", [60.0, 75.0])
def test_a_gpu_that_works_in_inference_is_not_launch_bound(util_pct):
    assert "small-calls" not in findings(make_served(make_calls(1500), util_pct=util_pct))


def test_a_gpu_without_readings_is_not_launch_bound():
    run = make_served(make_calls(1500), util_pct=15.0)
    blank = dataclasses.replace(run, samples=run.samples.assign(gpu_util_pct=np.nan))
    assert "small-calls" not in findings(blank)


def test_half_precision_is_a_note_where_the_gpu_is_the_limit():
    found = findings(make_served(make_calls(1500, quantize=None), util_pct=68.0))["full-precision-calls"]
    assert (found.severity, found.advice[0].argument, found.advice[0].to_value) == ("info", "quantize", "16")
    old = findings(make_served(make_calls(1500), util_pct=68.0))["full-precision-calls"]
    assert (old.advice[0].argument, old.advice[0].to_value) == ("half", "True")


@pytest.mark.parametrize(
    ("parts", "rule", "cause"),
    [
        ((12.0, 10.0, 1.0), "slow-preprocessing", "preprocessing"),
        ((1.0, 10.0, 8.0), "slow-postprocessing", "postprocessing"),
    ],
)
def test_a_slow_part_is_named_by_its_own_times(parts, rule, cause):
    found = findings(make_served(make_calls(1500, parts_ms=parts), util_pct=40.0))
    assert found[rule].cause.name == cause
    assert {"slow-preprocessing", "slow-postprocessing"} & set(found) == {rule}


def test_yolo26_is_told_of_its_head_without_nms_where_the_argument_exists():
    new = {"nms": None, "end2end": False}
    found = findings(make_served(make_calls(1500, parts_ms=(1.0, 10.0, 8.0), **new), util_pct=40.0))
    assert found["slow-postprocessing"].advice[0].argument == "nms"
    old = findings(make_served(make_calls(1500, parts_ms=(1.0, 10.0, 8.0)), util_pct=40.0))
    assert "nms" not in {each.argument for each in old["slow-postprocessing"].advice}


def test_a_model_object_for_each_call_is_found_and_one_for_all_is_not():
    assert "model-reloaded" in findings(make_served(make_calls(40, gap_ms=290.0, predictors=41), util_pct=2.0))
    assert "model-reloaded" not in findings(make_served(make_calls(40, gap_ms=290.0, predictors=2), util_pct=2.0))


def test_calls_after_a_pause_are_slow_by_more_than_chance():
    gaps = np.tile([1.0, 1.0, 2000.0], 40)
    calls = make_calls(120, gap_ms=gaps)
    slower = np.where(gaps > 1000, 1.5, 1.0)
    cold = dataclasses.replace(calls, total_ms=calls.total_ms * slower)
    assert "slow-after-pause" in findings(make_served(cold, util_pct=5.0))
    assert "slow-after-pause" not in findings(make_served(calls, util_pct=5.0))


def test_the_cpu_beside_a_gpu_is_a_warning():
    fallback = {"format": "onnx", "providers": ["CPUExecutionProvider"], "device": "cuda:0", "asked_device": "0"}
    found = findings(make_served(make_calls(300, gpu=None, **fallback)))["cpu-inference"]
    assert found.severity == "warning"
    assert "fell back" in found.summary
    fallback["providers"] = ["CPUExecutionProvider", "AzureExecutionProvider"]  # the first one does the work
    assert "fell back" in findings(make_served(make_calls(300, gpu=None, **fallback)))["cpu-inference"].summary
    assert "cpu-inference" not in findings(make_served(make_calls(300)))


def test_pytorch_on_the_cpu_of_a_machine_without_a_gpu_is_told_to_export():
    calls = make_calls(600, gap_ms=1.0, gpu=None, device="cpu", format="pt")
    found = findings(dataclasses.replace(make_served(calls), gpus=()))["pytorch-on-cpu"]
    assert found.severity == "warning"
    assert found.advice[0].short == "Export the model for the CPU: OpenVINO or ONNX"
    assert "pytorch-on-cpu" not in findings(make_served(calls))  # beside a GPU: cpu-inference
    for other in ({"format": "onnx"}, {"compile": True}):
        exported = make_calls(600, gap_ms=1.0, gpu=None, **{"device": "cpu", "format": "pt", **other})
        assert "pytorch-on-cpu" not in findings(dataclasses.replace(make_served(exported), gpus=()))


def test_a_note_worth_a_try_is_said_with_it_and_not_below_nothing_to_fix():
    brief = make_calls(120, gap_ms=1.0, gpu=None, device="cpu", format="pt")
    found = analyse(dataclasses.replace(make_served(brief), gpus=()))
    assert [finding.severity for finding in found.findings] == ["info"]
    export = "Export the model for the CPU: OpenVINO or ONNX"
    assert found.verdict.sentences[0].text.endswith(f" Worth a try: {export[0].lower()}{export[1:]}.")
    assert found.verdict.text.startswith("Nothing to fix was found in the calls of ")
    assert [each.short for each in listed_changes(found)] == [export]


@pytest.mark.parametrize(("gpus", "rule"), [((), "pytorch-on-cpu"), (None, "cpu-inference")])
def test_several_models_on_the_cpu_are_said_once(gpus, rule):
    first = make_calls(600, gap_ms=1.0, gpu=None, device="cpu", format="pt", model="a.pt")
    models = [dataclasses.replace(first, number=n, settings={**first.settings, "model": f"{n}.pt"}) for n in (1, 2, 3)]
    run = dataclasses.replace(make_served(first), calls=tuple(models))
    found = analyse(run if gpus is None else dataclasses.replace(run, gpus=gpus)).findings
    (finding,) = [each for each in found if each.rule == rule]
    assert "(1.pt, 1 image a call; 2.pt, 1 image a call; 1 more model)" in finding.summary
    assert [each.text for each in finding.evidence][-1] == "median of a call (3.pt)"


def test_the_cpu_that_was_asked_for_leads_where_inference_is_the_largest_part():
    calls = make_calls(600, gap_ms=30.0, gpu=None, device="cpu", asked_device="cpu")
    run = noted(make_served(calls), calls, OWN)
    assert len(findings(run)) > 1  # its own code between calls led before
    asked = findings(run)["cpu-inference"]
    assert (asked.severity, "`" in asked.summary) == ("warning", False)
    assert analyse(run).verdict.text.startswith("Use the GPU: `device=0`. Inference ran on the CPU though")
    small = dataclasses.replace(calls, inference_ms=calls.inference_ms * 0.01)  # drawing and saving take the rest
    assert findings(make_served(small))["cpu-inference"].severity == "info"
    few = make_calls(100, gpu=None, device="cpu", asked_device="cpu")
    assert findings(make_served(few))["cpu-inference"].severity == "info"


def test_two_processes_on_one_gpu_are_a_note_and_one_after_the_other_is_not():
    both = [make_calls(600), make_calls(600, pid=8)]
    assert findings(make_served(both))["shared-gpu"].severity == "info"
    after = [make_calls(600), make_calls(600, pid=8, start_s=30.0)]
    assert "shared-gpu" not in findings(make_served(after))


def grown(calls, mib):
    rows = int(np.ceil(calls.end_s.max())) + 2
    used = 1000.0 + np.asarray(mib(np.arange(rows, dtype=float)))
    return make_served(calls, util_pct=40.0, quantities={"memory_used_mib": used})


def test_memory_that_grows_with_the_calls_says_when_the_card_is_full():
    found = findings(grown(make_calls(3000), lambda t_s: 40 * t_s))["memory-growth"]
    assert (found.cause.name, found.severity) == ("memory-growth", "critical")  # 140 GiB are full in an hour
    assert "every 1,000 calls: at this rate it is full" in found.summary


def test_a_buffer_that_may_not_be_full_yet_is_a_note_and_leads_no_verdict():
    few = grown(make_calls(200, gap_ms=100.0), lambda t_s: 100 * t_s)
    found = findings(few)["memory-growth"]
    assert found.severity == "info"
    assert "over 200 calls: a leak, or a buffer that is not full yet" in found.summary
    assert found.advice[0].short.startswith("Record 500 calls or more")
    assert not analyse(few).verdict.text.startswith(("Find what keeps", "Record"))


def test_memory_that_is_full_soon_is_a_leak_after_few_calls_too():
    found = findings(grown(make_calls(200, gap_ms=100.0), lambda t_s: 1500 * t_s))["memory-growth"]
    assert found.severity == "critical"


@pytest.mark.parametrize(
    "mib",
    [
        lambda t_s: np.where(t_s > 8, 1600.0, 0.0),  # a step, such as a larger shape
        lambda t_s: np.minimum(300 * t_s, 3000.0),  # it settles
        lambda t_s: 2 * t_s,  # too little
    ],
)
def test_memory_that_settles_is_no_growth(mib):
    assert "memory-growth" not in findings(grown(make_calls(3000), mib))


def host_grows(own_mib):
    """Return calls on a host whose memory grows by 60 MiB a second; `own_mib` is what the service has of it."""
    calls = make_calls(3000)
    t_s = np.arange(int(calls.end_s.max()) + 1, dtype=float)
    host = pd.DataFrame({"t_s": t_s, **{c.name: np.nan for c in schema.HOST_QUANTITIES}})
    host["memory_used_mib"], host["memory_available_mib"] = 2000 + 60 * t_s, 60_000 - 60 * t_s
    host["trainer_memory_mib"] = own_mib(t_s)
    return dataclasses.replace(make_served(calls, util_pct=75.0), host=host)


@pytest.mark.parametrize("own_mib", [lambda t_s: np.nan * t_s, lambda t_s: 1000 + 60 * t_s])
def test_results_kept_in_the_hosts_memory_are_found(own_mib):
    assert "stream=True" in findings(host_grows(own_mib))["host-memory-growth"].advice[0].text


def test_memory_that_other_programs_take_is_none_of_the_calls():
    assert "host-memory-growth" not in findings(host_grows(lambda t_s: 1000 + 0 * t_s))


def alternating(predictors, *, pairs=40, of_setup_ms=200.0, **second):
    """Return the calls of one file with two settings in turn, 10 of the first, then one of the other."""
    numbers = np.tile([1] * 10 + [2], pairs)
    changes = np.diff(numbers, prepend=1) != 0
    calls = make_calls(len(numbers), gap_ms=20.0 + of_setup_ms * changes)
    return [
        dataclasses.replace(
            calls,
            number=number,
            settings=calls.settings | (second if number == 2 else {"quantize": None}),
            predictors=predictors,
            **{name: value[numbers == number] for name, value in vars(calls).items() if isinstance(value, np.ndarray)},
        )
        for number in (1, 2)
    ]


def test_a_predictor_set_up_anew_by_an_argument_that_calls_change_is_found_by_their_order():
    found = findings(make_served(alternating(40, quantize=16), util_pct=5.0))["model-reloaded"]
    assert "`quantize`" in found.advice[0].text
    assert found.advice[0].gain_at_most > 0.2
    assert found.evidence[0].value == 79


@pytest.mark.parametrize(
    ("predictors", "of_setup_ms", "second"),
    [
        (1, 200.0, {"quantize": 16}),  # an object for each setting, another reason for the pauses
        (40, 0.0, {"quantize": 16}),  # it takes nothing
        (40, 200.0, {"conf": 0.5}),  # no argument of the set-up
    ],
)
def test_no_predictor_is_said_to_be_set_up_anew_for_another_reason(predictors, of_setup_ms, second):
    calls = alternating(predictors, of_setup_ms=of_setup_ms, **{"quantize": None, **second})
    found = findings(make_served(calls, util_pct=5.0)).get("model-reloaded")
    assert found is None or "set up anew" not in found.summary


def test_what_the_process_itself_saw_counts_before_the_order_of_calls():
    run = make_served(alternating(40, quantize=16), util_pct=5.0)
    way = RebuiltPredictor(2, 1, ("quantize",), "/home/me/detector.py", 12, "find")
    inside = tuple(dataclasses.replace(each, rebuilt={1: 30, 2: 31}, rebuilds=(way,)) for each in run.inside)
    found = findings(dataclasses.replace(run, inside=inside))["model-reloaded"]
    assert "`find` (detector.py:12)" in found.advice[0].text
    assert found.evidence[0].value == 61
    assert found.cause.confidence > 0.9


def test_models_of_one_file_are_told_apart_by_what_differs():
    text = " ".join(each.text for each in analyse(make_served(alternating(40, quantize=16))).verdict.sentences)
    assert "yolo26n.pt with quantize=16" in text
    assert "yolo26n.pt with quantize=None" in text
