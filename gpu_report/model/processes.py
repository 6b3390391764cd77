"""What processes did: where their threads stood, what they waited for, who else used the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu_report.model.code import Stack
from gpu_report.model.time_span import TimeSpan

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from gpu_report.model.inside import SettingLocation


@dataclass(frozen=True)
class ProcessWait(TimeSpan):
    """A wait of the main thread of a process, as the kernel told of it.

    `role` is `main` or `worker`; `state` the kernel's letter, `channel` its function. `call`, `file` (a path, `pipe` or
    `socket`) and `filesystem` (its type) are empty where it waited for no file, or where nobody could look.
    """

    start_t_s: float
    end_t_s: float
    pid: int
    role: str
    state: str
    channel: str = ""
    call: str = ""
    file: str = ""
    filesystem: str = ""


@dataclass(frozen=True)
class OtherProgram(TimeSpan):
    """What a program that is none of the training's used between two looks at all processes, by name and user.

    `user` is a name, else a number, empty where not known; `pid` is the process that used most, of `processes` that
    used any. `cpu_pct` is in % of a core. `shared` is the share (0 to 1) of it by processes that may run on a core of
    the trainer, None where not known.
    """

    start_t_s: float
    end_t_s: float
    name: str
    user: str
    pid: int
    processes: int
    cpu_pct: float
    shared: float | None = None

    @property
    def who(self) -> str:
        """Return its name and its user in words, without what would make code of them, to be copied."""
        name = self.name.replace("`", "'") or "a program"
        return f"{name} of user {self.user.replace('`', chr(39))}" if self.user else name


@dataclass(frozen=True)
class LockHeld(TimeSpan):
    """A stretch in which no thread could run Python: C code kept the interpreter's lock (GIL).

    `cpu_s` is the CPU that the main thread used meanwhile. `number` is the process's stack that called that code, 0
    where it is not known. Where it is that of other holds, it was seen in `seen` of them, of `alike` in all; else 0.
    """

    start_t_s: float
    end_t_s: float
    cpu_s: float
    number: int = 0
    seen: int = 0
    alike: int = 0


@dataclass(frozen=True, eq=False)
class LongCollections:
    """Runs of Python's garbage collector of 10 ms or longer, in order of time: no thread can run Python meanwhile.

    `number` is the process's stack that one began in, 0 where it is not known; `in_main` says that this is the main
    thread's.
    """

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int32]
    in_main: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CollectionCounts:
    """How often Python's garbage collector ran in a process: `count` times from `start_s` to `end_s`, for `seconds`.

    These are stretches of 20 s or less, in order of time. `long` are the runs that are known one by one.
    """

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    count: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]
    long: LongCollections


@dataclass(frozen=True, eq=False)
class ThreadStacks:
    """Where another thread of a process stood, in the process's stacks; seen once a second."""

    name: str
    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class BusyThreads:
    """Looks at which another thread of a process had used a tenth of a core or more, in order of time.

    From `start_s` to `end_s` (s of the run; about a second) it used `cpu_s`, the main thread meanwhile `main_cpu_s`,
    both seconds. In the end it stood in the process's stack of that `number`, 0 where that is not known.
    """

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    cpu_s: npt.NDArray[np.float64]
    main_cpu_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Probes:
    """Looks, for 2 ms each, at whether a main thread used the CPU where it stood: when (s, in order), and whether."""

    at_s: npt.NDArray[np.float64]
    ran: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ProcessStacks:
    """Where the main thread of a process stood: from `start_s` to `end_s` of the run in the stack of that `number`.

    `role` is `main`, `rank N` or `worker N` (of a loader). Of stack 0 nothing is known. A line in which the thread
    stood when C code kept the interpreter's lock (`lock_held`) is the one that had called that code. `probes` are of a
    main process or rank, None in recordings from before there were any; so are `busy_threads`, and `collections` of any
    process. `parent` is the pid of the process that a worker loads for, as far as it is known.
    `slow_modes` is what slowed the whole process for half of the time or more, `setting_locations` where that was set.
    """

    pid: int
    role: str
    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int32]
    stacks: Mapping[int, Stack]
    threads: tuple[ThreadStacks, ...] = ()
    lock_held: tuple[LockHeld, ...] = ()
    probes: Probes | None = None
    parent: int | None = None
    busy_threads: BusyThreads | None = None
    collections: CollectionCounts | None = None
    slow_modes: frozenset[str] = frozenset()
    setting_locations: tuple[SettingLocation, ...] = ()

    @property
    def is_worker(self) -> bool:
        """Return whether this is a worker of a loader, not a main process."""
        return self.role.startswith("worker")


@dataclass(frozen=True, eq=False)
class ProcessDumps:
    """What py-spy saw of the main thread of a process at a few moments (`at_s`, s of the run), while a GPU was idle.

    `stacks` has a stack for each of these, empty where it is not known. `role` is `main` or `worker`, `parent` the main
    process of a worker. There are a few in a drop and none elsewhere: they say where a process was then, never where it
    usually is. So they are no `ProcessStacks`, on which causes are built.
    """

    pid: int
    role: str
    at_s: npt.NDArray[np.float64]
    stacks: tuple[Stack, ...]
    parent: int | None = None

    @property
    def is_worker(self) -> bool:
        """Return whether this is a worker of a loader, not a main process."""
        return self.role == "worker"
