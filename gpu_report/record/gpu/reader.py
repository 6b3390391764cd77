"""One GPU, read at each request: its quantities, its rings, and every few seconds its processes."""

import time
from collections.abc import Collection
from dataclasses import dataclass, replace

from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.gpu.devices import NvmlDevice
from gpu_report.record.gpu.driver_samples import POWER, UTILISATION, Ring, RingReading, Rings
from gpu_report.record.gpu.health import Health, read_health
from gpu_report.record.gpu.nvml_quantities import ALL_QUANTITIES, Change, DeviceReader, describe_error
from gpu_report.record.gpu.process_owners import Owners
from gpu_report.record.gpu.process_utilisation import ProcessUtilisation
from gpu_report.record.gpu.processes import ProcessChange, ProcessWatch, read_processes

PROCESSES_EVERY_S = 5.0
PROCESSES_COST_SHARE = 0.001  # a process list that costs 4.5 ms, as on some boards, is asked for every 4.5 s or less
RING = "ring"  # the quantities of errors about readings between ticks begin with it
PROCESSES = "processes"  # the quantity named when the list of processes cannot be read
PROCESS_UTILISATION = "processes gpu_util_pct"  # ... and when only their utilisation cannot


@dataclass(frozen=True)
class GpuReading:
    """One GPU at one moment: when its first call was made, and how long all of them took.

    `health` is there when everything was asked for.
    """

    at: Clocks
    gpu: int
    values: dict[str, float | None]
    changes: tuple[Change, ...] = ()
    processes: tuple[ProcessChange, ...] = ()
    ring: tuple[RingReading, ...] = ()
    health: Health | None = None
    took_s: float = 0.0


class GpuReader:
    """One GPU's quantities at each request, its rings and its processes every few seconds."""

    def __init__(self, device: NvmlDevice, start: Clocks, owners: Owners, *, detail: bool) -> None:
        """Read `device` from `start` on; `detail` drains the ring of power readings as well."""
        kinds = (UTILISATION, POWER) if detail else (UTILISATION,)
        self._reader = DeviceReader(device.index, device.handle, device.mig)
        self._divided = device.divided
        self._rings = Rings([Ring(kind, start) for kind in kinds])
        self._watch = ProcessWatch(device.index, owners)
        self._utilisation = ProcessUtilisation()
        self._utilisation_reason: str | None = None
        self._processes_due_s = 0.0
        self._processes_reason: str | None = None

    @property
    def gpu(self) -> int:
        """Return the device index."""
        return self._reader.index

    def read(self, *, everything: bool) -> GpuReading:
        """Read what is due, or everything. Nothing is raised: a mistake of ours is a failed reading too."""
        at = clocks.now()
        try:
            reading = self._read(at, everything=everything)
            return replace(reading, took_s=time.monotonic() - at.mono_s)
        except Exception as error:  # noqa: BLE001 - the one thread that reads must not end by a mistake of ours
            return GpuReading(at, self.gpu, {}, (Change(self.gpu, ALL_QUANTITIES, describe_error(error)),))

    def free(self) -> None:
        """Give back what NVML holds for us; NVMLError when it will not take it."""
        self._reader.gpm.free()

    def _read(self, at: Clocks, *, everything: bool) -> GpuReading:
        values, changes = self._reader.read(at.mono_s, everything=everything)
        processes: tuple[ProcessChange, ...] = ()
        # the processes of a GPU in MIG mode stand under its MIG devices; the last look tells which have gone by the end
        if (everything or at.mono_s >= self._processes_due_s) and not self._reader.lost_reason and not self._divided:
            processes, changed = self._read_processes(at.mono_s)
            changes += changed
        ring, changed = self._drain(everything=everything)
        health = self._read_health() if everything else None
        return GpuReading(at, self.gpu, values, (*changes, *changed), processes, ring, health)

    def _read_health(self) -> Health | None:
        """Return what the GPU's memory and link have been through by now; None for a MIG device and a lost GPU."""
        return None if self._reader.mig is not None or self._reader.lost_reason else read_health(self._reader.handle)

    def _drain(self, *, everything: bool) -> tuple[tuple[RingReading, ...], list[Change]]:
        if self._reader.lost_reason:
            return (), []
        try:
            failures: list[tuple[str, str | None]]
            readings, failures = self._rings.drain(self._reader.handle, clocks.now(), everything=everything)
        except Exception as error:  # noqa: BLE001 - a binding or driver of another version may raise anything
            readings, failures = [], [(RING, describe_error(error))]
        return tuple(readings), [Change(self.gpu, f"{RING} {name}", why) for name, why in failures]

    def _read_processes(self, mono_s: float) -> tuple[tuple[ProcessChange, ...], list[Change]]:
        reason: str | None = None
        changes: tuple[ProcessChange, ...] = ()
        changed: list[Change] = []
        began_s = time.monotonic()
        try:
            found = read_processes(self._reader.handle)
        except Exception as error:  # noqa: BLE001 - a binding or driver of another version may raise anything
            reason = describe_error(error)
        else:
            used, changed = self._read_utilisation(found, mono_s)
            changes = tuple(self._watch.update(found, used))
        cost_s = time.monotonic() - began_s
        self._processes_due_s = mono_s + max(PROCESSES_EVERY_S, cost_s / PROCESSES_COST_SHARE)
        known, self._processes_reason = self._processes_reason, reason
        return changes, changed if known == reason else [*changed, Change(self.gpu, PROCESSES, reason)]

    def _read_utilisation(self, pids: Collection[int], mono_s: float) -> tuple[dict[int, float], list[Change]]:
        reason: str | None = None
        used: dict[int, float] = {}
        if self._utilisation.given_up:
            return used, []
        try:
            used = self._utilisation.read(self._reader.handle, pids, mono_s)
        except Exception as error:  # noqa: BLE001 - a binding or driver of another version may raise anything
            reason = describe_error(error)
        known, self._utilisation_reason = self._utilisation_reason, reason
        return used, [] if known == reason else [Change(self.gpu, PROCESS_UTILISATION, reason)]
