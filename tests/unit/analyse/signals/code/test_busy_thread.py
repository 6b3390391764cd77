"""Which thread beside the main one kept Python busy, by the CPU of both, else by where it stood."""

import dataclasses

import numpy as np
import pytest

from gpu_report.analyse.signals.code.busy_thread import ThreadProfile
from gpu_report.model import BusyThreads, Frame, ProcessStacks, ThreadStacks

BEGAN = Frame("/usr/lib/python3.12/threading.py", 1073, "_bootstrap_inner")
RUNS = (Frame("/home/u/extras.py", 61, "run"), BEGAN)
ASKS = (Frame("/home/u/extras.py", 62, "run", "pop"), BEGAN)
PINS = (Frame("/x/site-packages/torch/utils/data/_utils/pin_memory.py", 52, "_pin_memory_loop"), BEGAN)
STACKS = {1: RUNS, 2: ASKS, 3: PINS, 4: (Frame("/home/u/train.py", 5, "main", "conv2d"),)}


def process(*looks, threads=()):
    """A main process with looks (start, CPU of a thread, of the main one, stack) of a second each; None: none noted."""
    noted = np.arange(2) * 50.0
    columns = np.array(looks, dtype=float).reshape(-1, 4).T
    busy = BusyThreads(columns[0], columns[0] + 1, columns[1], columns[2], columns[3].astype(np.int32))
    return ProcessStacks(
        7, "main", noted, noted + 50, np.full(2, 4), STACKS, threads, busy_threads=None if threads else busy
    )


def looks(seconds, cpu_s, main_s, number=1):
    return [(float(at), cpu_s, main_s, number) for at in range(seconds)]


def test_a_thread_that_computes_while_the_main_one_hardly_runs_kept_it_waiting():
    found = ThreadProfile(process(*looks(10, 0.9, 0.05))).within([(0.0, 10.0)])
    assert found.line == Frame("/home/u/extras.py", 61, "run")
    assert (found.share, found.main_share) == (pytest.approx(0.9), pytest.approx(0.05))


@pytest.mark.parametrize(
    "seen",
    [
        (),
        looks(10, 0.9, 0.95),  # it computes without the lock: the main thread has a core of its own
        looks(4, 0.95, 0.05),  # in less than half of the time
        [*looks(10, 0.3, 0.05), *looks(10, 0.3, 0.05, number=3)],  # two threads, neither of which takes half
    ],
)
def test_else_none_did(seen):
    assert ThreadProfile(process(*seen)).within([(0.0, 10.0)]) is None


def test_its_lines_are_counted_together_and_the_one_of_most_is_named():
    found = ThreadProfile(process(*looks(4, 0.9, 0.0), *[(float(at), 0.9, 0.0, 2) for at in range(4, 10)]))
    assert found.within([(0.0, 10.0)]).line.line == 62
    assert found.within([(0.0, 4.0), (20.0, 21.0)]).share == pytest.approx(3.6 / 5)


def test_the_line_in_which_it_sleeps_is_not_the_one_that_keeps_python_busy():
    STACKS[5] = (Frame("/home/u/extras.py", 63, "run", "sleep"), BEGAN)
    seen = [*looks(6, 0.9, 0.0, number=5), *[(float(at), 0.9, 0.0, 1) for at in range(6, 10)]]
    assert ThreadProfile(process(*seen)).within([(0.0, 10.0)]).line.line == 61
    assert ThreadProfile(process(*looks(10, 0.9, 0.0, number=5))).within([(0.0, 10.0)]).line.line == 63


def thread(*stays, name="Thread"):
    start, end, number = np.array(stays, dtype=float).T
    return ThreadStacks(name, start, end, number.astype(np.int32))


def test_without_its_cpu_it_is_one_that_stood_in_your_own_python_at_most_looks():
    found = ThreadProfile(process(threads=(thread((0, 8, 1), (8, 10, 2)),))).within([(0.0, 10.0)])
    assert (found.line.line, found.share, found.main_share) == (61, pytest.approx(0.8), None)
    assert ThreadProfile(process(threads=(thread((0, 10, 2)),))).within([(0.0, 10.0)]) is None  # in C, which may wait
    assert ThreadProfile(process(threads=(thread((0, 10, 3)),))).within([(0.0, 10.0)]) is None  # none of the user's


def test_where_no_stack_says_what_it_calls_nobody_knows_who_waits():
    silent = {number: tuple(each._replace(called="") for each in stack) for number, stack in STACKS.items()}
    old = dataclasses.replace(process(threads=(thread((0, 10, 1)),)), stacks=silent)
    assert ThreadProfile(old).within([(0.0, 10.0)]) is None
