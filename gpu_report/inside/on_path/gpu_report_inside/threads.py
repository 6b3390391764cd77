"""The threads of this process: what the main one used, what others do, and whether one may run at all."""

from __future__ import annotations

import gc
import itertools
import os
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
BUSY_SHARE = 0.1  # of a core, since the look before: a thread that used less CPU kept nobody waiting
# Of the times that a thread asks for the interpreter's lock while it waits: so many, and it waited for that. Beside
# five busy programs on two cores a wait took up to four times as long. A thread without a core asks twice at most.
HELD_SHARE = 0.25
ASKING_SHARE = 0.0003  # of a core: asking for the lock took 0.002 to 0.006 of one, also beside five busy programs
TURN_S = 0.0001  # likewise as a note is due: with 1 ms half of the notes on code of 4 ms fell on what came after it
NO_BEAT_S = 60.0  # then a thread goes on by itself: whoever beat may have ended as it began to wait
# Python 3.11 before 3.11.9 keeps a lock in `sys._current_frames`, and may collect garbage with it: what that runs, or
# another thread meanwhile, may wait for the lock for ever (cpython#106883).
LOCKS_AND_COLLECTS = (3, 11) <= sys.version_info < (3, 11, 9)
THREAD_CLOCK = 6  # of Linux: CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED, beside the thread's number turned over


def frames_of_threads() -> dict[int, FrameType]:
    """Return the innermost frame of each thread of Python, by the thread's identifier."""
    if not LOCKS_AND_COLLECTS or not gc.isenabled():
        return sys._current_frames()
    gc.disable()
    try:
        return sys._current_frames()
    finally:
        gc.enable()


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
        return late_s is not None and self._asked - before >= HELD_SHARE * late_s / TURNS.usual_s()


class Turns:
    """After how long a thread that runs Python lets another one go on (the switch interval), shorter as a note is due.

    It lets go of the lock before that where it reads, writes or calls torch. So with the usual 5 ms a note on code that
    runs for 10 ms mostly falls on what comes after it.
    """

    def __init__(self) -> None:
        self._usual_s: float | None = None

    def shorten(self) -> None:
        """Make turns short, unless somebody has made them so."""
        usual_s = sys.getswitchinterval()
        if usual_s > TURN_S:
            self._usual_s = usual_s
            sys.setswitchinterval(TURN_S)

    def restore(self) -> None:
        """Make them as long as they were, unless somebody else has set them meanwhile."""
        usual_s, self._usual_s = self._usual_s, None
        if usual_s is not None and abs(sys.getswitchinterval() - TURN_S) < TURN_S / 100:
            sys.setswitchinterval(usual_s)

    def usual_s(self) -> float:
        """Return how long they are when no note is due."""
        return sys.getswitchinterval() if self._usual_s is None else self._usual_s


TURNS = Turns()


class MainThread:
    """The main thread, the CPU that it has used, and whether it wants more."""

    def __init__(self) -> None:
        self.ident = threading.main_thread().ident or 0
        self._clock = time.pthread_getcpuclockid(self.ident)  # of another thread, which may end, this can crash
        self._cpu_s = -1.0
        # of a fork, too, where Python still gives the kernel's number that the parent's main thread has
        self._path = f"/proc/self/task/{os.getpid()}/stat"

    def is_runnable(self) -> bool:
        """Tell whether it runs, or would if it had a core; False where the kernel does not say."""
        return _stat(self._path)[:1] == [b"R"]

    def cpu_s(self) -> float:
        """Return how much CPU it has used in all."""
        return time.clock_gettime(self._clock)

    def ran_s(self) -> float:
        """Return how much CPU it has used since it was last asked for."""
        before, self._cpu_s = self._cpu_s, time.clock_gettime(self._clock)
        return self._cpu_s - before


class PythonThreads:
    """The other threads of Python, ours too: who waits for the interpreter's lock beside us may get it before us.

    Then the main thread may have gone on before we see where it stands. Who waits wakes up to ask, which takes CPU.
    """

    def __init__(self, main: MainThread) -> None:
        self._main = main.ident
        self._clocks: list[int] = []
        self._cpu_s: dict[int, float] = {}
        self.find()

    def find(self) -> None:
        """Look which threads there are: one that is found later may have waited."""
        self._clocks = self._all()
        self.look()

    def look(self) -> None:
        """Remember how much CPU each has used."""
        try:
            self._cpu_s = {clock: time.clock_gettime(clock) for clock in self._clocks}
        except OSError:  # not Linux, or a thread is gone
            self._cpu_s = {clock: cpu_s for clock in self._clocks if (cpu_s := _used_s(clock)) is not None}

    def may_have_waited(self, late_s: float) -> bool:
        """Tell whether one may have waited with us, who were late by so long, since that look.

        Ours are woken before a hold, never in it: one that waits does so for all of it, and asks all the time.
        """
        ours = {_clock(each.native_id) for each in _threads() if _name(each).startswith(OURS) and each.native_id}
        for clock in (all_now := self._all()):
            before_s, now_s = self._cpu_s.get(clock), _used_s(clock)
            few = before_s is not None and now_s is not None and now_s - before_s < ASKING_SHARE * late_s
            if before_s != now_s and not (few and clock in ours):
                return True
        return len(all_now) > MOST_THREADS

    def _all(self) -> list[int]:
        """Return the clock of each, of one more than `MOST_THREADS` at most."""
        mine = {self._main, threading.get_ident()}
        others = (each.native_id for each in _threads() if each.ident not in mine)
        return [_clock(native) for native in itertools.islice(others, MOST_THREADS + 1) if native]


