"""Which processes are on a GPU, as changes from one look to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pynvml

from gpu_report.record.quantities import MIB

CHANGED_SHARE = 0.05  # a process's memory is written down again when it moved by more than this share ...
CHANGED_MIB = 64.0  # ... or by this much: a caching allocator moves in blocks of 2 to 20 MiB all the time
PYTHON = "python"


@dataclass(frozen=True)
class ProcessChange:
    """A process that appeared on a GPU, changed its memory, or went."""

    gpu: int
    pid: int
    name: str
    memory_used_mib: float | None
    change: str

    def as_row(self) -> dict[str, str | float | int | None]:
        """Return it as processes.csv holds it."""
        return {
            "gpu": self.gpu,
            "pid": self.pid,
            "name": self.name,
            "memory_used_mib": self.memory_used_mib,
            "change": self.change,
        }


@dataclass
class ProcessWatch:
    """The processes of one GPU as last written down."""

    gpu: int
    known: dict[int, tuple[str, float | None]] = field(default_factory=dict)

    def update(self, found: Mapping[int, float | None]) -> list[ProcessChange]:
        """Return what changed since the look before; `found` is MiB by pid, None where the driver does not say."""
        gone = [self._forget(pid) for pid in sorted(self.known.keys() - found.keys())]
        return gone + [change for pid in sorted(found) for change in self._see(pid, found[pid])]

    def _forget(self, pid: int) -> ProcessChange:
        name, _ = self.known.pop(pid)
        return ProcessChange(self.gpu, pid, name, None, "gone")

    def _see(self, pid: int, memory_mib: float | None) -> list[ProcessChange]:
        if pid not in self.known:
            name, change = process_name(pid), "appeared"
        else:
            name, before = self.known[pid]
            change = "changed"
            if not _moved(before, memory_mib):
                return []
        self.known[pid] = name, memory_mib
        return [ProcessChange(self.gpu, pid, name, memory_mib, change)]


def read_processes(handle: Any) -> dict[int, float | None]:
    """Return device memory in MiB by pid, of compute and graphics processes; NVMLError when neither can be read."""
    found: dict[int, float | None] = {}
    errors = []
    calls = (pynvml.nvmlDeviceGetComputeRunningProcesses, pynvml.nvmlDeviceGetGraphicsRunningProcesses)
    for call in calls:
        try:
            processes = call(handle)
        except pynvml.NVMLError as error:
            errors.append(error)
            continue
        for process in processes:
            memory = None if process.usedGpuMemory is None else process.usedGpuMemory / MIB
            found[process.pid] = max(filter(None, (found.get(process.pid), memory)), default=memory)
    if len(errors) == len(calls):
        raise errors[0]
    return found


def process_name(pid: int, proc: Path = Path("/proc")) -> str:
    """Return a short name (`python train.py`), empty when the pid is not visible here (another namespace)."""
    try:
        words = (proc / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
        name = Path(words[0]).name
        if name.startswith(PYTHON) and len(words) > 1 and words[1] and not words[1].startswith("-"):
            return f"{name} {Path(words[1]).name}"
        return name or (proc / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _moved(before: float | None, after: float | None) -> bool:
    if before is None or after is None:
        return before is not after
    return abs(after - before) > min(CHANGED_MIB, CHANGED_SHARE * before)
