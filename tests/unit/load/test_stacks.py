"""Stacks as they come back: in order, without what is torn or was made to hang a reader."""

import base64
import json
import tracemalloc
import zlib
from itertools import pairwise

import numpy as np
import pytest

from gpu_report.inside.on_path.gpu_report_inside.notes import LETTERS, Notes
from gpu_report.load import stack_tables, stacks
from gpu_report.load.stacks import load_stacks
from gpu_report.model import Frame, SettingLocation

SLEEP, LOG = ["/usr/lib/python3.11/time.py", 1, "sleep"], ["/home/me/train.py", 9, "log_images"]
NAMES = {
    "files": [0, SLEEP[0], LOG[0]],
    "frames": [0, [0, *SLEEP[1:]], [1, *LOG[1:]]],
    "stacks": [1, [0, 1], [1, 0]],  # 1: log_images, 2: sleep, called from 1
}


def block(mono_s, at, more=None, seconds=5.0, role="main"):
    """Return a block with notes at (milliseconds, place in `used`), of which the stacks are 1 and 2."""
    steps = [now // 50 - before // 50 for (before, _), (now, _) in zip([(0, 0), *at], at, strict=False)]
    letters = "".join("#$%"[place] for _, place in at)
    content = {"step_ms": 50, "used": [1, 1], "at": letters, "steps": steps, **(more or {})}
    packed = zlib.compress(json.dumps(content).encode())
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
    text = block(110, [[0, 1], [2000, 0]], NAMES) + block(115, [[0, 0], [1000, 1]])
    (process,), problems = load(text)
    assert problems == ()
    assert (process.pid, process.role) == (77, "main")
    assert process.start_s.tolist() == [10, 12, 15, 16]
    assert process.end_s.tolist() == [12, 15, 16, 20]
    sleep, log = Frame(*SLEEP), Frame(*LOG)
    assert [process.stacks[number] for number in process.number] == [(sleep, log), (log,), (log,), (sleep, log)]


def test_the_numbers_of_another_process_with_the_same_pid_are_its_own(load):
    other = {**NAMES, "files": [0, "/other.py", "/other.py"]}
    (process,), _ = load(block(110, [[0, 0]], NAMES) + block(120, [[0, 0]], other))
    assert [process.stacks[number][0].file for number in process.number] == [LOG[0], "/other.py"]


@pytest.mark.parametrize(
    "line",
    [
        block(110, [[0, 1]])[:-20],
        '{"wall_s": 1795000110, "mono_s": 110, "kind": "stacks", "role": "main", "seconds": 5, "notes": "====="}\n',
        block(110, [[0, 1]], seconds=1e9),
        block(110, [[0, 1]], role="<script>"),
        block(110, [[0, 1]], {"step_ms": 10**9}),
        json.dumps(
            {**json.loads(block(110, [])), "notes": base64.b64encode(zlib.compress(b"[" * 50_000_000)).decode()}
        ),
    ],
)
def test_what_is_no_block_is_left_out_and_said(load, line):
    (process,), (problem,) = load(block(105, [[0, 1]], NAMES) + line + "\n")
    assert process.start_s.tolist() == [5]
    assert "77.jsonl" in problem


@pytest.mark.parametrize(
    "odd",
    [
        {"steps": [0, "x", 3]},
        {"steps": [0, -5]},
        {"steps": [0, 2**70]},
        {"at": "#\x00#"},
        {"at": "#!#"},
        {"at": "#~~"},
        {"at": [0, 1]},
        {"used": "#"},
        {"used": [2**40]},
        {"files": [0, None, 5], "frames": [0, [9, 9, "x"], None]},
        {"frames": [0, [2**70, 1, "f"], [0, "x", "f"]]},
        {"stacks": [1, [2**70, 1], [-1, 0], None, [1, 99]]},
        {"stacks": "x"},
        {"threads": [[0, 0, 0, 1], [1, 0], [1, 0], [2**70, 0, 0, 1], ["x"], None, [0, 0, 2**70, 2**70], [3, 1, 0, -9]]},
        {"held": [[0, -1, 0], [0, 1], None, [2**70, 1, 1], [0, 2**70, 0]]},
        {"gc": [[0, -1, 1, 0], [0, 1], None, [2**70, 1, 1, 1], [0, 2**70, 1, 1], [0, 20, 2**70, 1], [1, 20, -1, True]]},
        {"gc": "x", "gc_all": [1, -1]},
        {"gc": [[0, 20, 99, 1]], "gc_all": [2**70, 1]},
        {"gc": [[0, 20, 99, 1], [0, 10**9, 1, 0]], "gc_all": [3, 10**9]},
        {"probes": [0, 5, "x"], "ran": "011"},
        {"probes": [0, 2**70], "ran": "0x1"},
        {"probes": "x", "ran": [0, 1]},
    ],
)
def test_odd_notes_are_left_out(load, odd):
    found, _ = load(block(105, [[0, 1]], NAMES) + block(110, [[0, 1], [1000, 0]], odd))
    (process,) = found
    assert process.start_s[0] == 5
    assert set(process.number.tolist()) <= {0, *process.stacks}
    assert all(set(thread.number.tolist()) <= {0, *process.stacks} for thread in process.threads)
    assert all(held.end_t_s <= 15 for held in process.lock_held)
    if process.collections is not None:
        assert process.collections.seconds.max() <= 5
        assert set(process.collections.long.number.tolist()) <= {0, *process.stacks}
        assert (process.collections.long.end_s <= 15).all()


def written(numbers, block_s=20.0, step_s=0.05):
    """Return what a main process writes that stands in so many stacks, one after the other, from 110 s on."""
    notes, text = Notes(step_s), ""
    line = notes.known.frames.find((notes.known.files.find("/home/me/train.py"), 3, "train"))
    for number in range(max(numbers)):
        notes.known._stack((number, line))
    for at, number in enumerate(numbers):
        now_s = 110 + at * step_s
        if notes.seconds(now_s) >= block_s:
            text += notes.block("main", now_s).decode()
            notes.end(now_s)
        notes.note(number, now_s)
        if at % 5 == 0:
            notes.probed(now_s, ran=number % 2 == 0)
    return text + notes.block("main", 110 + len(numbers) * step_s).decode()


@pytest.mark.parametrize("at_once", [1, 1000, 10**9])
def test_what_was_noted_comes_back_however_many_blocks_are_read_at_once(load, monkeypatch, at_once):
    """Of 300 stacks in a block most take three letters."""
    monkeypatch.setattr(stacks, "NOTES_AT_ONCE", at_once)
    numbers = np.random.default_rng(1).integers(1, 3 * len(LETTERS), 4000).tolist()
    (process,), problems = load(written(numbers))
    assert problems == ()
    depth = [len(process.stacks[number]) for number in process.number.tolist()]
    starts = np.round(process.start_s, 6).tolist()
    kept = [at for at, (before, now) in enumerate(pairwise([0, *numbers])) if before != now or at % 400 == 0]
    known = dict(zip(starts, depth, strict=True))
    assert [known[round(10 + at * 0.05, 6)] for at in kept] == [min(numbers[at], stack_tables.DEEPEST) for at in kept]
    assert (process.end_s[:-1] <= process.start_s[1:] + 1e-6).all()
    assert process.probes.ran.tolist() == [number % 2 == 0 for number in numbers[::5]]


def test_a_note_takes_25_bytes_of_memory_and_70_while_it_is_read(tmp_path):
    """It is two times and a number; of the lists that JSON has it in, and of what is worked out, only some are kept."""
    numbers = np.random.default_rng(2).integers(1, 60, 200_000).tolist()
    (tmp_path / "77.jsonl").write_text(written(numbers))
    tracemalloc.start()
    try:
        (process,), _ = load_stacks(tmp_path, Clock(), 1e6)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    count = len(process.number)
    assert count > 190_000
    assert held / count < 25
    assert most / count < 70


def test_what_slows_a_process_for_half_of_the_time_is_known_with_its_line(load):
    place = {"name": "cudnn_benchmark", "file": "/a/embed.py", "line": 21}
    on = {"slow_modes": ["cudnn_benchmark"], "set_in": [place, place, {"name": 7}, 3]}
    glance = {"slow_modes": ["tracemalloc", 5]}
    told = [{}, on, on, glance]
    text = "".join(
        json.dumps(json.loads(block(110 + 5 * number, [[0, 1]], NAMES)) | more) + "\n"
        for number, more in enumerate(told)
    )
    (process,), problems = load(text)
    assert problems == ()
    assert process.slow_modes == {"cudnn_benchmark"}
    assert process.setting_locations == (SettingLocation("cudnn_benchmark", "/a/embed.py", 21),)
