"""The one thread that asks NVML for readings, so that a call that never returns hangs nothing else.

A driver in trouble may keep a call for minutes or for ever, and a Python signal handler does not run meanwhile.
The scheduler therefore only talks to this thread through two queues and stops waiting after a while.
"""

import queue
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import pynvml

from gpu_report.errors import UsageError
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.devices import Device, Opened, open_nvml
from gpu_report.record.health import Health, read_health
from gpu_report.record.owners import Owners
from gpu_report.record.process_utilisation import ProcessUtilisation
from gpu_report.record.processes import ProcessChange, ProcessWatch, read_processes
from gpu_report.record.quantities import Change, DeviceReader, describe_error
from gpu_report.record.ring import POWER, UTILISATION, Ring, RingReading, Rings

PROCESSES_EVERY_S = 5.0
PROCESSES_COST_SHARE = 0.001  # a process list that costs 4.5 ms, as on some boards, is asked for every 4.5 s or less
RING = "ring"  # the quantities of errors about readings between ticks begin with it
PROCESSES = "processes"  # the quantity named when the list of processes cannot be read
PROCESS_UTILISATION = "processes gpu_util_pct"  # ... and when only their utilisation cannot


@dataclass(frozen=True)
class OpenFailed:
    """NVML could not be opened: the error, with NVML's code where it has one."""

    error: Exception
    code: int | None


@dataclass(frozen=True)
class Reading:
    """One GPU at one moment."""

    at: Clocks
    gpu: int
    values: dict[str, float | None]
    changes: tuple[Change, ...]
    processes: tuple[ProcessChange, ...]
    ring: tuple[RingReading, ...]


@dataclass(frozen=True)
class HealthReading:
    """One GPU's memory and link at the end."""

    gpu: int
    health: Health


@dataclass(frozen=True)
class TickDone:
    """Every GPU has been read for this request."""


Request = Literal["read", "read all", "stop"]
Answer = Opened | OpenFailed | Reading | HealthReading | TickDone


class NvmlThread:
    """Asks for readings and collects answers; `busy` while a request is not answered."""

    def __init__(self, wanted: Sequence[str], *, detail: bool = False) -> None:
        """Open NVML for the `wanted` GPUs; `detail` drains the ring of power readings as well."""
        self.owners = Owners()
        self._wanted = tuple(wanted)
        self._rings = (UTILISATION, POWER) if detail else (UTILISATION,)
        self._start = clocks.now()
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self.busy = True
        self.asked_s = time.monotonic()
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self._thread.start()

    def ask(self, request: Request = "read") -> None:
        """Request one reading of every GPU, of `all` even what is not due; only when not busy."""
        self.busy = True
        self.asked_s = time.monotonic()
        self._requests.put(request)

    def collect(self, wait_s: float) -> list[Answer]:
        """Return the answers so far, waiting up to `wait_s` for the last one of a request."""
        answers: list[Answer] = []
        deadline = time.monotonic() + wait_s
        while self.busy:
            try:
                answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            answers.append(answer)
            self.busy = isinstance(answer, Reading | HealthReading)
        return answers

    def finish(self, wait_s: float) -> bool:
        """Shut NVML down and end the thread; False when a call does not return and the thread must be abandoned."""
        self._requests.put("stop")
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        devices = self._open()
        if devices is None:
            return
        readers = [
            _GpuReader(device, Rings([Ring(kind, self._start) for kind in self._rings]), self.owners)
            for device in devices
        ]
        while (request := self._requests.get()) != "stop":
            for reader in readers:
                self._answers.put(reader.read(everything=request == "read all"))
            if request == "read all":
                self._answer_health(readers)
            self._answers.put(TickDone())
        try:
            for reader in readers:
                reader.free()
            pynvml.nvmlShutdown()
        except pynvml.NVMLError:
            return  # the process ends next, and the driver lets go of everything then

    def _answer_health(self, readers: Sequence["_GpuReader"]) -> None:
        """Read every GPU's health; a lost one comes last, for it may keep each call until a timeout."""
        for reader in sorted(readers, key=lambda reader: reader.lost):
            if (health := reader.read_health()) is not None:
                self._answers.put(health)

    def _open(self) -> tuple[Device, ...] | None:
        try:
            opened = open_nvml(self._wanted)
        except UsageError as error:
            self._answers.put(OpenFailed(error, None))
        except Exception as error:  # noqa: BLE001 - whatever a broken driver does, the main thread must hear of it
            self._answers.put(OpenFailed(error, getattr(error, "value", None)))
        else:
            self._answers.put(opened)
            return opened.devices
        return None


class _GpuReader:
    """One GPU's quantities at each request, its rings and its processes every few seconds."""

    def __init__(self, device: Device, rings: Rings, owners: Owners) -> None:
        self._reader = DeviceReader(device.index, device.handle, device.mig)
        self._divided = device.divided
        self._rings = rings
        self._watch = ProcessWatch(device.index, owners)
        self._utilisation = ProcessUtilisation()
        self._utilisation_reason: str | None = None
        self._processes_due_s = 0.0
        self._processes_reason: str | None = None

    def read(self, *, everything: bool) -> Reading:
        values, changes = self._reader.read(time.monotonic(), everything=everything)
        at = clocks.now()
        processes: tuple[ProcessChange, ...] = ()
        # the processes of a GPU in MIG mode stand under its MIG devices
        if at.mono_s >= self._processes_due_s and not self._reader.lost_reason and not self._divided:
            processes, changed = self._read_processes(at.mono_s)
            changes += changed
        ring, changed = self._drain(at, everything=everything)
        return Reading(at, self._reader.index, values, (*changes, *changed), processes, ring)

    @property
    def lost(self) -> bool:
        """Say whether the GPU was lost when it was last read."""
        return self._reader.lost_reason is not None

    def read_health(self) -> HealthReading | None:
        """Return what the GPU's memory and link have been through by now; None for a MIG device."""
        if self._reader.mig is not None:
            return None
        return HealthReading(self._reader.index, read_health(self._reader.handle))

    def free(self) -> None:
        """Give back what NVML holds for us; NVMLError when it will not take it."""
        self._reader.gpm.free()

    def _drain(self, at: Clocks, *, everything: bool) -> tuple[tuple[RingReading, ...], list[Change]]:
        if self._reader.lost_reason:
            return (), []
        try:
            readings, failures = self._rings.drain(self._reader.handle, at, everything=everything)
        except Exception as error:  # noqa: BLE001 - a binding or driver of another version may raise anything
            readings, failures = [], [(RING, describe_error(error))]
        return tuple(readings), [Change(self._reader.index, f"{RING} {name}", why) for name, why in failures]

    def _read_processes(self, mono_s: float) -> tuple[tuple[ProcessChange, ...], list[Change]]:
        reason: str | None = None
        changes: tuple[ProcessChange, ...] = ()
        changed: list[Change] = []
        try:
            found = read_processes(self._reader.handle)
        except Exception as error:  # noqa: BLE001 - a binding or driver of another version may raise anything
            reason = describe_error(error)
        else:
            used, changed = self._read_utilisation(found, mono_s)
            changes = tuple(self._watch.update(found, used))
        cost_s = time.monotonic() - mono_s
        self._processes_due_s = mono_s + max(PROCESSES_EVERY_S, cost_s / PROCESSES_COST_SHARE)
        known, self._processes_reason = self._processes_reason, reason
        return changes, changed if known == reason else [*changed, Change(self._reader.index, PROCESSES, reason)]

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
        return used, [] if known == reason else [Change(self._reader.index, PROCESS_UTILISATION, reason)]
