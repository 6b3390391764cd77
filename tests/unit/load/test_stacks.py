"""Stacks as they come back: in order, without what is torn or was made to hang a reader."""

import base64
import json
import zlib

import pytest

from gpu_report.load.stacks import load_stacks
from gpu_report.model import Frame

SLEEP, LOG = [0, "/usr/lib/python3.11/time.py", 1, "sleep"], [1, "/home/me/train.py", 9, "log_images"]


def block(mono_s, at, frames=(), stacks=(), seconds=5.0, role="main"):
    packed = zlib.compress(json.dumps({"frames": frames, "stacks": stacks, "at": at}).encode())
    told = {"wall_s": 1_795_000_000 + mono_s, "mono_s": mono_s, "kind": "stacks", "role": role, "seconds": seconds}
    return json.dumps({**told, "notes": base64.b64encode(packed).decode()}) + "\n"


@pytest.fixture
def load(tmp_path):
    def read(text, name="77.jsonl"):
        (tmp_path / name).write_text(text)
        return load_stacks(tmp_path, Clock(), 1000.0)

    return read


class Clock:
    """A run that began at 100 s of the monotonic clock."""

    def t(self, wall_s, mono_s):
        return mono_s - 100.0


def test_a_later_block_goes_by_the_names_of_those_before_it(load):
    text = block(110, [[0, 1], [2000, 2]], [SLEEP, LOG], [[1, [0, 1]], [2, [1]]]) + block(115, [[0, 2], [1000, 1]])
    (process,), problems = load(text)
    assert problems == ()
    assert (process.pid, process.role) == (77, "main")
    assert process.start_s.tolist() == [10, 12, 15, 16]
    assert process.end_s.tolist() == [12, 15, 16, 20]
    assert process.number.tolist() == [1, 2, 2, 1]
    assert process.stacks[1] == (
        Frame("/usr/lib/python3.11/time.py", 1, "sleep"),
        Frame("/home/me/train.py", 9, "log_images"),
    )


@pytest.mark.parametrize(
    "line",
    [
        block(110, [[0, 1]])[:-20],
        '{"wall_s": 1795000110, "mono_s": 110, "kind": "stacks", "role": "main", "seconds": 5, "notes": "====="}\n',
        block(110, [[0, 1]], seconds=1e9),
        block(110, [[0, 1]], role="<script>"),
        json.dumps(
            {**json.loads(block(110, [])), "notes": base64.b64encode(zlib.compress(b"[" * 50_000_000)).decode()}
        ),
    ],
)
def test_what_is_no_block_is_left_out_and_said(load, line):
    (process,), (problem,) = load(block(105, [[0, 1]], [LOG], [[1, [0]]]) + line + "\n")
    assert process.start_s.tolist() == [5]
    assert "77.jsonl" in problem


def test_odd_notes_are_left_out(load):
    at = [[0, 1], ["x", 1], [-5, 1], [9_000_000, 1], [1000, 2**40], [1000, 1], None]
    (process,), _ = load(block(110, at, [LOG, ["a"], None], [[1, [0, 99, "x"]], [None, []], [2]]))
    assert process.start_s.tolist() == [10, 11]
    assert list(process.stacks) == [1]
