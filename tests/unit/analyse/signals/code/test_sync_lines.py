"""The lines of code in which a training waited for its GPU: notes of a process, put on the clock of a real trace."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpu_report.analyse.signals.code.sync_lines import CLOCK_AGREES_S, LEAST_NOTES, sync_lines
from gpu_report.analyse.trace import analyse_trace
from gpu_report.load.trace import load_trace
from gpu_report.model import Frame, WindowLines

TRACE = Path(__file__).resolve().parents[4] / "data" / "traces" / "n-item.json.gz"
AHEAD_S = 1234.5  # of the run's clock before the trace's
MINE, YOLOS = Frame("/work/train.py", 12, "read_norms"), Frame("/x/ultralytics/utils/loss.py", 40, "forward")


@pytest.fixture(scope="module")
def steps():
    return analyse_trace(load_trace(TRACE))


def noted(steps, moments, numbers, step_starts_s=None):
    """Return notes at moments of the trace."""
    starts_s = np.array([step.start_s for step in steps.steps]) if step_starts_s is None else step_starts_s
    stacks = {0: (YOLOS,), 1: (Frame("/x/site-packages/torch/_tensor.py", 5, "norm"), MINE)}
    return WindowLines(np.array(moments) + AHEAD_S, np.array(numbers), stacks.__getitem__, starts_s + AHEAD_S)


def waits(steps, count):
    return steps.sync_spans[:count].mean(axis=1)


def test_the_line_of_the_user_that_waited_most_comes_first(steps):
    moments = np.sort(np.concatenate([waits(steps, 20), steps.sync_spans[:20, 1] + 300e-6]))
    own = np.isin(moments, waits(steps, 15))
    lines = sync_lines(noted(steps, moments, own.astype(int)), steps)
    assert [(line.function, line.line) for line in lines] == [("read_norms", 12), ("forward", 40)]
    assert sum(line.share for line in lines) == pytest.approx(1.0)


def test_notes_outside_of_waits_say_nothing(steps):
    gaps = np.flatnonzero(steps.sync_spans[1:, 0] - steps.sync_spans[:-1, 1] > 200e-6)
    between = (steps.sync_spans[gaps, 1] + steps.sync_spans[gaps + 1, 0]) / 2
    assert len(between) > LEAST_NOTES
    assert sync_lines(noted(steps, between, np.ones(len(between), dtype=int)), steps) == ()


def test_a_few_notes_are_too_few(steps):
    few = LEAST_NOTES - 1
    assert sync_lines(noted(steps, waits(steps, few), [1] * few), steps) == ()


def test_clocks_that_drift_apart_are_not_joined(steps):
    spread = replace(steps, steps=tuple(steps.steps[:1]) * 3)
    starts_s = steps.steps[0].start_s + np.array([0.0, 3.0, 6.0]) * CLOCK_AGREES_S
    assert sync_lines(noted(spread, waits(steps, 20), [1] * 20, starts_s), spread) == ()
    assert sync_lines(noted(steps, waits(steps, 20), [1] * 20, np.zeros(0)), steps) == ()
