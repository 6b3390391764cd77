"""Dumps by py-spy as they come back: on the run's clock, without what is torn or was made to hang a reader."""

import json

import numpy as np
import pytest

from gpu_report.load import dumps
from gpu_report.load.dumps import load_dumps
from gpu_report.load.limits import Limits
from gpu_report.load.stacks import load_stacks
from gpu_report.model import Frame

UPLOAD, MODULE = ["/home/me/train.py", 9, "upload"], ["/home/me/train.py", 21, "<module>"]


class Clock:
    """A run that began at 100 s of the monotonic clock."""

    def t(self, wall_s, mono_s):
        return mono_s - 100.0


def dump(mono_s, stack=1, frames=None, pid=77, role="main", parent=None, **more):
    told = {"wall_s": 1_795_000_000 + mono_s, "mono_s": mono_s, "kind": "dump", "pid": pid, "role": role}
    written = {} if frames is None else {"frames": frames}
    return json.dumps({**told, "parent": parent, "stack": stack, **written, **more}) + "\n"


@pytest.fixture
def load(tmp_path):
    def read(*lines, limits=None):
        (tmp_path / "dumps.jsonl").write_text("".join(lines))
        return load_dumps(tmp_path, Clock(), 1000.0, *([limits] if limits else []))

    return read


def test_a_stack_is_written_out_once_and_known_from_then_on(load):
    (main, worker), problems = load(
        dump(110, frames=[UPLOAD, MODULE]), dump(113), dump(111, pid=78, role="worker", parent=77), dump(115, stack=0)
    )
    assert problems == ()
    assert (main.pid, main.role, main.parent, main.is_worker) == (77, "main", None, False)
    assert main.at_s.tolist() == [10, 13, 15]
    assert main.stacks == ((Frame(*UPLOAD), Frame(*MODULE)),) * 2 + ((),)
    assert (worker.pid, worker.parent, worker.is_worker) == (78, 77, True)


def test_another_recorder_numbers_its_stacks_anew(load):
    ((main,), _) = load(dump(110, frames=[UPLOAD]), dump(120, frames=[MODULE]), dump(121))
    assert [stack[0].line for stack in main.stacks] == [9, 21, 21]


def test_no_file_and_no_folder_are_no_dumps(tmp_path):
    assert load_dumps(tmp_path / "stacks", Clock(), 1000.0) == ((), ())


def test_dumps_are_in_order_of_time_and_within_the_run(load):
    ((main,), _) = load(dump(120, frames=[UPLOAD]), dump(110), dump(50), dump(5000))
    assert main.at_s.tolist() == [10, 20]


@pytest.mark.parametrize(
    "line",
    [
        "torn",
        '{"wall_s": 1',
        dump(110, pid=-1),
        dump(110, pid="77"),
        dump(110, role="admin"),
        dump(110, role=None),
        dump(110, stack=None),
        dump(110, stack=1.5),
        dump(110, kind="stacks"),
    ],
)
def test_a_line_that_is_no_dump_is_left_out_and_said(load, line):
    (main,), (problem,) = load(line.rstrip("\n") + "\n", dump(120, frames=[UPLOAD]))
    assert len(main.at_s) == 1
    assert problem == "stacks/dumps.jsonl: 1 line could not be read and is left out"


@pytest.mark.parametrize("frames", [None, 7, "x", [], [7], [[1, 2, 3]], [["/x.py", "9", "f"]], [["/x.py", 9]], {}])
def test_frames_that_are_none_make_a_dump_of_nothing_known(load, frames):
    ((main,), _) = load(dump(110, frames=frames))
    assert main.stacks == ((),)


def test_what_was_made_to_hang_a_reader_is_bounded(load, monkeypatch):
    monkeypatch.setattr(dumps, "MOST_PROCESSES", 3)
    monkeypatch.setattr(dumps, "MOST_STACKS", 2)
    lines = [dump(110 + n, stack=n, pid=n, frames=[UPLOAD] * 5000) for n in range(1, 9)]
    found, _ = load(*lines)
    assert len(found) == 3
    assert [len(each.stacks[0]) for each in found] == [dumps.DEEPEST, dumps.DEEPEST, 0]
    assert all(np.isfinite(each.at_s).all() for each in found)


def test_of_a_file_that_is_too_large_the_beginning_is_read(load, monkeypatch):
    monkeypatch.setattr(Limits, "stack_bytes", property(lambda _: 400))
    (main,), (problem,) = load(dump(110, frames=[UPLOAD]), *[dump(111 + n) for n in range(50)])
    assert 1 <= len(main.at_s) < 5
    assert problem.startswith("stacks/dumps.jsonl: only the first")


def test_who_reads_the_notes_of_our_hook_reads_no_dumps(load, tmp_path):
    load(dump(110, frames=[UPLOAD]))
    assert load_stacks(tmp_path, Clock(), 1000.0) == ((), ())
