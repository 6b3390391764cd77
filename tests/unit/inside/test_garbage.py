"""Collections of Python's garbage collector: counted, timed and placed, and nothing of ours reaches the training."""

import ctypes
import gc
import signal
import subprocess
import sys
import threading
import time
import types
import weakref

import numpy as np
import pytest

from gpu_report.inside.on_path.gpu_report_inside import garbage, threads
from gpu_report.inside.on_path.gpu_report_inside.notes import Dictionary, Notes
from gpu_report.load.stacks import load_stacks
from tests.conftest import REPOSITORY, clean_environment, wait_for

ON_PATH = REPOSITORY / "gpu_report" / "inside" / "on_path"
OBJECTS = 400_000  # take 20 ms and more to look through


@pytest.fixture
def collections():
    """Count collections, of which none comes by itself, and nobody else is told: hypothesis is, in Python."""
    others = gc.callbacks[:]
    gc.callbacks.clear()
    gc.disable()
    made = garbage.CollectionCounter()
    made.start()
    yield made
    gc.enable()
    gc.callbacks[:] = others


@pytest.fixture
def much():
    """Have so much alive that a collection takes long."""
    return [[number] for number in range(OBJECTS)]


def cleans():
    began_s = time.monotonic()
    gc.collect()
    return began_s, time.monotonic() - began_s


def test_each_collection_is_counted_and_a_long_one_is_told_with_its_line(collections, much):
    gc.collect(0)
    before, _ = collections.so_far
    began_s, took_s = cleans()
    for _ in range(9):
        gc.collect(0)
    count, seconds = collections.so_far
    assert count == before + 10
    (long,) = [each for each in collections.long() if each.mono_s >= began_s]
    assert long.mono_s == pytest.approx(began_s, abs=0.005)
    assert long.seconds == pytest.approx(took_s, rel=0.2, abs=0.005)
    assert long.seconds <= seconds
    assert long.thread == threading.get_ident()
    assert [each.f_code.co_name for each in long.places[:2]] == ["cleans", sys._getframe().f_code.co_name]
    assert long.places[0].f_lineno == cleans.__code__.co_firstlineno + 2
    assert collections.long() == []


def test_its_stack_is_the_one_that_a_note_in_that_line_has(collections, much):
    known = Dictionary()
    here = known.stack(sys._getframe())
    cleans()
    number = known.stack_of(collections.long()[-1].places)
    frames = known.frames.new()
    assert known.stack_of([]) == 0  # of none nothing is known
    assert number not in {0, here}
    assert "collect" in [frame[3] for frame in frames[1:] if len(frame) > 3] or sys.version_info < (3, 11)


def test_one_in_another_thread_is_told_as_its(collections, much):
    thread = threading.Thread(target=cleans)
    thread.start()
    ident = thread.ident
    thread.join()
    (long,) = collections.long()
    assert (long.thread, long.places[0].f_code.co_name) == (ident, "cleans")


def test_a_thread_of_c_that_has_no_line_is_told_without_one(much):
    """It has one here, of what ctypes calls; but nobody can ask without an error where there may be none."""
    collections, done = garbage.CollectionCounter(), []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    def cleans_in_c(_):
        cleans()
        done.append(threading.get_ident())

    collections.start()
    thread = ctypes.c_void_p()
    ctypes.PyDLL(None).pthread_create(ctypes.byref(thread), None, cleans_in_c, None)
    wait_for(lambda: done)
    collections.end()
    assert [(each.thread, each.places) for each in collections.long()] == [(done[0], [])]


def test_ctrl_c_in_a_collection_ends_the_training(collections, much):
    """A callback of Python would be the first to see it, and Python drops what a callback raises."""

    def ctrl_c(*_):
        raise InterruptedError

    before = signal.signal(signal.SIGALRM, ctrl_c)
    met = 0
    try:
        for late_s in np.linspace(0.001, 0.015, 8).tolist():
            with pytest.raises(InterruptedError):  # noqa: PT012 - it comes in one of these
                signal.setitimer(signal.ITIMER_REAL, late_s)
                gc.collect()
                time.sleep(1)
            met += len(collections.long())
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert met > 0


