"""The host at one tick: CPU and memory, from /proc."""

import os
import platform
from collections.abc import Mapping
from pathlib import Path

from gpu_report.record.proc_files import container, read_text

CPU_FIELDS_COUNTED = 8  # user nice system idle iowait irq softirq steal; guest time is already in user
IDLE_FIELDS = slice(3, 5)  # idle, iowait
IOWAIT, STEAL = 4, 7
ALL = "cpu"  # the line of all cores

Ticks = tuple[int, ...]


class HostSampler:
    """Reads /proc/stat and /proc/meminfo; CPU shares are since the sample before."""

    def __init__(self) -> None:
        self._before: Mapping[str, Ticks] = {}  # so that the first row has no CPU shares: they need two looks
        self._busy_pct: float | None = None

    def sample(self) -> dict[str, float | None]:
        """Return schema.HOST_QUANTITIES by name; what cannot be read is None."""
        before, self._before = self._before, _cpu_ticks()
        shares = _cpu_shares(before, self._before)
        self._busy_pct = shares["cpu_pct"]
        return {**shares, **_memory()}

    @property
    def cores(self) -> int:
        """Return how many cores the machine shows."""
        return sum(name != ALL for name in self._before)

    @property
    def busy_pct(self) -> float | None:
        """Return the CPU that was busy at the last sample, in % of a core."""
        return None if self._busy_pct is None else self._busy_pct * self.cores


def describe() -> dict[str, object]:
    """Return what run.json says of the machine itself in `host` (schema.RUN_HOST)."""
    memory = _meminfo()
    total = memory.get("MemTotal")
    return {
        "name": platform.node() or None,
        "os": _os_name(),
        "kernel": platform.release() or None,
        "container": container(),
        "cores": len(os.sched_getaffinity(0)),
        "cores_online": os.cpu_count(),
        "memory_mib": None if total is None else round(total / 1024),
    }


def _os_name() -> str | None:
    for line in read_text(Path("/etc/os-release")).splitlines():
        if line.startswith("PRETTY_NAME="):
            return line.partition("=")[2].strip('"')
    return platform.system() or None


def _cpu_ticks() -> dict[str, Ticks]:
    """Return the jiffies of `cpu` (all) and of each `cpuN`, empty when /proc/stat cannot be read."""
    ticks: dict[str, Ticks] = {}
    for line in read_text(Path("/proc/stat")).splitlines():
        if not line.startswith("cpu"):
            break
        name, *numbers = line.split()
        ticks[name] = tuple(int(number) for number in numbers[:CPU_FIELDS_COUNTED])
    return ticks


def _cpu_shares(before: Mapping[str, Ticks], after: Mapping[str, Ticks]) -> dict[str, float | None]:
    busy = {
        name: share
        for name, ticks in after.items()
        if name in before and (share := _busy_share(before[name], ticks)) is not None
    }
    return {
        "cpu_pct": busy.get(ALL),
        "cpu_busiest_core_pct": max((share for name, share in busy.items() if name != ALL), default=None),
        "iowait_pct": _share(before.get(ALL), after.get(ALL), IOWAIT),
        "cpu_steal_pct": _share(before.get(ALL), after.get(ALL), STEAL),
    }


def _busy_share(before: Ticks, after: Ticks) -> float | None:
    total = sum(after) - sum(before)
    idle = sum(after[IDLE_FIELDS]) - sum(before[IDLE_FIELDS])
    return None if total <= 0 else min(100.0, max(0.0, 100.0 * (total - idle) / total))


def _share(before: Ticks | None, after: Ticks | None, field: int) -> float | None:
    if not before or not after or min(len(before), len(after)) <= field:
        return None
    total = sum(after) - sum(before)
    # iowait may step back: the kernel says so in proc(5)
    return None if total <= 0 else min(100.0, max(0.0, 100.0 * (after[field] - before[field]) / total))


def _meminfo() -> dict[str, int]:
    """Return /proc/meminfo in KiB."""
    values: dict[str, int] = {}
    for line in read_text(Path("/proc/meminfo")).splitlines():
        name, _, rest = line.partition(":")
        number = rest.split()
        if number and number[0].isdigit():
            values[name] = int(number[0])
    return values


def _memory() -> dict[str, float | None]:
    memory = _meminfo()
    total, available = memory.get("MemTotal"), memory.get("MemAvailable")
    if total is None or available is None:
        return {"memory_used_mib": None, "memory_available_mib": None}
    return {"memory_used_mib": (total - available) / 1024, "memory_available_mib": available / 1024}