class Beat:
    """What wakes threads of ours that look at something again and again: the sampler, between two notes.

    One that woke by itself, while C code kept the interpreter's lock, would wait for it beside the sampler, and might
    get it first. Where nobody beats, each sleeps.
    """

    def __init__(self) -> None:
        self._pid = 0
        self._waiting: list[tuple[float, threading.Lock]] = []

    def start(self) -> None:
        """Beat from now on, in this process."""
        self._pid, self._waiting = os.getpid(), []

    def end(self) -> None:
        """Beat no more: who waits goes on at once."""
        self._pid = 0
        self.now(float("inf"))

    def now(self, mono_s: float) -> None:
        """Wake those whose time has come."""
        for each in [each for each in self._waiting if mono_s >= each[0]]:
            self._waiting.remove(each)
            each[1].release()

    def wait(self, seconds: float) -> None:
        """Wait for so long and up to the beat after that."""
        if self._pid != os.getpid():
            time.sleep(seconds)
            return
        due = threading.Lock()
        due.acquire()
        self._waiting.append((time.monotonic() + seconds, due))
        due.acquire(timeout=NO_BEAT_S)


BEAT = Beat()


class OtherThreads:
    """The other threads of Python, but not ours: of each its name, its stack, by their numbers, and the CPU it used.

    `are_idle`: there are few, and none used much CPU before the last look.
    """

    def __init__(self, notes: Notes, main: MainThread) -> None:
        self._notes, self._main, self._main_thread = notes, main.ident, main
        self._due_s = 0.0
        self._places: dict[int, int] = {}  # a small number for each thread that goes on
        self._looked_s = 0.0
        self._main_cpu_s = 0.0
        self._cpu_s: dict[int, float] = {}  # of each thread at the look before, by the kernel's number of it
        self.are_idle = False  # not known

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

    def note_cpu(self, mono_s: float) -> None:
        """Take in how much CPU each has used since the look before, and the main one."""
        active = getattr(threading, "_active", {})
        natives = {getattr(active.get(ident), "native_id", None): place for ident, place in self._places.items()}
        now = {native: cpu_s for native in natives if native and (cpu_s := _used_s(_clock(native))) is not None}
        used = {natives[native]: cpu_s - self._cpu_s[native] for native, cpu_s in now.items() if native in self._cpu_s}
        main_s, over_s = self._main_thread.cpu_s(), mono_s - self._looked_s
        busy = {place: each_s for place, each_s in used.items() if each_s >= BUSY_SHARE * over_s}
        self.are_idle = bool(self._looked_s) and not busy and len(used) == len(natives) < MOST_THREADS
        if self._looked_s and (used or not natives):
            self._notes.cpu(mono_s, over_s, main_s - self._main_cpu_s, busy)
        self._looked_s, self._main_cpu_s, self._cpu_s = mono_s, main_s, now

    def _named(self, frames: dict[int, FrameType]) -> dict[int, str]:
        threads = getattr(threading, "_active", {})  # without the lock that `enumerate` takes
        named = ((ident, _name(threads.get(ident))) for ident in frames if ident != self._main)
        return dict(itertools.islice((each for each in named if not each[1].startswith(OURS)), MOST_THREADS))

    def _place(self, named: dict[int, str]) -> None:
        """Give each a number that is free."""
        self._places = {ident: place for ident, place in self._places.items() if ident in named}
        taken = set(self._places.values())
        free = (place for place in range(MOST_THREADS) if place not in taken)
        for ident in named:
            if ident not in self._places:
                self._places[ident] = next(free)


def _stat(path: str) -> list[bytes]:
    """Return what the kernel says of a thread, its state first; nothing where it does not, as in a sandbox."""
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - four times a second
            return file.read(400).rpartition(b")")[2].split()
    except OSError:  # not Linux, or the thread is gone
        return []


def _threads() -> list[threading.Thread]:
    """Return all threads of Python, without the lock that `enumerate` takes."""
    return list(getattr(threading, "_active", {}).values())


def _name(thread: threading.Thread | None) -> str:
    """Return what a thread is called, empty of one that Python does not know; a user's class may say anything."""
    return str(getattr(thread, "name", ""))


def _clock(native: int) -> int:
    """Return the clock of the CPU that a thread of this process uses, by the kernel's number of it, on Linux."""
    return (~native << 3) | THREAD_CLOCK


def _used_s(clock: int) -> float | None:
    """Return the CPU that a thread has used by itself, None where nobody says.

    To ask the clock keeps the interpreter's lock and is cheap. To read `/proc` would let go of the lock four times.
    """
    try:
        return time.clock_gettime(clock)
    except OSError:  # not Linux, or the thread is gone
        return None
