"""Inference on an H200 with faults that no rule was written for: what lies within calls, or beside the program.

Designed and recorded by people who had not read a rule (2026-11-28). The truth was measured without the fault: a pinned
core 5.2 times as many images/s, another process on the GPU 2.5, a new shape in each call with cuDNN's autotuner 18.
"""

from dataclasses import replace

import pytest
from support.archives import unpacked

from gpu_report.analyse import analyse
from gpu_report.load import load_run


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    into = unpacked(tmp_path_factory.mktemp("served"), "unseen_h200_served")
    return lambda name: analyse(load_run(into / name))


def rules(analysis, severity="warning"):
    return {finding.rule for finding in analysis.findings if finding.severity == severity}


@pytest.mark.parametrize(("name", "calls"), [("foundry", "1.8 calls"), ("duet", "1.9 calls of 2 models")])
def test_full_load_from_two_threads_is_no_fault_of_its_parts(analysed, name, calls):
    """Each part contains waiting for the other thread's work on the GPU: there is no post-processing to shorten."""
    found = analysed(name)
    assert not rules(found)
    assert found.verdict.text.startswith(
        "Nothing to fix was found in the calls of large.pt. Worth a try: measure whether "
    )
    assert "Post-processing takes" not in found.verdict.text
    assert f"Threads of your program have {calls} at once on GPU" in found.verdict.text


def test_another_process_on_the_gpu_comes_first(analysed):
    """127 images/s without it, 51 with it: it cost 60 % of the time."""
    found = analysed("harbour")
    assert found.verdict.text.startswith("Keep python3 neighbour.py (pid 3925) off GPU 0")
    assert rules(found) == {"other-process-in-calls"}


def test_another_process_that_the_driver_hides_shows_in_the_work_beyond_calls(analysed):
    run = analysed("harbour").run
    seen = run.processes[run.processes["owner"] == "trainer"]
    found = analyse(replace(run, processes=seen))
    assert found.verdict.text.startswith("Find what else uses GPU 0 (`nvidia-smi` on the host), and keep it off.")
    assert rules(found) == {"other-process-in-calls"}


def test_a_program_that_pins_itself_to_a_core_lacks_cores_before_all_else(analysed):
    """It aborted as it exited, when all of its calls had been made."""
    found = analysed("depot")
    assert found.verdict.text.startswith("Let the program use more than 1 of the 32 CPU cores")
    assert rules(found) == {"few-cores", "command-ended"}
    assert not rules(found, "critical")
    (finding,) = (each for each in found.findings if each.rule == "few-cores")
    assert "`os.sched_setaffinity`" in finding.advice[0].text  # the recorder may use 16


def test_a_new_shape_in_each_call_comes_before_lists_of_images(analysed):
    """A call took 2.1 s with cuDNN's autotuner, 0.12 s without: 94 % less. The recording is older than that setting."""
    found = analysed("quarry")
    assert found.verdict.text.startswith("Leave `torch.backends.cudnn.benchmark` off, or give the model images of one")
    assert "at most 95 % less time" in found.verdict.text
    assert rules(found) == {"new-shapes"}


@pytest.mark.parametrize("name", ["duet", "lagoon", "metro"])
def test_a_service_trains_on_no_gpu(analysed, name):
    assert "unused-gpu" not in {finding.rule for finding in analysed(name).findings}


def test_lists_of_four_win_what_four_do_and_longer_ones_more(analysed):
    """Lists of 24 made 436 images/s of 99: a GPU takes less for each image of a larger batch."""
    assert analysed("orchard").verdict.text.startswith(
        "Pass lists of 4 images or more where latency allows: from 101 images/s to about 242."
    )
