"""What each process of the training waits for, where that lasts: a file, a lock, a network, for the kernel's word.

/proc tells of the main thread of a process its state, the function of the kernel in which it sleeps, and the system
call that it is in. A file is named by the link that the kernel keeps and never touched: its filesystem may hang.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu_report.record.clocks import Clocks
from gpu_report.record.host.system_calls import UNNAMED, Filesystems, call_of, file_of, shown
from gpu_report.record.host.trainer_processes import BLOCKED, TICKS_PER_S, ProcessReading
from gpu_report.record.proc_files import read_text
from gpu_report.run_folder import Value

RUNNING = "R"
# A wait for anything but a file is told once it has lasted so long without the process using any CPU: a worker whose
# queue is full, and a main process that waits for one, wait shorter in steady training.
WAIT_S = 5.0
# Of a core, since the look before, and one tick of the kernel's clock: other threads of a process that waits use that
# much, ours among them.
REST_SHARE = 0.05
CLOCK_TICK_S = 1 / TICKS_PER_S
TELL_AGAIN = 2.0  # times as long: a recorder that is killed has told of half of a wait
ROWS_PER_MINUTE = 30  # of 80 bytes: 3.5 MB a day; a storage-bound loader has more, and a sample of them is enough
WINDOW_S = 60.0
# Where the kernel's function says that it is no file: there is no need to look for one.
NO_FILE = (
    *("futex", "hrtimer", "do_wait", "ep_poll", "do_epoll", "poll_schedule", "do_select", "do_sys_poll", "do_poll"),
    *("sigsuspend", "do_sigtimedwait"),
)

Write = Callable[[Clocks, Mapping[str, Value]], object]


@dataclass(frozen=True)
class WaitPlace:
    """What a process waits for: `call` and `file` where it is in a system call on one."""

    state: str
    channel: str
    call: str = ""
    file: str = ""
    filesystem: str = ""

    @property
    def is_file(self) -> bool:
        """Tell whether it is a file on a filesystem, or a device that cannot be interrupted."""
        return self.state == BLOCKED or (bool(self.file) and self.file not in UNNAMED)

    def goes_on(self, other: "WaitPlace") -> bool:
        """Tell whether another place is the same wait: of files the filesystem counts, images are read one by one."""
        if self.is_file and other.is_file:
            return (self.call, self.filesystem) == (other.call, other.filesystem)
        return self == other


@dataclass
class Wait:
    """A wait that goes on: since when, and how often and for how long it has been told."""

    place: WaitPlace
    since: Clocks
    last_s: float
    cpu_s: float
    told_s: float = 0.0

    @property
    def seconds(self) -> float:
        """Return how long it has lasted at the last look."""
        return self.last_s - self.since.mono_s


class ProcessWaits:
    """Looks at the trainer's processes at each tick, and writes down what they wait for."""

    def __init__(self, write: Write, proc: Path = Path("/proc")) -> None:
        self._write, self._proc = write, proc
        self._filesystems = Filesystems(proc)
        self._waits: dict[int, Wait] = {}
        self._before_s: float | None = None
        self._window_s, self._rows = float("-inf"), 0

    def look(
        self, at: Clocks, looks: Mapping[int, ProcessReading], mains: frozenset[int], *, last: bool = False
    ) -> None:
        """Take in where processes are; with `last` what goes on is written, too."""
        tick_s = 0.0 if self._before_s is None else at.mono_s - self._before_s
        self._before_s = at.mono_s
        if at.mono_s - self._window_s >= WINDOW_S:
            self._window_s, self._rows = at.mono_s, 0
        for pid in [pid for pid in self._waits if pid not in looks]:
            self._tell(pid, self._waits.pop(pid), mains)
        for pid, look in looks.items():
            self._take(pid, look, at, tick_s, mains)
        if last:
            for pid, wait in self._waits.items():
                self._tell(pid, wait, mains)

    def _take(self, pid: int, look: ProcessReading, at: Clocks, tick_s: float, mains: frozenset[int]) -> None:
        place = None if look.state == RUNNING else self._place(pid, look.state)
        wait = self._waits.get(pid)
        if wait is not None and place is not None and wait.place.goes_on(place) and _rests(wait, look, tick_s):
            wait.last_s, wait.cpu_s = at.mono_s, look.cpu_s
            if wait.seconds >= max(WAIT_S, TELL_AGAIN * wait.told_s):
                self._tell(pid, wait, mains)
            return
        if wait is not None:
            if wait.place.is_file:  # it ended somewhere in this tick
                wait.last_s += tick_s / 2
            self._tell(pid, self._waits.pop(pid), mains)
        if place is not None:
            self._waits[pid] = Wait(place, at, at.mono_s, look.cpu_s)

    def _place(self, pid: int, state: str) -> WaitPlace:
        channel = read_text(self._proc / str(pid) / "wchan").strip()
        channel = "" if channel == "0" else channel
        if channel.startswith(NO_FILE):
            return WaitPlace(state, channel)
        call, descriptor = call_of(self._proc, pid)
        file = file_of(self._proc, pid, descriptor) if descriptor is not None else ""
        on_disk = bool(file) and file not in UNNAMED
        return WaitPlace(state, channel, call, file, self._filesystems.type_of(file, pid) if on_disk else "")

    def _tell(self, pid: int, wait: Wait, mains: frozenset[int]) -> None:
        """Write a wait that is worth it; of one that was told before, how long it lasted in the end."""
        worth = wait.seconds > 0 if wait.place.is_file else wait.seconds >= WAIT_S
        if not worth or wait.seconds <= wait.told_s:
            return
        if not wait.told_s:
            if self._rows >= ROWS_PER_MINUTE:
                return
            self._rows += 1
        wait.told_s, place = wait.seconds, wait.place
        who = {"pid": pid, "role": "main" if pid in mains else "worker", "seconds": round(wait.seconds, 3)}
        what = {"state": place.state, "channel": place.channel, "call": place.call}
        self._write(wait.since, {**who, **what, "file": shown(place.file), "filesystem": place.filesystem})


def _rests(wait: Wait, look: ProcessReading, tick_s: float) -> bool:
    """Tell whether a process has not gone on meanwhile: one that reads files uses CPU for what it has read."""
    return wait.place.is_file or look.cpu_s - wait.cpu_s <= REST_SHARE * tick_s + CLOCK_TICK_S
