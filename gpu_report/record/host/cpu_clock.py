"""The clock of the CPU's cores, and how often heat slowed them, from /sys; a virtual machine often has neither."""

import os
from collections.abc import Collection
from pathlib import Path
from statistics import fmean

from gpu_report.record.host.psi_disk import rate
from gpu_report.record.proc_files import read_text

ROOT = Path("/sys/devices/system/cpu")
CLOCK = "cpufreq/scaling_cur_freq"  # kHz
THROTTLES = ("thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count")
CORES_READ = 16  # spread over the allowed ones: each may ask its core for its clock, 10 to 20 us
LOOK_EVERY_S = 10.0  # a power profile, a governor or heat lasts; between two looks the cells are empty


class CpuClock:
    """Reads the clock of the cores on which the training works; without one of some that it may run on.

    A mean over a hundred cores says nothing of the four that work: the others are idle, and slow for that.
    """

    def __init__(self, root: Path = ROOT, allowed: Collection[int] | None = None) -> None:
        """Take the cores of the affinity, or those `allowed`. What a core has not at the start it never has."""
        cores = _some(os.sched_getaffinity(0) if allowed is None else allowed)
        self._root = root
        self._clocks = _present(root, cores, (CLOCK,))
        self._throttles = _present(root, cores, THROTTLES)
        self._due_s = float("-inf")
        self._before: float | None = None
        self._before_s = 0.0

    def sample(self, mono_s: float, busy: Collection[int] | None = None) -> dict[str, float | None]:
        """Return the columns of the CPU's clock of schema.HOST_QUANTITIES, empty where it is not due or unknown.

        `busy` are the cores on which a training works, None where no training is known.
        """
        if mono_s < self._due_s:
            return {}
        self._due_s = mono_s + LOOK_EVERY_S
        clocks = self._clocks if busy is None else [self._root / f"cpu{core}" / CLOCK for core in _some(busy)]
        khz, counts = _numbers(clocks), _numbers(self._throttles)
        total = sum(counts) if counts and len(counts) == len(self._throttles) else None
        before, elapsed_s = self._before, mono_s - self._before_s
        self._before, self._before_s = total, mono_s
        throttles = None if total is None else rate(before, total, elapsed_s)
        return {"cpu_clock_mhz": fmean(khz) / 1000 if khz else None, "cpu_heat_throttles_per_s": throttles}


def _some(cores: Collection[int]) -> list[int]:
    """Return CORES_READ cores at most, evenly spread."""
    ordered, step = sorted(cores), max(len(cores) / CORES_READ, 1.0)
    return [ordered[int(step * place)] for place in range(min(len(ordered), CORES_READ))]


def _present(root: Path, cores: Collection[int], names: Collection[str]) -> list[Path]:
    paths = (root / f"cpu{core}" / name for core in cores for name in names)
    return [path for path in paths if os.path.exists(path)]  # noqa: PTH110 - Path.exists raises where /sys is closed


def _numbers(paths: Collection[Path]) -> list[int]:
    texts = (read_text(path).strip() for path in paths)
    return [int(text) for text in texts if text.isdigit()]
