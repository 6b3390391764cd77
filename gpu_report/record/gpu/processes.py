"""Which processes are on a GPU and whose they are, as changes from one look to the next."""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pynvml

from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_text
from gpu_report.record.gpu.nvml_quantities import MIB, NEVER
from gpu_report.record.gpu.process_owners import UNKNOWN, Owners, TrainerHints

CHANGED_SHARE = 0.05  # a process's memory is written down again when it moved by more than this share ...
CHANGED_MIB = 64.0  # ... or by this much: a caching allocator moves in blocks of 2 to 20 MiB all the time
CHANGED_UTIL_PCT = (
    20.0  # its utilisation, when it moved by more points than this: 5 s means of one training stay within
)
UTIL_ROWS_A_LOOK = 4  # so many rows a GPU and look at most for utilisation alone: 60 bytes a second
PYTHON = "python"


@dataclass(frozen=True)
class Seen:
    """A process as written down: name, owner (schema.PROCESS_OWNERS), memory in MiB and utilisation where known."""

    name: str
    owner: str
    memory_mib: float | None
    util_pct: float | None


@dataclass(frozen=True)
class ProcessChange:
    """A process that appeared on a GPU, changed its memory, its utilisation or its owner, or went."""

    gpu: int
    pid: int
    seen: Seen
    change: str

    def as_row(self) -> dict[str, str | float | int | None]:
        """Return it as processes.csv holds it."""
        return {
            "gpu": self.gpu,
            "pid": self.pid,
            "name": self.seen.name,
            "memory_used_mib": self.seen.memory_mib,
            "change": self.change,
            "owner": self.seen.owner,
            "gpu_util_pct": self.seen.util_pct,
        }


@dataclass
class ProcessWatch:
    """The processes of one GPU as last written down."""

    gpu: int
    owners: Owners = field(default_factory=Owners)
    known: dict[int, Seen] = field(default_factory=dict)
    _used_hints: TrainerHints | None = None

    def update(self, found: Mapping[int, float | None], used: Mapping[int, float] | None = None) -> list[ProcessChange]:
        """Return what changed since the look before: `found` is MiB by pid (None: unknown), `used` utilisation in %.

        A process that `used` does not name keeps the utilisation that it had.
        """
        gone = [self._forget(pid) for pid in sorted(self.known.keys() - found.keys())]
        owners = self._owners(found.keys())
        looks = {pid: self._look(pid, found[pid], owners.get(pid), (used or {}).get(pid)) for pid in sorted(found)}
        news = [pid for pid, look in looks.items() if self._is_news(pid, look)]
        news += self._moved_most(looks, news)
        changes = [
            ProcessChange(self.gpu, pid, looks[pid], "changed" if pid in self.known else "appeared")
            for pid in sorted(news)
        ]
        self.known.update((change.pid, change.seen) for change in changes)
        return gone + changes

    def _forget(self, pid: int) -> ProcessChange:
        return ProcessChange(self.gpu, pid, replace(self.known.pop(pid), memory_mib=None, util_pct=None), "gone")

    def _owners(self, pids: Set[int]) -> dict[int, str]:
        """Return all owners when a process is new, or more is known of the training than before; else none."""
        known = self.owners.known  # read once: the scheduler may replace it meanwhile
        again, self._used_hints = self._used_hints != known, known
        return self.owners.of(pids, self.gpu) if again or pids - self.known.keys() else {}

    def _look(self, pid: int, memory_mib: float | None, owner: str | None, util_pct: float | None) -> Seen:
        before = self.known.get(pid)
        if before is None:
            return Seen(process_name(pid), owner or UNKNOWN, memory_mib, util_pct)
        return Seen(before.name, owner or before.owner, memory_mib, before.util_pct if util_pct is None else util_pct)

    def _is_news(self, pid: int, look: Seen) -> bool:
        before = self.known.get(pid)
        return before is None or before.owner != look.owner or _moved(before.memory_mib, look.memory_mib)

    def _moved_most(self, looks: Mapping[int, Seen], written: Sequence[int]) -> list[int]:
        """Return the few processes whose utilisation moved most, beyond those that are reported anyway."""
        moved = {pid: self._points_moved(pid, look) for pid, look in looks.items() if pid not in written}
        most = sorted(moved, key=lambda pid: -moved[pid])[:UTIL_ROWS_A_LOOK]
        return [pid for pid in most if moved[pid] > CHANGED_UTIL_PCT]

    def _points_moved(self, pid: int, look: Seen) -> float:
        """Return by how many points its utilisation moved; without end when it was not known before."""
        before = self.known[pid].util_pct
        if look.util_pct is None:
            return 0.0
        return math.inf if before is None else abs(look.util_pct - before)


def read_processes(handle: Any) -> dict[int, float | None]:
    """Return device memory in MiB by pid, of compute and graphics processes.

    NVMLError when a list fails, or the device supports neither: with half of them, those of the other would be gone.
    """
    found: dict[int, float | None] = {}
    errors = []
    calls = (pynvml.nvmlDeviceGetComputeRunningProcesses, pynvml.nvmlDeviceGetGraphicsRunningProcesses)
    for call in calls:
        try:
            processes = call(handle)
        except pynvml.NVMLError as error:
            if error.value not in NEVER:
                raise
            errors.append(error)
            continue
        for process in processes:
            memory = None if process.usedGpuMemory is None else process.usedGpuMemory / MIB
            found[process.pid] = max(filter(None, (found.get(process.pid), memory)), default=memory)
    if len(errors) == len(calls):
        raise errors[0]
    return found


def process_name(pid: int, proc: Path = Path("/proc")) -> str:
    """Return a short name (`python train.py`), empty when the pid is not visible here (another namespace).

    A process may have written anything over its own name, such as its whole command line in one word.
    """
    try:
        words = (proc / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        name = Path(hide_in_text(words[0])).name
        if name.startswith(PYTHON) and len(words) > 1 and words[1] and not words[1].startswith("-"):
            return f"{name} {Path(words[1]).name}"
        return name or (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _moved(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(after - before) > min(CHANGED_MIB, CHANGED_SHARE * before)
