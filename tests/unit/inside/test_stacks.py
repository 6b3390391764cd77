"""The notes of where a process stands: what a block holds, and that nothing of ours reaches the training."""

import base64
import json
import os
import sys
import threading
import time
import zlib

import pytest

from gpu_report.inside.on_path.gpu_report_inside import stacks
from tests.conftest import wait_for


def content(line):
    """Return a block's line, and what is packed in it."""
    told = json.loads(line)
    return told, json.loads(zlib.decompress(base64.b64decode(told["notes"])))


def here():
    """Stand in a line, with nothing around it: the frame of a generator that waits."""

    def stands():
        yield

    waiting.append(stands())
    next(waiting[-1])
    return waiting[-1].gi_frame


waiting = []


def test_a_stack_is_written_once_and_then_only_when_it_changes():
    notes = stacks.Notes()
    same = here()
    for at_s in (10.0, 10.05, 10.1):
        notes.note(same, at_s)
    notes.note(None, 10.2)
    told, packed = content(notes.block("main", 15.0))
    assert (told["mono_s"], told["seconds"], told["role"]) == (10.0, 5.0, "main")
    assert [number for _, number in packed["at"]] == [1, 2]
    assert [at_ms for at_ms, _ in packed["at"]] == [0, 200]
    number, frames = packed["stacks"][0]
    first = next(frame for frame in packed["frames"] if frame[0] == frames[0])
    assert (number, first[1], first[3]) == (1, __file__, "stands")
    notes.note(same, 15.05)
    _, second = content(notes.block("main", 20.0))
    assert (second["frames"], second["stacks"]) == ([], [])
    assert second["at"] == [[0, 2], [50, 1]]


def test_more_stacks_than_there_can_be_are_not_told_apart(monkeypatch):
    monkeypatch.setattr(stacks, "MOST_STACKS", 1)
    notes = stacks.Notes()
    notes.note(here(), 1.0)
    notes.note(sys._getframe(), 1.1)
    _, packed = content(notes.block("main", 2.0))
    assert [number for _, number in packed["at"]] == [1, stacks.OTHER]


def test_a_deep_stack_is_cut_at_its_outer_end():
    def deep(levels):
        return sys._getframe() if not levels else deep(levels - 1)

    notes = stacks.Notes()
    notes.note(deep(200), 1.0)
    _, packed = content(notes.block("main", 2.0))
    assert len(packed["stacks"][0][1]) == stacks.DEEPEST


def test_a_thread_notes_where_the_main_thread_stands(tmp_path, monkeypatch):
    monkeypatch.setenv("GPU_REPORT_RUN_FOLDER", str(tmp_path))
    monkeypatch.setattr(stacks, "BLOCK_S", 0.3)
    before = threading.active_count()
    stacks.Sampler(0.02).start()
    file = tmp_path / "stacks" / f"{os.getpid()}.jsonl"
    end = time.monotonic() + 5
    while not file.exists() and time.monotonic() < end:
        time.sleep(0.05)
    told, packed = content(file.read_text().splitlines()[0])
    names = {frame[3] for frame in packed["frames"]}
    assert "test_a_thread_notes_where_the_main_thread_stands" in names
    assert told["role"] == "main"
    monkeypatch.delenv("GPU_REPORT_RUN_FOLDER")  # its end: nobody records any more
    wait_for(lambda: threading.active_count() <= before + 1)  # the writer's waits for ever, as a daemon


@pytest.mark.parametrize("fault", ["_current_frames", "getpid"])
def test_a_fault_of_ours_is_no_fault_of_the_training(monkeypatch, fault):
    def broken(*_):
        raise MemoryError

    monkeypatch.setattr(sys if fault == "_current_frames" else os, fault, broken)
    monkeypatch.setattr(stacks, "report", lambda *_: None)
    stacks.start()
    stacks._in_child()


def test_it_can_be_turned_off(monkeypatch):
    monkeypatch.setenv(stacks.OFF_VARIABLE, "0")
    monkeypatch.setattr(stacks, "Sampler", lambda *_: pytest.fail("noted all the same"))
    stacks.start()
    stacks._in_child()
