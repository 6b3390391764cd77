"""All processes at one moment, and the CPU that each used between two moments: from /proc, 20 us a process."""

import os
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gpu_report.record.proc_files import read_text

STAT_BYTES = 1024  # 52 fields, of which the first 22 are read
KERNEL_THREADS = 2  # their parent (kthreadd); in a container this number is another process's
INIT = 1  # reaps orphans: their CPU is no work of its own
DEEPEST = 64  # generations of processes that are looked through


class ProcessEntry(NamedTuple):
    """A process so far: its program's name, parent, start, and CPU, all times in the kernel's ticks.

    `reaped` is the CPU of the processes that it started and that are over, as far as it asked how they ended.
    """

    name: str
    parent: int
    started: int
    own: int
    reaped: int


class Used(NamedTuple):
    """The CPU ticks of a process between two moments: its own, and of others that it started and that are over."""

    own: int
    reaped: int


Table = Mapping[int, ProcessEntry]


def read_processes(proc: Path = Path("/proc")) -> dict[int, ProcessEntry]:
    """Return the processes that may be seen here, without threads of the kernel."""
    folder, skipped = str(proc), _kernel_threads(proc)
    pids = [name for name in os.listdir(folder) if name.isdigit() and name not in skipped]  # noqa: PTH208 - quicker
    found = ((int(pid), _process(_stat(f"{folder}/{pid}/stat"))) for pid in pids)
    return {pid: process for pid, process in found if process is not None}


def used_between(before: Table, after: Table) -> dict[int, Used]:
    """Return what each process of `after` used since `before`.

    A short process that was never seen is its parent's, once that has reaped it. What the parent reaps of one that was
    seen is no news: only what it used since is.
    """
    told = defaultdict[int, int](int)
    for was in (process for pid, process in before.items() if not _goes_on(pid, before, after)):
        told[_heir(was.parent, before, after)] += was.own + was.reaped
    used = {}
    for pid, process in after.items():
        was_own, was_reaped = before[pid][-2:] if _goes_on(pid, before, after) else (0, 0)
        reaped = 0 if pid == INIT else max(process.reaped - was_reaped - told[pid], 0)
        used[pid] = Used(process.own - was_own, reaped)
    return used


def family_of(roots: Mapping[int, int | None], table: Table) -> set[int]:
    """Return processes and what they started; `roots` are pids, with the start of each where it is known."""
    children = defaultdict[int, list[int]](list)
    for pid, process in table.items():
        children[process.parent].append(pid)
    todo = [pid for pid, started in roots.items() if pid in table and started in {None, table[pid].started}]
    found = set(todo)
    while todo:
        new = [child for child in children[todo.pop()] if child not in found]
        found.update(new)
        todo += new
    return found


def _goes_on(pid: int, before: Table, after: Table) -> bool:
    """Tell whether a number is the same process's at both moments."""
    return pid in before and pid in after and before[pid].started == after[pid].started


def _heir(pid: int, before: Table, after: Table) -> int:
    """Return the nearest process from a parent upwards that still runs: what has ended below it, it has reaped."""
    for _ in range(DEEPEST):
        if pid not in before or _goes_on(pid, before, after):
            break
        pid = before[pid].parent
    return pid


def _kernel_threads(proc: Path) -> set[str]:
    """Return the pids of the kernel's threads, most processes of a large machine: one file names them all."""
    of = proc / str(KERNEL_THREADS)
    if read_text(of / "comm").strip() != "kthreadd":
        return set()
    return {str(KERNEL_THREADS), *read_text(of / "task" / str(KERNEL_THREADS) / "children").split()}


def _stat(path: str) -> bytes:
    """Return a process's `stat`, empty when it is gone; pathlib takes as long again as this."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        return os.read(file, STAT_BYTES)
    except OSError:
        return b""
    finally:
        os.close(file)


def _process(stat: bytes) -> ProcessEntry | None:
    """Return the process that a `stat` is of (proc_pid_stat(5)), None of one that is gone."""
    head, _, rest = stat.rpartition(b")")  # the name may hold anything, parentheses too
    try:
        fields = rest.split(None, 20)
        user, system, reaped_user, reaped_system = map(int, fields[11:15])
        name = head.partition(b"(")[2].decode("utf-8", "replace")
        return ProcessEntry(name, int(fields[1]), int(fields[19]), user + system, reaped_user + reaped_system)
    except (ValueError, IndexError):
        return None
