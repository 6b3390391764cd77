"""A thread beside the main one that computes in Python for most of an interval."""

import dataclasses

import numpy as np
import pytest
from support.stacks import LOG, SELECT, TRAINER, TRAINS, process

from gpu_report.analyse.signals.busy_threads import BusyThreads
from gpu_report.model import Frame, ThreadStacks

RUN = Frame("/usr/lib/python3.11/threading.py", 982, "run")
WORKS, ELSEWHERE, WAITS, SLEEPS = (
    (LOG, RUN),
    (dataclasses.replace(LOG, line=44), RUN),
    (SELECT, LOG, RUN),
    (dataclasses.replace(LOG, called="sleep"), RUN),
)


def threads(*stays, role="main"):
    """Return a process whose other thread stood in some stacks."""
    main = process((0, 100, TRAINS), *stays, role=role)
    starts, ends = (np.array([stay[i] for stay in stays], dtype=float) for i in (0, 1))
    other = ThreadStacks("statistics", starts, ends, main.number[1:])
    return BusyThreads([dataclasses.replace(main, threads=(other,))])


def test_a_function_counts_over_all_its_lines_and_is_named_at_the_worst():
    busy = threads((0, 40, WORKS), (40, 60, ELSEWHERE), (60, 80, WORKS)).within([(0, 100)])
    assert (busy.name, busy.line.function, busy.line.line) == ("statistics", "log_images", LOG.line)
    assert busy.share == pytest.approx(0.8)


def test_only_the_time_within_counts():
    busy = threads((0, 40, WORKS)).within([(30, 50), (60, 80)])
    assert busy.share == pytest.approx(10 / 40)


@pytest.mark.parametrize("stack", [WAITS, SLEEPS, (TRAINER, RUN)])
def test_a_thread_that_waits_or_is_not_in_the_users_code_does_not_compute(stack):
    assert threads((0, 100, stack)).within([(0, 100)]) is None


def test_a_thread_of_a_worker_keeps_no_training_waiting():
    assert threads((0, 100, WORKS), role="worker 0").within([(0, 100)]) is None
