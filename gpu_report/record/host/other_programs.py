"""Which programs of others use the CPU while the training is not alone: by name and user, never a command line.

A look at all processes is dear (6 ms for 300 of them, 60 for 3,000), so that there is none while others use hardly any
CPU, and looks are as far apart as their own cost asks for.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from gpu_report.record.clocks import Clocks
from gpu_report.record.host.process_table import Table, Used, family_of, read_processes, used_between
from gpu_report.record.host.trainer_processes import TICKS_PER_S
from gpu_report.record.host.user_names import UserNames
from gpu_report.record.proc_files import read_text
from gpu_report.run_folder import Value
from gpu_report.without_secrets import safe_text

OTHERS_PCT = 100.0  # of a core that others use: less slows no training, but on a machine with few cores ...
OTHERS_SHARE = 0.25  # ... where this share of all of them is less
EVERY_S = 6.0  # ten looks a minute with three programs each are 30 rows of 70 bytes: 3 MB in a day that others work all
SECOND_LOOK_S = 2.0  # after the first one, which says nothing alone: others came a moment ago
COST_SHARE = 0.002  # of a core, for all looks
MOST_PROGRAMS = 3
LEAST_SHARE = 0.1  # of the CPU of all others: a smaller program is no reason for anything

Write = Callable[[Clocks, Mapping[str, Value]], object]
Program = tuple[str, int | None]  # its name, and its user's number: None where that could not be read


@dataclass(frozen=True)
class Machine:
    """What the last tick said of the CPU: of all cores, and of the training, both in % of a core; None: not known."""

    cores: int
    busy_pct: float | None
    training_pct: float | None

    @property
    def others_pct(self) -> float | None:
        """Return what others used."""
        if self.busy_pct is None or self.training_pct is None:
            return None
        return self.busy_pct - self.training_pct


@dataclass
class _Sum:
    """What the processes of one program used, in ticks, each with its pid."""

    by_pid: dict[int, float]

    @property
    def ticks(self) -> float:
        return sum(self.by_pid.values())


class OtherPrograms:
    """Is asked at each tick, looks at all processes now and then, and writes down who used most CPU between looks."""

    def __init__(
        self,
        write: Write,
        proc: Path = Path("/proc"),
        affinity: Callable[[int], Collection[int]] = os.sched_getaffinity,
        names: UserNames | None = None,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self._write, self._proc, self._affinity, self._cpu_s = write, proc, affinity, cpu_s
        self._names = names or UserNames()
        self._before: Table | None = None
        self._before_s = self._tick_s = 0.0
        self._others_s = 0.0  # CPU of all others since the look before
        self._next_s = self._paid_s = float("-inf")  # the next look; when the looks so far cost no more than they may
        self._ours: Mapping[int, int] = {}
        self._users: dict[tuple[int, int], int | None] = {}  # by pid and start

    def look(self, at: Clocks, machine: Machine, roots: Collection[int], trainer: Collection[int]) -> None:
        """Take in a tick. `roots` and what they started is the training; `trainer` are those that need its cores."""
        tick_s, self._tick_s = at.mono_s - self._tick_s, at.mono_s
        others_pct = machine.others_pct
        if not roots or others_pct is None or others_pct < min(OTHERS_PCT, 100 * OTHERS_SHARE * machine.cores):
            self._before, self._next_s = None, max(self._next_s, self._paid_s)
            return
        self._others_s += others_pct / 100 * tick_s
        if at.mono_s >= self._next_s:
            began_s, is_first = self._cpu_s(), self._before is None
            self._look(at, roots, trainer)
            self._paid_s = max(self._paid_s, at.mono_s) + (self._cpu_s() - began_s) / COST_SHARE
            self._next_s = at.mono_s + SECOND_LOOK_S if is_first else max(at.mono_s + EVERY_S, self._paid_s)

    def _look(self, at: Clocks, roots: Collection[int], trainer: Collection[int]) -> None:
        table = read_processes(self._proc)
        ours = family_of({**self._ours, **dict.fromkeys((*roots, os.getpid()))}, table)
        self._ours = {pid: table[pid].started for pid in ours}  # also of one whose parent ends
        before, since_s, others_s = self._before, self._before_s, self._others_s
        self._before, self._before_s, self._others_s = table, at.mono_s, 0.0
        if before is None or at.mono_s <= since_s:
            return
        used = {pid: used for pid, used in used_between(before, table).items() if pid not in ours}
        seconds, cores = at.mono_s - since_s, self._cores_of(trainer)
        for program, found in self._largest(_ticks(used, others_s * TICKS_PER_S), table, others_s * TICKS_PER_S):
            self._write(at, {"seconds": seconds, **self._row(program, found, cores, seconds)})

    def _largest(self, ticks: Mapping[int, float], table: Table, of_all: float) -> list[tuple[Program, _Sum]]:
        """Return the programs that used most, by name and user, each with what its processes used."""
        programs = defaultdict[Program, _Sum](lambda: _Sum({}))
        for pid, used in ticks.items():
            programs[table[pid].name, self._user_of(pid, table[pid].started)].by_pid[pid] = used
        self._users = {key: uid for key, uid in self._users.items() if key[0] in ticks}
        ranked = sorted(programs.items(), key=lambda each: -each[1].ticks)
        return [each for each in ranked[:MOST_PROGRAMS] if each[1].ticks >= LEAST_SHARE * of_all]

    def _row(self, program: Program, found: _Sum, cores: Collection[int], seconds: float) -> dict[str, Value]:
        (name, uid), ticks = program, found.ticks
        shared = [used for pid, used in found.by_pid.items() if not self._cores_of([pid]).isdisjoint(cores)]
        return {
            "name": safe_text(name),
            "user": "" if uid is None else self._names.of(uid),
            "pid": max(found.by_pid, key=lambda pid: found.by_pid[pid]),
            "processes": len(found.by_pid),
            "cpu_pct": 100 * ticks / TICKS_PER_S / seconds,
            "on_trainer_cores_pct": 100 * sum(shared) / ticks if cores else None,
        }

    def _user_of(self, pid: int, started: int) -> int | None:
        """Return the number of a process's real user, asked for once: `status` costs as much as all else of it."""
        if (pid, started) not in self._users:
            lines = read_text(self._proc / str(pid) / "status").splitlines()
            words = next((line.split() for line in lines if line.startswith("Uid:")), [])
            self._users[pid, started] = int(words[1]) if len(words) > 1 and words[1].isdigit() else None
        return self._users[pid, started]

    def _cores_of(self, pids: Collection[int]) -> set[int]:
        """Return the cores that any of some processes may run on; one that is gone counts for none."""
        cores: set[int] = set()
        for pid in pids:
            try:
                cores.update(self._affinity(pid))
            except OSError:
                continue
        return cores


def _ticks(used: Mapping[int, Used], of_all: float) -> dict[int, float]:
    """Return the ticks of each process that used any, with those of processes that it started and that are over.

    A process may reap at once what others used for hours: all together is no more than others used by the machine's
    own count (`of_all`).
    """
    own, reaped = (sum(each[at] for each in used.values()) for at in (0, 1))
    share = min(max(of_all - own, 0.0) / reaped, 1.0) if reaped else 0.0
    ticks = {pid: each.own + share * each.reaped for pid, each in used.items()}
    return {pid: used for pid, used in ticks.items() if used > 0}
