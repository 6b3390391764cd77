"""The trainer's process tree: what its main process and its workers do, cheaply, from /proc.

A walk of all processes takes milliseconds, reading a known one microseconds: the tree is looked for seldom, and the
known processes are read at each tick.
"""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from gpu_report.record.host.cgroup import CgroupSampler
from gpu_report.record.proc_files import descendants, read_text, stat_fields

LOOK_EVERY_S = 5.0  # workers live for an epoch or for the run; a new one is missed for this long at most ...
LOOK_AGAIN_S = 1.0  # ... and for this long while there is none: a look at a single process costs 10 us
MAX_PROCESSES = 256  # a training on eight GPUs with 16 workers each has 137
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
MIB, PAGE_BYTES = 2**20, os.sysconf("SC_PAGE_SIZE")
# A forked worker has the command line of the process that it was forked from, another one says what it is made by.
SPAWNED = ("multiprocessing.spawn", "multiprocessing.forkserver")
WORKS_PCT = 20.0  # of a core: the clock of one that a process hardly used is that of an idle core
CORE = 36  # of a process's `stat`, from its state on: the core that it ran on last
BLOCKED = "D"
STOPPED = ("T", "t")  # by a signal, by a debugger
OVER = ("Z", "X")  # it has ended, and its parent has not asked how


@dataclass(frozen=True)
class ProcessReading:
    """One process so far: CPU seconds, state, MiB read from storage (None: not ours to see), and four more.

    `programs_s` are the CPU seconds of the programs that it ran and waited for. `major_faults` are the pages of its
    memory that it had to wait for: of a mapped file that was not in memory, or from swap. `memory_mib` is its resident
    memory (RSS), `core` the one that its main thread ran on last.
    """

    cpu_s: float
    state: str
    read_mib: float | None
    programs_s: float = 0.0
    major_faults: int = 0
    memory_mib: float = 0.0
    core: int | None = None


