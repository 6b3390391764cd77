"""A thread that notes several times a second in which line of Python this process stands.

Where the GPU had nothing to do, that line is what it waited for. Nothing of the training is touched but Python's switch
interval for a moment (see `Turns`), and nobody waits for this thread. Blocks of notes go to the run folder's
`stacks/<pid>.jsonl`. A main thread that has used no CPU since the note before stands where it stood: then a note costs
no more than waking up.
"""

from __future__ import annotations

import atexit
import os
import threading
import time

from .garbage import COLLECTIONS
from .lines import RUN_FOLDER_VARIABLE, report
from .notes import OTHER, Notes
from .process_modes import ProcessModes
from .process_role import is_child, role
from .threads import BEAT, OURS, TURNS, Lock, MainThread, OtherThreads, PythonThreads, frames_of_threads
from .writer import DraftFile, Writer

FOLDER = "stacks"
OFF_VARIABLE = "GPU_REPORT_STACKS"  # "0": no notes
PERIOD_S = 0.05  # of a main process: a callback of a tenth of a second is seen
UNIT_S = 0.01  # in which times are told
# Notes at even times would meet steps of training that last a whole number of them at the same places for ever. So
# they lie half a period to one and a half apart: multiples of the golden section less whole numbers spread most evenly.
GOLDEN = 0.6180339887498949
WORKER_PERIOD_S = 0.2  # of a loader's worker, of which there are many
BLOCK_S = 20.0  # of notes on a line: in shorter ones its head, and what is repeated in each, take the room
# What has changed is written so often, over what the block said before: so much is lost with a process that is killed.
WRITE_EVERY_S = 2.0
WORKER_WRITE_EVERY_S = 5.0
EXTEND_EVERY_S = 5.0  # a block to which nothing was added
BECOMES_S = 60.0  # a process that has not become a worker or a rank by then (it imports torch first) is none
LATE_PERIODS = 3  # a note later than this has a reason
# A note that waits for the lock falls on the next line that lets go of it, up to Python's 5 ms later. After one that
# came so late, the notes of about a second are taken with short turns, from longer before they are due than that.
BLURRED_S, BLURRED_NOTES, EARLY_S = 0.001, 20, 0.007
PROBE_EVERY = 5  # notes of a main process: four looks a second at whether it uses the CPU where it stands ...
PROBE_S = 0.002  # ... for so long: a thread that computes does so all the time, one that waits not at all


