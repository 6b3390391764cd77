"""Where the training stands while the profiler runs: noted in the process, and read from the line that says so."""

import sys
import time
from collections import Counter
from types import SimpleNamespace as Some

import pytest

from gpu_report.inside.on_path.gpu_report_inside import compiled
from gpu_report.inside.on_path.gpu_report_inside.profiler.lines import WindowNotes
from gpu_report.load.yolo.callback_lines import CallbackLine
from gpu_report.load.yolo.profiler_windows import profiler_windows

STEP_S = 0.15


def window(**said):
    """Return the window that a line of a process tells, whose monotonic clock the run's clock is."""
    now_s = time.monotonic()
    content = {"kind": "profile", "name": "7-1", "phase": "train", "begin_mono_s": now_s - 1, "mono_s": now_s, **said}
    (found,) = profiler_windows([CallbackLine(now_s, "profile", content)])
    return found


def first_wait():
    time.sleep(STEP_S)


def second_wait():
    time.sleep(STEP_S)


def noted():
    lines = WindowNotes()
    lines.start()
    began_s = time.monotonic()
    first_wait()
    second_wait()
    lines.stop()
    return lines.told(), began_s


def test_each_note_has_its_moment_and_the_stack_of_the_training():
    told, began_s = noted()
    lines = window(starts_mono_s=[began_s], **told).lines
    assert lines.step_starts_s.tolist() == pytest.approx([began_s])
    functions = [lines.stack(number)[0].function for number in lines.number.tolist()]
    assert set(Counter(functions)) >= {"first_wait", "second_wait"}
    for at_s, function in zip(lines.at_s.tolist(), functions, strict=True):
        if 0.01 < at_s - began_s < STEP_S - 0.01:
            assert function == "first_wait"
        elif STEP_S + 0.01 < at_s - began_s < 2 * STEP_S - 0.01:
            assert function == "second_wait"


def test_where_nothing_was_noted_there_is_none():
    assert window().lines is None
    assert window(**WindowNotes().told(), starts_mono_s=[]).lines is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"lines": "no base 64"},
        {"lines": 7},
        {"lines_mono_s": "soon"},
        {"starts_mono_s": [1.0, None]},
        {"starts_mono_s": "now"},
    ],
)
def test_what_cannot_be_read_is_left_out_and_the_window_stays(wrong):
    told, began_s = noted()
    found = window(**{**told, "starts_mono_s": [began_s], **wrong})
    assert (found.name, found.lines) == ("7-1", None)


def test_what_torch_compile_made_is_counted(monkeypatch):
    assert (compiled.graphs(), compiled.breaks()) == (None, [])
    resumes = Counter({"torch_dynamo_resume_in_look_at_boxes_at_88": 4, "other": 1})
    counters = {"stats": Counter(unique_graphs=3), "resumes": resumes}
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", Some(counters=counters))
    assert (compiled.graphs(), compiled.breaks()) == (3, ["look_at_boxes at 88"])
    counters["stats"].clear()
    assert (compiled.graphs(), compiled.breaks()) == (None, [])