class TrainerTree:
    """The processes of the trainings that are watched."""

    def __init__(
        self, proc: Path = Path("/proc"), affinity: Callable[[int], Collection[int]] = os.sched_getaffinity
    ) -> None:
        self._proc, self._affinity = proc, affinity
        self._cgroup = CgroupSampler(proc)
        self._due_s = 0.0
        self._mains: frozenset[int] = frozenset()
        self._workers: frozenset[int] = frozenset()
        self._seen: dict[int, int] = {}  # when each process began (ticks since boot) that was ever seen here
        self._before: dict[int, ProcessReading] = {}
        self._before_s = 0.0
        self._cpu_pct: float | None = None
        self._busy_cores: frozenset[int] | None = None

    def sample(
        self, mono_s: float, command_pid: int | None, gpu_pids: Callable[[], Collection[int]]
    ) -> dict[str, float | None]:
        """Return the trainer's and its cgroup's columns of schema.HOST_QUANTITIES; empty while there is no trainer."""
        if mono_s >= self._due_s:
            self._find(command_pid, gpu_pids())
            self._due_s = mono_s + (LOOK_EVERY_S if self._workers else LOOK_AGAIN_S)
        looks = {pid: look for pid in self._mains | self._workers if (look := read_process(self._proc, pid))}
        before, elapsed_s = self._before, mono_s - self._before_s
        self._before, self._before_s, self._cpu_pct, self._busy_cores = looks, mono_s, None, None
        cgroup = self._cgroup.sample(mono_s, min(self._mains & looks.keys(), default=None))
        return {**self._columns(before, looks, elapsed_s), **cgroup} if looks and elapsed_s > 0 else {}

    @property
    def cgroup(self) -> Path | None:
        """Return the folder of the trainer's cgroup; None while there is no trainer, and where it has none."""
        return self._cgroup.folder

    @property
    def looks(self) -> dict[int, ProcessReading]:
        """Return what each process was seen to do at the last tick."""
        return self._before

    @property
    def cpu_pct(self) -> float | None:
        """Return the CPU of all of them at the last tick, in % of a core; None where there were not two looks."""
        return self._cpu_pct

    @property
    def busy_cores(self) -> frozenset[int] | None:
        """Return the cores on which those ran that used much of one at the last tick; None where that is not known."""
        return self._busy_cores

    @property
    def mains(self) -> frozenset[int]:
        """Return the main processes: those on a GPU, else the command itself."""
        return self._mains

    @property
    def workers(self) -> frozenset[int]:
        """Return the processes that the main ones started, as far as they are looked at."""
        return self._workers

    def still_running(self) -> frozenset[int]:
        """Return those of all processes that were ever seen here that run still, whoever is their parent by now."""
        return frozenset(pid for pid, started in self._seen.items() if self._started(pid) == started)

    def _started(self, pid: int) -> int | None:
        """Return when a process that runs began, None where it has ended: a number may be another process's by now."""
        try:
            fields = stat_fields(pid, self._proc)
            return None if fields[0] in OVER else int(fields[19])
        except (ValueError, IndexError):
            return None

    def _find(self, command_pid: int | None, gpu_pids: Collection[int]) -> None:
        """Take the processes on a GPU as main ones, the command itself where none is, and look for their workers."""
        family = set(descendants(command_pid, MAX_PROCESSES)) if command_pid is not None else set()
        on_gpu = {pid for pid in gpu_pids if (pid in family or not family) and (self._proc / str(pid)).exists()}
        self._mains = frozenset(on_gpu or family & {command_pid})
        # a command in whose family no GPU is known to be may be a shell: then the trainer itself is among them
        made_by = self._workers_of if on_gpu else self._descendants
        self._workers = frozenset(child for pid in self._mains for child in made_by(pid)) - self._mains
        self._remember()

    def _remember(self) -> None:
        """Keep when each process began that was seen here and runs still."""
        known = {pid: self._seen[pid] for pid in self.still_running()}
        new = (self._mains | self._workers) - known.keys()
        self._seen = known | {pid: started for pid in new if (started := self._started(pid)) is not None}

    def _workers_of(self, main: int) -> list[int]:
        """Return the processes that `multiprocessing` made of a main one; a command that it runs is no loader's."""
        own = self._command_line(main)
        lines = {pid: self._command_line(pid) for pid in self._descendants(main)}
        return [pid for pid, line in lines.items() if line == own or any(word in line for word in SPAWNED)]

    @staticmethod
    def _descendants(pid: int) -> list[int]:
        return descendants(pid, MAX_PROCESSES)

    def _command_line(self, pid: int) -> str:
        return read_text(self._proc / str(pid) / "cmdline")

    def _columns(
        self, before: dict[int, ProcessReading], after: dict[int, ProcessReading], elapsed_s: float
    ) -> dict[str, float | None]:
        known = before.keys() & after.keys()
        cpu = {pid: 100 * (after[pid].cpu_s - before[pid].cpu_s) / elapsed_s for pid in known}
        programs = {pid: _share_of_programs(before[pid], after[pid], elapsed_s) for pid in known & self._workers}
        workers = [cpu[pid] + 100 * share for pid, share in programs.items()]
        self._cpu_pct = sum(cpu.values()) + 100 * sum(programs.values()) if known else None
        worked = {after[pid].core for pid, pct in cpu.items() if pct >= WORKS_PCT}
        self._busy_cores = frozenset(core for core in worked if core is not None) if known else None
        faults = [after[pid].major_faults - before[pid].major_faults for pid in programs]
        alive = [after[pid] for pid in self._workers if pid in after]
        return {
            "main_cpu_pct": max((cpu[pid] for pid in self._mains if pid in cpu), default=None),
            "busiest_worker_cpu_pct": max(workers, default=None),
            "workers_cpu_pct": sum(workers) if workers else None,
            "workers": len(alive),
            "main_cores": self._fewest_cores(self._mains & after.keys()),
            "worker_cores": self._fewest_cores(self._workers & after.keys()),
            "workers_blocked": sum(look.state == BLOCKED for look in alive),
            "workers_major_faults": sum(faults) / elapsed_s if faults else None,
            "trainer_stopped": sum(look.state in STOPPED for look in after.values()),
            "trainer_read_mib_s": _read_rate(before, after, elapsed_s),
            "trainer_memory_mib": sum(look.memory_mib for look in after.values()),
        }

    def _fewest_cores(self, pids: Iterable[int]) -> int | None:
        """Return the least number of cores that one of some processes may run on: a system call of 1 us each."""
        return min((cores for pid in pids if (cores := self._cores(pid)) is not None), default=None)

    def _cores(self, pid: int) -> int | None:
        try:
            return len(self._affinity(pid))
        except OSError:
            return None  # it is gone


def read_process(proc: Path, pid: int) -> ProcessReading | None:
    """Return a look at a process, None when it is gone."""
    try:
        fields = stat_fields(pid, proc)
        # proc_pid_stat(5): user, system, theirs
        faults, ticks = int(fields[9]), [int(field) for field in fields[11:15]]
        memory_mib = int(fields[21]) * PAGE_BYTES / MIB
        core = int(fields[CORE]) if len(fields) > CORE else None
        cpu_s, programs_s = sum(ticks[:2]) / TICKS_PER_S, sum(ticks[2:]) / TICKS_PER_S
    except (ValueError, IndexError):
        return None
    return ProcessReading(cpu_s, fields[0], _read_mib(proc, pid), programs_s, faults, memory_mib, core)


def _share_of_programs(before: ProcessReading, after: ProcessReading, elapsed_s: float) -> float:
    """Return the CPU of the programs that a process ran, 0 to 1: a process waits for one at a time.

    A program is counted when it is over: of one that took longer, what it used before is not of this time.
    """
    return min((after.programs_s - before.programs_s) / elapsed_s, 1.0)


def _read_mib(proc: Path, pid: int) -> float | None:
    try:
        lines = (proc / str(pid) / "io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None  # another user's
    return next((int(line.split()[1]) / MIB for line in lines if line.startswith("read_bytes:")), None)


def _read_rate(before: dict[int, ProcessReading], after: dict[int, ProcessReading], elapsed_s: float) -> float | None:
    known: Iterable[tuple[float | None, float | None]] = (
        (before[pid].read_mib, after[pid].read_mib) for pid in after if pid in before
    )
    read = [now - then for then, now in known if then is not None and now is not None]
    return sum(read) / elapsed_s if read else None