class Sampler:
    """The thread of one process: it notes where the others stand, until the process ends."""

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._writer = Writer(FOLDER, DraftFile)
        self._writing = threading.Lock()
        self._pid, self._parent = os.getpid(), os.getppid()
        self._folder: str | None = None
        self._begin()

    def _begin(self) -> None:
        self._main = MainThread()
        self._notes = Notes(UNIT_S)
        self._others = OtherThreads(self._notes, self._main)
        self._rivals = PythonThreads(self._main)
        self._modes = ProcessModes()
        self._written_s = time.monotonic()
        self._unprobed = 0  # notes since the last look at the CPU
        self._probed_s = 0.0  # CPU that the main thread used in it
        self._at_once = False  # the note before came without a rest
        self._blurred = 0  # notes to come until those that had to wait for the lock are forgotten

    def start(self) -> None:
        """Begin to note."""
        threading.Thread(target=self._run, name=f"{OURS}-stacks", daemon=True).start()

    def _run(self) -> None:
        try:
            atexit.register(self._at_exit)
            BEAT.start()
            COLLECTIONS.start()
            self._sample()
        except BaseException as error:  # noqa: BLE001 - also while the interpreter shuts down: nobody may hear of it
            report("stacks", error)
        TURNS.restore()
        BEAT.end()
        COLLECTIONS.end()
        atexit.unregister(self._at_exit)  # which would keep all that was noted
        _STARTED.end()

    def _sample(self) -> None:
        lock, due_s, number, count = Lock(), time.monotonic(), 0, 0
        while True:
            now_s = time.monotonic()
            late_s = now_s - due_s if self._is_late(now_s - due_s) else None
            held, ran_s = lock.was_held(late_s), self._main.ran_s() + self._probed_s
            looks = self._others.due(now_s) or held
            if ran_s or looks:
                frames = frames_of_threads()
                number = self._notes.known.stack(frames.get(self._main.ident)) if ran_s else number
                if looks:
                    self._others.note(frames, now_s)
                del frames  # what stands in them must not live on because we looked
            TURNS.restore()
            if looks and self._period_s < WORKER_PERIOD_S:
                self._others.note_cpu(now_s)
            if held and late_s is not None:
                # Whoever held the lock went on in no other line, unless another thread got it before us.
                unsure = bool(ran_s) and self._rivals.may_have_waited(late_s)
                self._notes.note(OTHER if unsure else number, due_s)
                self._notes.held(due_s, late_s, ran_s)
            self._notes.note(number, now_s)
            self._note_collections()
            if looks:
                self._rivals.find()
            BEAT.now(now_s)
            self._probe(now_s, ran_s, due=not held)
            if not self._write(now_s):
                return
            count += 1
            due_s = max(due_s + (0.5 + later(count)) * self._period_s, now_s)  # one that comes late is not made up for
            self._rest(due_s)

    def _note_collections(self) -> None:
        for each in COLLECTIONS.long():
            number = self._notes.known.stack_of(each.places)
            self._notes.collected(each.mono_s, each.seconds, number, in_main=each.thread == self._main.ident)
        self._notes.collections(COLLECTIONS.so_far)

    def _rest(self, due_s: float) -> None:
        """Sleep until the next note is due.

        Who took the lock while we were at something else, and kept it, stands in that line until we let go of it: then
        the next note comes at once, but not twice in a row.
        """
        left_s = due_s - time.monotonic()
        self._at_once = self._is_late(-left_s) and not self._at_once
        if not self._at_once:
            self._rivals.look()
            self._sleep(due_s)

    def _sleep(self, due_s: float) -> None:
        """Sleep until then. Where notes had to wait for the lock, wake before, and make turns short.

        Only where no other thread works in Python: it would be stopped more often, too.
        """
        early_s = EARLY_S if self._blurred and self._others.are_idle else 0.0
        time.sleep(max(due_s - early_s - time.monotonic(), 0.001))
        now_s = time.monotonic()
        self._blurred = BLURRED_NOTES if now_s - due_s + early_s >= BLURRED_S else max(self._blurred - 1, 0)
        if now_s < due_s and early_s:
            TURNS.shorten()
            time.sleep(due_s - now_s)

    def _is_late(self, late_s: float) -> bool:
        return late_s > LATE_PERIODS * self._period_s

    def _probe(self, now_s: float, ran_s: float, *, due: bool) -> None:
        """Look now and then whether the main thread uses the CPU where it was noted; `ran_s` since the note before."""
        self._probed_s, self._unprobed = 0.0, self._unprobed + 1
        if not due or self._unprobed < PROBE_EVERY or self._period_s >= WORKER_PERIOD_S:
            return
        self._unprobed, began_s = 0, time.monotonic()
        if not ran_s:
            self._notes.probed(now_s, ran=self._main.is_runnable())
            return
        noting_s = self._main.ran_s()
        time.sleep(PROBE_S)
        used_s, lasted_s = self._main.ran_s(), time.monotonic() - began_s
        self._probed_s = noting_s + used_s
        if self._is_late(lasted_s):  # the lock was kept: to ask the kernel would let go of it
            return
        # On a full machine who computes has no core for a while. Who waits for the interpreter's lock sleeps.
        self._notes.probed(now_s, ran=used_s >= lasted_s / 2 or self._main.is_runnable())

    def _write(self, now_s: float) -> bool:
        """Write the block where that is due; return whether to go on."""
        if self._is_late(time.monotonic() - now_s):  # the lock was kept in our probe: to pack would let go of it
            return True
        full, often = self._notes.seconds(now_s) >= BLOCK_S, self._often()
        if not full and now_s - self._written_s < (often if self._notes.changed else EXTEND_EVERY_S):
            return True
        folder, name = os.environ.get(RUN_FOLDER_VARIABLE), role()
        if not folder or name is None:
            return bool(folder) and self._notes.seconds(now_s) < BECOMES_S
        if self._folder not in {None, folder}:  # another recording: what was named in the one before is not known there
            self._begin()
            COLLECTIONS.start()
            self._folder = folder
            return True
        self._folder = folder
        self._period_s = WORKER_PERIOD_S if name.startswith("worker") else PERIOD_S
        with self._writing:
            if full or self._writer.is_idle:  # a disk that does not keep up gets whole blocks only
                self._writer.put(folder, self._block(name, now_s, draft=not full), draft=not full)
            self._written_s = now_s
            if full:
                self._notes.end(now_s)
        return True

    def _block(self, name: str, now_s: float, *, draft: bool) -> bytes:
        if name.startswith("worker"):
            return self._notes.block(name, now_s, self._parent, draft=draft)
        return self._notes.block(name, now_s, draft=draft, **self._modes.now())

    def _often(self) -> float:
        return WRITE_EVERY_S if self._period_s < WORKER_PERIOD_S else WORKER_WRITE_EVERY_S

    def _at_exit(self) -> None:
        """Write what is left: the interpreter ends, and with it this thread."""
        try:
            COLLECTIONS.end()
            folder, name, now_s = os.environ.get(RUN_FOLDER_VARIABLE), role(), time.monotonic()
            mine = self._pid == os.getpid() and folder == (self._folder or folder)
            if mine and folder and name is not None and self._writing.acquire(timeout=1):
                self._writer.put(folder, self._block(name, now_s, draft=True), draft=True)
                self._writer.drain()  # with the lock: nothing may follow
        except Exception as error:  # noqa: BLE001 - the process is ending
            report("stacks", error)


def later(number: int) -> float:
    """Return how much later than half a period after the one before a note lies, in periods (0 to 1), by its number."""
    return number * GOLDEN % 1


def start() -> None:
    """Begin to note in this process, once, and in the workers that it forks; never raises."""
    try:
        if os.environ.get(OFF_VARIABLE) != "0" and _STARTED.add():
            Sampler(WORKER_PERIOD_S if is_child() else PERIOD_S).start()
            _STARTED.follow_forks()
    except Exception as error:  # noqa: BLE001 - a training without our notes is better than none
        report("stacks", error)


class _NotingProcess:
    """The process in which noting has begun: a fork begins anew."""

    def __init__(self) -> None:
        self._pid = 0
        self._follows = False

    def add(self) -> bool:
        """Return whether it had not begun in this process."""
        begun, self._pid = self._pid == os.getpid(), os.getpid()
        return not begun

    def end(self) -> None:
        """Let it begin again: `attach` may record another training in this process."""
        self._pid = 0

    def follow_forks(self) -> None:
        """Have each fork of this process begin, too."""
        if not self._follows:
            self._follows = True
            os.register_at_fork(after_in_child=_in_child)


_STARTED = _NotingProcess()


def _in_child() -> None:
    try:
        TURNS.restore()
        if os.environ.get(OFF_VARIABLE) != "0" and _STARTED.add():
            Sampler(WORKER_PERIOD_S).start()
    except Exception as error:  # noqa: BLE001 - the loader must go on
        report("stacks", error)
