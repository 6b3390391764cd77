"""A thread that notes several times a second in which line of Python this process stands.

Where the GPU had nothing to do, that line is what it waited for. A note costs 50 to 80 us; nothing of the training is
touched, and nobody waits for this thread. Blocks of notes go to the run folder's `stacks/<pid>.jsonl`, compressed: a
code object's file, line and name once, each stack once, and then only when the stack changed.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
import time
import zlib
from typing import TYPE_CHECKING, Any

from .lines import RUN_FOLDER_VARIABLE, report
from .writer import Writer

if TYPE_CHECKING:
    from types import CodeType, FrameType

FOLDER = "stacks"
OFF_VARIABLE = "GPU_REPORT_STACKS"  # "0": no notes
PERIOD_S = 0.05  # of a main process: a callback of a tenth of a second is seen
WORKER_PERIOD_S = 0.2  # of a loader's worker, of which there are many
BLOCK_S = 5.0  # so much is lost at most with a process that is killed
DEEPEST = 64  # frames of a stack, counted from the innermost
MOST_STACKS = 5000  # different ones of a process: more are a program that recurses, and are not told apart
OTHER = 0  # the number of those


class Notes:
    """The notes of one process that have not been written yet, and the numbers of all that it has seen."""

    def __init__(self) -> None:
        self._frames: dict[Any, int] = {}
        self._stacks: dict[Any, int] = {}
        self._kept: list[CodeType] = []  # so that no other code object gets the id of one that is gone
        self._new_frames: list[Any] = []
        self._new_stacks: list[Any] = []
        self._at: list[Any] = []
        self._begun = (0.0, 0.0)
        self._last = -1

    def note(self, frame: FrameType | None, mono_s: float) -> None:
        """Take in where a thread stands; only where that is not where it stood before, there is something to write."""
        if not self._begun[1]:
            self._begun = (time.time(), mono_s)
        number = self._number(frame)
        if number != self._last:
            self._at.append([round(1000 * (mono_s - self._begun[1])), number])
            self._last = number

    def due(self, mono_s: float) -> bool:
        """Tell whether a block is full."""
        return bool(self._begun[1]) and mono_s - self._begun[1] >= BLOCK_S

    def block(self, role: str, mono_s: float) -> bytes:
        """Return the notes up to now as a line, and begin a new block."""
        wall_s, begun_s = self._begun
        content = {"frames": self._new_frames, "stacks": self._new_stacks, "at": self._at}
        packed = base64.b64encode(zlib.compress(json.dumps(content).encode(), 6)).decode("ascii")
        line = {"wall_s": round(wall_s, 6), "mono_s": round(begun_s, 6), "kind": "stacks", "role": role}
        line.update(seconds=round(mono_s - begun_s, 3), notes=packed)
        last, self._new_frames, self._new_stacks = self._last, [], []
        self._begun, self._at = (time.time(), mono_s), [[0, last]]
        return (json.dumps(line) + "\n").encode("ascii")

    def _number(self, frame: FrameType | None) -> int:
        """Return the number of a stack, innermost frame first."""
        places: list[tuple[CodeType, int]] = []
        while frame is not None and len(places) < DEEPEST:
            places.append((frame.f_code, frame.f_lineno))
            frame = frame.f_back
        key = tuple((id(code), line) for code, line in places)
        number = self._stacks.get(key)
        if number is None:
            if len(self._stacks) >= MOST_STACKS:
                return OTHER
            number = self._stacks[key] = len(self._stacks) + 1
            self._new_stacks.append([number, [self._frame(code, line) for code, line in places]])
        return number

    def _frame(self, code: CodeType, line: int) -> int:
        place = (id(code), line)
        number = self._frames.get(place)
        if number is None:
            number = self._frames[place] = len(self._frames)
            self._kept.append(code)
            self._new_frames.append([number, code.co_filename, line, code.co_name])
        return number


class Sampler:
    """The thread of one process: it notes where the main thread stands, until the process ends."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._notes = Notes()
        self._writer = Writer(FOLDER)

    def start(self) -> None:
        """Begin to note."""
        threading.Thread(target=self._run, name="gpu-report-stacks", daemon=True).start()

    def _run(self) -> None:
        try:
            self._sample(threading.main_thread().ident or 0)
        except BaseException as error:  # noqa: BLE001 - also while the interpreter shuts down: nobody may hear of it
            report("stacks", error)

    def _sample(self, thread: int) -> None:
        due_s = time.monotonic()
        while True:
            now_s = time.monotonic()
            self._notes.note(sys._current_frames().get(thread), now_s)
            if self._notes.due(now_s):
                folder = os.environ.get(RUN_FOLDER_VARIABLE)
                role = _role()
                if not folder or role is None:
                    return
                self._writer.put(folder, self._notes.block(role, now_s))
            due_s = max(due_s + self._period_s, now_s)  # one that comes late is not made up for
            time.sleep(max(due_s - time.monotonic(), 0.001))


def start() -> None:
    """Begin to note in this process, once, and in the workers that it forks; never raises."""
    try:
        if os.environ.get(OFF_VARIABLE) != "0" and _STARTED.add():
            Sampler(PERIOD_S).start()
            os.register_at_fork(after_in_child=_in_child)
    except Exception as error:  # noqa: BLE001 - a training without our notes is better than none
        report("stacks", error)


class _Started:
    """The process in which noting has begun: a fork begins anew."""

    def __init__(self) -> None:
        self._pid = 0

    def add(self) -> bool:
        """Return whether it had not begun in this process."""
        begun, self._pid = self._pid == os.getpid(), os.getpid()
        return not begun


_STARTED = _Started()


def _in_child() -> None:
    try:
        if os.environ.get(OFF_VARIABLE) != "0" and _STARTED.add():
            Sampler(WORKER_PERIOD_S).start()
    except Exception as error:  # noqa: BLE001 - the loader must go on
        report("stacks", error)


def _role() -> str | None:
    """Return what this process is: `main`, `rank N`, `worker N`, or None for a fork that is none of them."""
    module = sys.modules.get("torch.utils.data._utils.worker")
    info = getattr(module, "_worker_info", None)
    if info is not None:
        return f"worker {info.id}"
    process = sys.modules.get("multiprocessing.process")
    if process is not None and getattr(process, "parent_process", lambda: None)() is not None:
        return None
    rank = os.environ.get("RANK", "-1")
    return f"rank {rank}" if rank.isdigit() and os.environ.get("WORLD_SIZE", "1") != "1" else "main"
