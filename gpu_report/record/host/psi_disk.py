"""What the host's processes wait for, and what its disks deliver: rates since the look before, from /proc."""

import os
from collections.abc import Mapping
from pathlib import Path

from gpu_report.record.proc_files import read_text

SECTOR_BYTES = 512  # of /proc/diskstats, whatever the disk's own sectors are
MIB = 2**20
SHM = "/dev/shm"  # noqa: S108 - read, not written
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
# Devices that repeat what others count: partitions are recognised by their parent, these by their name.
NOT_A_DISK = ("loop", "ram", "dm-", "md", "zram", "sr", "fd")


class PressureSampler:
    """Turns the kernel's running totals into rates: PSI in % of the time, bytes in MiB a second."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._before: Mapping[str, float] = {}
        self._before_s = 0.0

    def sample(self, mono_s: float) -> dict[str, float | None]:
        """Return the pressure and input columns of schema.HOST_QUANTITIES; None at the first look and where unknown."""
        totals, elapsed_s = self._totals(), mono_s - self._before_s
        before, self._before, self._before_s = self._before, totals, mono_s
        rates = {name: rate(before.get(name), total, elapsed_s) for name, total in totals.items()}
        return {**{name: capped(name, value) for name, value in rates.items()}, "shm_free_mib": _free_mib(SHM)}

    def _totals(self) -> dict[str, float]:
        """Return running totals: 100 x seconds for pressures (so that a rate is a percentage), MiB for bytes."""
        totals: dict[str, float] = {}
        for resource in ("cpu", "io", "memory"):
            for line in read_text(self._proc / "pressure" / resource).splitlines():
                kind, _, rest = line.partition(" ")
                column = _COLUMNS.get((resource, kind))
                if column and (total := _total(rest)) is not None:
                    totals[column] = total
        totals.update(_swapped_in(self._proc))
        totals.update(_disks_read(self._proc))
        return totals


_COLUMNS = {
    ("cpu", "some"): "cpu_pressure_pct",
    ("io", "some"): "io_pressure_pct",
    ("io", "full"): "io_full_pressure_pct",
    ("memory", "some"): "memory_pressure_pct",
}


def _swapped_in(proc: Path) -> dict[str, float]:
    for line in read_text(proc / "vmstat").splitlines():
        if line.startswith("pswpin "):
            return {"swap_in_mib_s": int(line.split()[1]) * PAGE_BYTES / MIB}
    return {}


def _disks_read(proc: Path) -> dict[str, float]:
    """Return what whole disks have read: field 6 of /proc/diskstats is sectors read."""
    lines = [line.split() for line in read_text(proc / "diskstats").splitlines()]
    names = [words[2] for words in lines if len(words) > 5]
    disks = [words for words in lines if len(words) > 5 and _is_disk(words[2], names)]
    return {"disk_read_mib_s": sum(int(words[5]) for words in disks) * SECTOR_BYTES / MIB} if disks else {}


def _is_disk(name: str, names: list[str]) -> bool:
    """Tell a disk from its partitions (sda1, nvme0n1p1) and from devices that stand on others."""
    if name.startswith(NOT_A_DISK):
        return False
    bare = name.rstrip("0123456789")
    parents = {bare, bare.removesuffix("p")} - {name}
    return not (bare != name and any(parent in names for parent in parents))


def total_of(text: str) -> float | None:
    """Return the running total of a PSI file's `some` line, as 100 x seconds; None when it has none."""
    return next((_total(line) for line in text.splitlines() if line.startswith("some ")), None)


def _total(line: str) -> float | None:
    microseconds = line.rpartition("total=")[2]
    return int(microseconds) / 1e4 if microseconds.isdigit() else None


def rate(before: float | None, total: float, elapsed_s: float) -> float | None:
    """Return how fast a running total grows a second; None at the first look, and where it went back."""
    if before is None or elapsed_s <= 0 or total < before:
        return None
    return (total - before) / elapsed_s


def capped(name: str, value: float | None) -> float | None:
    """Return a pressure as no more than all of the time: on a busy host it is looked at later than its tick says."""
    return min(value, 100.0) if value is not None and name.endswith("_pressure_pct") else value


def shm_total_mib() -> float | None:
    """Return the size of /dev/shm; Docker's own is 64 MiB."""
    space = _space(SHM)
    return None if space is None else round(space.f_blocks * space.f_frsize / MIB)


def _free_mib(path: str) -> float | None:
    space = _space(path)
    return None if space is None else space.f_bavail * space.f_frsize / MIB


def _space(path: str) -> os.statvfs_result | None:
    try:
        return os.statvfs(path)
    except OSError:
        return None
