"""MIG devices: what a GPU in MIG mode is divided into, each recorded as a device of its own.

NVML tells of one its memory, its processes, and through its GPU its GPM metrics, utilisation among them (Hopper and
later). Power, temperatures and clocks are those of the whole board, whose own utilisation nothing tells any more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pynvml

from gpu_report.schema import MIG_INDEX_STEP


@dataclass(frozen=True)
class MigPlace:
    """Where a MIG device lies: its GPU, its number there, and its GPU instance (None: not reported)."""

    parent: int
    slot: int
    board: Any
    gpu_instance: int | None

    @property
    def index(self) -> int:
        """Return the device index that stands for it in the run folder."""
        return MIG_INDEX_STEP * (self.parent + 1) + self.slot


def find_migs(parent: int, board: Any) -> Iterator[tuple[MigPlace, Any]]:
    """Yield the place and the handle of each MIG device of a GPU in MIG mode; nothing where NVML tells of none."""
    try:
        places = pynvml.nvmlDeviceGetMaxMigDeviceCount(board)
    except pynvml.NVMLError:
        return
    for slot in range(places):
        try:
            handle = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(board, slot)
        except pynvml.NVMLError:
            continue  # an empty place, or one that a container was not given
        yield MigPlace(parent, slot, board, _gpu_instance(handle)), handle


def _gpu_instance(handle: Any) -> int | None:
    try:
        return int(pynvml.nvmlDeviceGetGpuInstanceId(handle))
    except pynvml.NVMLError:
        return None
