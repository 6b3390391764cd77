"""The threads of this process: what the main one used, what others do, and whether one may run at all."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

    from .notes import Notes

try:
    from resource import RUSAGE_THREAD, getrusage
except ImportError:  # not Linux
    getrusage = None  # type: ignore[assignment]

OURS = "gpu-report"  # how our own threads' names begin
THREADS_EVERY_S = 1.0  # the other threads: who loads to pinned memory, logs or plots
MOST_THREADS = 16  # of those: a process that has hundreds runs none of them in Python
HELD_SHARE = 0.5  # of the times that a thread asks for the interpreter's lock: so many, and it waited for that


class Lock:
    """Whether this thread waited for the interpreter's lock: while it does, it wakes up every few ms to ask for it."""

    def __init__(self) -> None:
        self._asked = self._count()

    @staticmethod
    def _count() -> int:
        return getrusage(RUSAGE_THREAD).ru_nvcsw if getrusage is not None else 0

    def was_held(self, late_s: float | None) -> bool:
        """Tell whether a note was late because nobody let go of the lock (None: it was not late)."""
        before, self._asked = self._asked, self._count()
        return late_s is not None and self._asked - before >= HELD_SHARE * late_s / sys.getswitchinterval()


class MainThread:
    """The main thread, the CPU that it has used, and whether it wants more."""

    def __init__(self) -> None:
        self.ident = threading.main_thread().ident or 0
        self._clock = time.pthread_getcpuclockid(self.ident)  # of another thread, which may end, this can crash
        self._cpu_s = -1.0
        self._path = f"/proc/self/task/{threading.main_thread().native_id}/stat"

    def is_runnable(self) -> bool:
        """Tell whether it runs, or would if it had a core; False where the kernel does not say."""
        try:
            with open(self._path, "rb", buffering=0) as file:  # noqa: PTH123 - four times a second
                return file.read(200).rpartition(b")")[2].split()[0] == b"R"
        except (OSError, IndexError):  # not Linux, or a sandbox
            return False

    def ran_s(self) -> float:
        """Return how much CPU it has used since it was last asked for."""
        before, self._cpu_s = self._cpu_s, time.clock_gettime(self._clock)
        return self._cpu_s - before


class OtherThreads:
    """The other threads of Python, but not ours: of each its name and its stack, by their numbers."""

    def __init__(self, notes: Notes, main: int) -> None:
        self._notes, self._main = notes, main
        self._due_s = 0.0
        self._places: dict[int, int] = {}  # a small number for each thread that goes on

    def due(self, mono_s: float) -> bool:
        """Tell whether to look again."""
        return mono_s >= self._due_s

    def note(self, frames: dict[int, FrameType], mono_s: float) -> None:
        """Take in where they stand."""
        known, named = self._notes.known, self._named(frames)
        self._place(named)
        now = {self._places[ident]: (known.thread(name), known.stack(frames[ident])) for ident, name in named.items()}
        self._notes.threads(now, mono_s)
        self._due_s = mono_s + THREADS_EVERY_S

    def _named(self, frames: dict[int, FrameType]) -> dict[int, str]:
        threads = getattr(threading, "_active", {})  # without the lock that `enumerate` takes
        named = ((ident, str(getattr(threads.get(ident), "name", ""))) for ident in frames if ident != self._main)
        return dict(itertools.islice((each for each in named if not each[1].startswith(OURS)), MOST_THREADS))

    def _place(self, named: dict[int, str]) -> None:
        """Give each a number that is free."""
        self._places = {ident: place for ident, place in self._places.items() if ident in named}
        taken = set(self._places.values())
        free = (place for place in range(MOST_THREADS) if place not in taken)
        for ident in named:
            if ident not in self._places:
                self._places[ident] = next(free)
