"""Which lines of code a finding names, by the stacks that were noted meanwhile."""

import dataclasses

import numpy as np
import pytest
from support.samples import run_of

from gpu_report.analyse import analyse
from gpu_report.analyse.signals.code.stack_kinds import location_of
from gpu_report.model import Frame, ProcessStacks

TORCH = "/venv/lib/python3.11/site-packages/torch/utils/data/"
SLEEP = Frame("/usr/lib/python3.11/socket.py", 718, "readinto")
LOG = Frame("/home/me/callbacks.py", 41, "log_images")
TRAINER = Frame("/venv/lib/python3.11/site-packages/ultralytics/engine/trainer.py", 632, "_do_train")
LOADER = Frame(TORCH + "dataloader.py", 1448, "_try_get_data")
WORKER = Frame(TORCH + "_utils/worker.py", 375, "_worker_loop")
READ = Frame("/home/me/data.py", 29, "read_slowly")
CALLBACK, WAITS, READS, RESTS = (
    (SLEEP, LOG, TRAINER),
    (SLEEP, LOADER, TRAINER),
    (READ, WORKER, TRAINER),
    (SLEEP, WORKER, TRAINER),
)


def process(stack, role="main", pid=1, start_s=0.0, end_s=1000.0):
    whole = np.array([start_s]), np.array([end_s]), np.array([1], dtype=np.int32)
    return ProcessStacks(pid, role, *whole, {1: stack})


@pytest.mark.parametrize(
    ("stack", "frame"), [(CALLBACK, LOG), (WAITS, TRAINER), ((SLEEP,), SLEEP), ((), None), ((SLEEP, LOADER), LOADER)]
)
def test_a_location_is_the_innermost_frame_that_is_no_plumbing(stack, frame):
    assert location_of(stack) == frame


def test_a_worker_that_waits_for_work_is_nowhere():
    assert location_of(READS, of_worker=True) == READ
    assert location_of(RESTS, of_worker=True) is None


def analysed(*stacks):
    run = run_of("s-loader-stall")
    return analyse(dataclasses.replace(run, stacks=stacks))


def test_a_drop_names_the_line_that_the_training_stood_in():
    analysis = analysed(process(CALLBACK), process(READS, "worker 0", 2))
    drop = next(f for f in analysis.findings if f.rule == "drop" and not f.expected)
    assert (drop.where[0].function, drop.where[0].line, drop.where[0].share) == ("log_images", 41, 1)
    assert "Look at `log_images` (callbacks.py:41): the GPU was idle for 24 s there." in analysis.verdict.text


def test_while_the_training_waits_for_data_the_workers_lines_come_first():
    analysis = analysed(process(WAITS), process(READS, "worker 0", 2), process(RESTS, "worker 1", 3))
    drop = next(f for f in analysis.findings if f.rule == "drop" and not f.expected)
    assert drop.cause.name == "input-stalled"
    assert [(each.process, each.function) for each in drop.where] == [("workers", "read_slowly"), ("main", "_do_train")]


def test_workers_that_ran_out_of_work_did_nothing_of_interest_before():
    """A thread that sends batches failed: the workers had done what they could, and waited (H200, 2026-11-27)."""
    drop = next(f for f in analysed().findings if f.rule == "drop" and not f.expected)
    start_s, end_s = drop.span
    soon_s = start_s + 0.05 * (end_s - start_s)
    numbers, times = np.array([1, 2], dtype=np.int32), (np.array([0.0, soon_s]), np.array([soon_s, 1000.0]))
    rested = [
        ProcessStacks(pid, f"worker {pid}", *times, numbers, {1: READS, 2: RESTS})
        for pid in range(2, 32)  # with so many there is a second of it
    ]
    drop = next(f for f in analysed(process(WAITS), *rested).findings if f.rule == "drop" and not f.expected)
    assert [each.process for each in drop.where] == ["main"]


def test_without_stacks_all_is_as_it_was():
    assert all(finding.where == () for finding in analysed().findings)
