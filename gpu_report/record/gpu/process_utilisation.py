"""How busy each process keeps the GPU's SMs, where the driver tells.

The call costs 2 ms of CPU (H200) whatever it returns, more than all that is read at a tick. Its figures are means since
the time stamp it is given, as far back as the driver's own readings go (14 s on an H200).
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pynvml

from gpu_report.record.gpu.nvml_quantities import NEVER

ALONE_EVERY_S = 30.0  # a process that has the GPU to itself shows in the GPU's own utilisation: 0.07 ms a second
LIMIT_PCT = 100  # entries beyond it have been seen, as have some with stamps from long ago: neither means anything
# "Nothing ran since then" in the tongues of various drivers; SUCCESS is how the binding reports an empty list.
_NOTHING = frozenset({pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_SUCCESS})


@dataclass
class ProcessUtilisation:
    """One GPU's processes: when they were last read, and whether the driver ever told anything."""

    last_us: int = 0
    due_s: float = 0.0
    given_up: bool = False

    def read(self, handle: Any, pids: Collection[int], mono_s: float) -> dict[int, float]:
        """Return the mean SM utilisation in % since the last read of each of `pids`; empty while that is not known.

        NVMLError where the driver refuses; after one that will not pass, nothing is asked again.
        """
        if self.given_up or not pids or (len(pids) == 1 and mono_s < self.due_s):
            return {}
        first = self.last_us == 0
        self.due_s = 0.0 if first else mono_s + ALONE_EVERY_S
        used = self._used(handle)
        if first:  # what the driver had kept until now may be of any age: it only says from when on to count
            return {}
        return {pid: used.get(pid, 0.0) for pid in pids}  # one that ran nothing is not in the list

    def _used(self, handle: Any) -> dict[int, float]:
        """Return the mean of each process that ran anything since the last call; NVMLError where it cannot be told."""
        try:
            samples = pynvml.nvmlDeviceGetProcessUtilization(handle, self.last_us)
        except pynvml.NVMLError as error:
            self.given_up = error.value in NEVER
            if error.value in _NOTHING:
                return {}
            raise
        new = [sample for sample in samples if sample.timeStamp > self.last_us]
        self.last_us = max((sample.timeStamp for sample in new), default=self.last_us)
        values: dict[int, list[int]] = {}
        for sample in new:
            if sample.smUtil <= LIMIT_PCT:
                values.setdefault(sample.pid, []).append(sample.smUtil)
        return {pid: sum(several) / len(several) for pid, several in values.items()}