def test_no_frame_lives_on(collections, much):
    class Big:
        pass

    def has():
        big = Big()
        cleans()
        return weakref.ref(big)

    assert has()() is None
    assert collections.long()


def test_those_that_nobody_takes_are_few(collections, much, monkeypatch):
    monkeypatch.setattr(garbage, "MOST_LONG", 2)
    collections.start()
    for _ in range(3):
        cleans()
    assert len(collections.long()) == 2
    assert collections.so_far[0] == 3


def test_it_begins_once_and_ends_without_a_trace():
    before = list(gc.callbacks)
    collections = garbage.CollectionCounter()
    collections.start()
    collections.start()
    assert len(gc.callbacks) == len(before) + 1
    collections.end()
    collections.end()
    assert gc.callbacks == before


LOOKS = """
import gc, sys, threading
sys.path.insert(0, sys.argv[1])
from gpu_report_inside import garbage, threads
def works():
    while True:
        [[] for _ in range(100)]
garbage.LONG_NS = 0
collections = garbage.CollectionCounter()
collections.start()
for _ in range(3):
    threading.Thread(target=works, daemon=True).start()
gc.set_threshold(1)
for _ in range(300):
    sys._current_frames()
gc.collect()
assert collections.so_far[0]
"""


def test_one_that_a_look_at_all_threads_brings_about_ends():
    subprocess.run([sys.executable, "-c", LOOKS, ON_PATH], check=True, timeout=60)


SCRIPT = """
import gc, os, sys, threading, time
sys.path.insert(0, sys.argv[1])
from gpu_report_inside import stacks
def cleans():
    gc.collect()
def runs():
    gc.disable()
    cleans()
    for _ in range(100):
        gc.collect(0)
    thread = threading.Thread(target=cleans)
    thread.start()
    thread.join()
    time.sleep(0.3)
much = [[number] for number in range(1_000_000)]
stacks.start()
sys.modules["torch"] = sys
time.sleep(0.3)
if os.fork():
    os.wait()
runs()
"""


def test_a_process_and_its_fork_tell_their_own(tmp_path):
    env = {**clean_environment(), "GPU_REPORT_RUN_FOLDER": str(tmp_path)}
    subprocess.run([sys.executable, "-c", SCRIPT, ON_PATH], env=env, check=True, timeout=60)
    processes, problems = load_stacks(tmp_path / "stacks", _Clock(), 1e9)
    assert (len(processes), problems) == (2, ())
    for process in processes:
        found = process.collections
        assert 102 <= found.count.sum() < 150
        long = found.long
        assert found.seconds.sum() >= (long.end_s - long.start_s).sum() * 0.9
        assert [process.stacks[number][0].function for number in long.number] == ["cleans", "cleans"]
        assert long.in_main.tolist() == [True, False]
        assert (long.end_s - long.start_s).min() > 0.03
        assert np.all(np.diff(found.start_s) > 0)
        assert process.stacks[long.number[0]][-1].file == "<string>"


class _Clock:
    def t(self, wall_s, mono_s):
        return mono_s


def test_of_an_interpreter_without_counts_nothing_is_told(monkeypatch):
    monkeypatch.setattr(sys, "implementation", types.SimpleNamespace(name="pypy"))
    collections = garbage.CollectionCounter()
    collections.start()
    assert collections.so_far is None
    notes = Notes(0.01)
    notes.note(1, 1.0)
    notes.collections(None)
    assert "gc_all" not in notes._content()
    notes.collections((3, 0.5))
    assert notes._content()["gc_all"] == [3, 500]


@pytest.mark.parametrize("collects", [True, False])
def test_no_garbage_is_collected_in_a_look_at_all_threads_that_keeps_a_lock(monkeypatch, collects):
    seen = []
    monkeypatch.setattr(threads, "LOCKS_AND_COLLECTS", True)
    monkeypatch.setattr(sys, "_current_frames", lambda: seen.append(gc.isenabled()) or {})
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        assert threads.frames_of_threads() == {}
        assert (seen, gc.isenabled()) == ([False], collects)
    finally:
        (gc.enable if before else gc.disable)()
