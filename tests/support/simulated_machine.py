"""A machine for the recorder, in this process: clocks, GPUs and a disk that do what a test wants, in no real time.

The recorder's own code runs: its tick loop, its readers, its files. Replaced is what it asks: the clocks, the calls of
NVML and the thread that waits for them, `write` and the files of /proc.
"""

import errno
import math
import os
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from gpu_report import run_folder
from gpu_report.record import clocks, cost
from gpu_report.record.clocks import Clocks
from gpu_report.record.gpu import nvml_quantities, nvml_thread, reader, sampler
from gpu_report.record.gpu.devices import NvmlDevice, Opened
from gpu_report.record.gpu.nvml_quantities import NVML_CALLS
from gpu_report.record.gpu.nvml_thread import OpenFailed, ReadThread
from gpu_report.record.gpu.reader import GpuReader, GpuReading
from gpu_report.record.gpu.sampler import GpuWatch
from gpu_report.record.lifecycle import recording, run_json, tick_loop
from gpu_report.record.lifecycle.recording import OpenRecording
from gpu_report.record.lifecycle.stop_request import RecordingEnd
from gpu_report.record.options import RecordOptions
from gpu_report.record.yolo import watch

FIRST_MONO_S, FIRST_WALL_S, FIRST_BOOT_S = 1_000.0, 1_795_000_000.0, 1_060.0
RING_EVERY_S, RING_S = 0.2, 14.0  # what an H200 keeps
COUNTER_A_SECOND = 0.1  # by what every counter grows
PERIOD_S = 97  # of all other readings: each second has one of its own, and none is 0
ROUNDED = 1e-4  # what arithmetic may add to a moment, which is of whole milliseconds, as stamps in a run folder are
BLOCKS_AT = "power_w"  # the call that takes its time; what stands before it in a row was read before
COLUMNS = tuple(name for call in NVML_CALLS for name in call.columns)


def is_counter(column: str) -> bool:
    return column.endswith(("_j", "_s"))


def truth(column: str, gpu: int, mono_s: float) -> float:
    """Return what a GPU reads at a moment: another value each second, and never 0."""
    if is_counter(column):
        return COUNTER_A_SECOND * mono_s
    return float(1 + (int(mono_s) + 13 * COLUMNS.index(column) + 7 * gpu) % PERIOD_S)


@dataclass(frozen=True)
class Health:
    """How a GPU answers: `columns` fail, or all of it is lost, or a call takes `takes_s` (for ever: inf)."""

    columns: frozenset[str] = frozenset()
    lost: bool = False
    takes_s: float = 0.0


WELL = Health()


class Machine:
    """Clocks, GPUs and a disk, and what they have been through."""

    def __init__(self, gpus: int = 1) -> None:
        self.mono_s = FIRST_MONO_S
        self.offsets = [(-math.inf, FIRST_WALL_S - FIRST_MONO_S, FIRST_BOOT_S - FIRST_MONO_S)]
        self.health = {gpu: [(-math.inf, WELL)] for gpu in range(gpus)}
        self.opens_s: float | None = -math.inf  # from then on the driver opens; None: there is none
        self.full = False
        self.torn = False  # of the next row, half is written
        self.refused: Counter[str] = Counter()  # rows, by file

    # clocks

    def clocks(self, mono_s: float | None = None) -> Clocks:
        mono_s = self.mono_s if mono_s is None else mono_s
        _, wall, boot = _latest(self.offsets, mono_s)
        return Clocks(mono_s + wall, mono_s, mono_s + boot)

    def pass_until(self, mono_s: float) -> None:
        """Let time go by, in whole milliseconds."""
        self.mono_s = max(self.mono_s, math.ceil(1000 * mono_s - ROUNDED) / 1000)

    def set_clock(self, by_s: float) -> None:
        _, wall, boot = self.offsets[-1]
        self.offsets.append((self.mono_s, wall + by_s, boot))

    def sleep(self, seconds: float) -> None:
        _, wall, boot = self.offsets[-1]
        self.offsets.append((self.mono_s, wall + seconds, boot + seconds))

    # GPUs

    def becomes(self, gpu: int, health: Health) -> None:
        self.health[gpu].append((self.mono_s, health))

    def health_at(self, gpu: int, mono_s: float) -> Health:
        health: Health = _latest(self.health[gpu], mono_s)[1]
        return health

    def answers_s(self, gpu: int, begun_s: float) -> float:
        """Return when a reading that began at a moment is answered; inf: not as things stand."""
        health = self.health_at(gpu, begun_s)
        if math.isfinite(health.takes_s):
            return begun_s + health.takes_s
        later = [since for since, found in self.health[gpu] if since >= begun_s and math.isfinite(found.takes_s)]
        return later[0] if later else math.inf

    def call(self, columns: Sequence[str], gpu: int) -> Mapping[str, float]:
        """Play one call of NVML."""
        if BLOCKS_AT in columns:
            self.pass_until(self.answers_s(gpu, self.mono_s))
        health = self.health_at(gpu, self.mono_s)
        if health.lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        if health.columns & set(columns):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)
        return {column: truth(column, gpu, self.mono_s) for column in columns}

    def ring(self, gpu: int, _kind: int, last_us: int) -> tuple[int, list[Any]]:
        """Play nvmlDeviceGetSamples: what the driver kept, stamped by the wall clock as it was then."""
        if self.health_at(gpu, self.mono_s).lost:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        number = int((self.mono_s - FIRST_MONO_S) / RING_EVERY_S)
        moments = (FIRST_MONO_S + n * RING_EVERY_S for n in range(max(0, number - int(RING_S / RING_EVERY_S)), number))
        stamped = ((round(self.clocks(moment).wall_s * 1e6), moment) for moment in moments)
        kept = [(stamp, truth("gpu_util_pct", gpu, moment)) for stamp, moment in stamped if stamp > last_us]
        values = [SimpleNamespace(timeStamp=us, sampleValue=SimpleNamespace(uiVal=value)) for us, value in kept]
        return 1, values

    @contextmanager
    def at(self, mono_s: float) -> Iterator[None]:
        """Go back to a moment at which something was begun; afterwards it is as late as it was, or later."""
        now_s, self.mono_s = self.mono_s, mono_s
        yield
        self.mono_s = max(self.mono_s, now_s)

    # disk

    def write(self, fd: int, data: bytes) -> int:
        if not self.full:
            return os.write(fd, data)
        name = Path(f"/proc/self/fd/{fd}").readlink().name
        self.refused[name] += data.removeprefix(run_folder.END_OF_TORN).count(b"\n")
        if self.torn:
            self.torn = False
            return os.write(fd, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def write_text(self, path: Path, text: str, write: Callable[[Path, str], None] = run_folder.write_text) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, text)


def _latest(history: Sequence[tuple[Any, ...]], mono_s: float) -> Any:
    """Return the last entry that began before a moment: what happens right after a tick is not of that tick."""
    return next(entry for entry in reversed(history) if entry[0] < mono_s)


# --- what is put in the place of the recorder's own ---------------------------------------------------------------


@contextmanager
def recorder_on(machine: Machine) -> Iterator[None]:
    """Let what records in this block do so on a machine."""
    time = SimpleNamespace(monotonic=lambda: machine.mono_s, time=lambda: machine.clocks().wall_s)
    calls = tuple(replace(call, read=partial(machine.call, call.columns)) for call in NVML_CALLS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clocks, "now", machine.clocks)
        for module in (cost, nvml_thread, reader, sampler, recording, tick_loop, watch):
            patch.setattr(module, "time", time)
        patch.setattr(run_folder, "os", _Disk(machine))
        patch.setattr(run_folder, "write_text", machine.write_text)
        patch.setattr(run_json, "_host", dict)
        patch.setattr(recording, "KernelLogThread", _Quiet)
        for name in ("HostSampler", "PressureSampler", "CpuClock", "TrainerTree"):
            patch.setattr(tick_loop, name, _Quiet)
        patch.setattr(nvml_quantities, "NVML_CALLS", calls)
        patch.setattr(nvml_quantities, "Gpm", _Quiet)
        patch.setattr(pynvml, "nvmlDeviceGetSamples", machine.ring)
        patch.setattr(reader, "read_health", lambda _: {})
        patch.setattr(reader, "read_processes", lambda _: {})
        patch.setattr(reader, "ProcessUtilisation", _Quiet)
        patch.setattr(sampler, "OpenThread", partial(_Opening, machine))
        patch.setattr(sampler, "ReadThread", partial(_Reading, machine))
        patch.setattr(sampler, "XidThread", _Quiet)
        patch.setattr(sampler, "shut_down", lambda readers, wait_s: True)
        yield


class _Disk:
    """The module `os`, whose writes a machine plays."""

    def __init__(self, machine: Machine) -> None:
        self.write = machine.write
        self.fsync = lambda fd: None

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)


class _Quiet:
    """Something that is asked at each tick, and has nothing to say."""

    metrics: Mapping[str, int] = {}
    cgroup = None
    looks: Mapping[int, object] = {}
    mains = workers = frozenset()
    cores = 0
    busy_pct = cpu_pct = busy_cores = None
    given_up = False

    def __init__(self, *_: object) -> None:
        pass

    def sample(self, *_: object) -> Mapping[str, float]:
        return {}

    read = sample

    def finish(self, _wait_s: float) -> bool:
        return True


class _Opening:
    """OpenThread, whose answer is there as soon as the machine's driver opens."""

    def __init__(self, machine: Machine, _wanted: Sequence[str]) -> None:
        self._machine = machine
        self.asked_s = machine.mono_s

    def answer(self, _wait_s: float) -> Opened | OpenFailed | None:
        opens_s = self._machine.opens_s
        if opens_s is None:
            error = pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
            return OpenFailed(error, pynvml.NVML_ERROR_DRIVER_NOT_LOADED)
        if self._machine.mono_s < opens_s:
            return None
        return Opened(tuple(_device(gpu) for gpu in self._machine.health), (), "580.1", "13.1", "13.0")


def _device(gpu: int) -> NvmlDevice:
    facts = {"index": gpu, "uuid": f"GPU-{gpu}", "name": "NVIDIA H200", "memory_total_mib": 143_771}
    return NvmlDevice(gpu, gpu, {**facts, "power_limit_w": 700.0, "health_start": {}})


class _Reading(ReadThread):
    """ReadThread without a thread: it reads when it is waited for, and its calls take the machine's time."""

    def __init__(self, machine: Machine, readers: Sequence[GpuReader]) -> None:
        self._machine = machine
        self._readers = list(readers)
        self._lock = threading.Lock()
        self._current: GpuReader | None = None
        self._todo: list[GpuReader] = []
        self._own_s = 0.0  # how far this thread is
        self._everything = False
        self.busy = False
        self.asked_s = 0.0

    def ask(self, request: str = "due") -> None:
        self.busy, self.asked_s, self._own_s = True, self._machine.mono_s, self._machine.mono_s
        self._todo, self._everything = list(self._readers), request == "all"

    def collect(self, until_s: float) -> list[GpuReading]:
        readings: list[GpuReading] = []
        while self.busy and (mine := next((each for each in self._todo if each in self._readers), None)):
            self._current = mine
            answered_s = self._machine.answers_s(mine.gpu, self._own_s)
            if answered_s > max(until_s, self._machine.mono_s):
                self._machine.pass_until(until_s)
                return readings
            readings.append(self._read(mine))
            self._todo = self._todo[self._todo.index(mine) + 1 :]
        self.busy, self._current = False, None
        return readings

    def _read(self, mine: GpuReader) -> GpuReading:
        with self._machine.at(self._own_s):
            reading = mine.read(everything=self._everything)
            self._own_s = self._machine.mono_s
        return reading

    def finish(self, _wait_s: float) -> bool:
        return not self.busy


# --- a recorder ---------------------------------------------------------------------------------------------------


class Killed(BaseException):
    """What a recorder meets that is killed: none of its own code runs after it."""


class Recorder:
    """A recorder of its own thread that stands still between two ticks, until the test lets it go on.

    `deadline_s` is until when it waits; None: it has ended.
    """

    def __init__(self, options: RecordOptions) -> None:
        self._options = options
        self._orders: queue.SimpleQueue[RecordingEnd | type[Killed] | None] = queue.SimpleQueue()
        self._waits: queue.SimpleQueue[float | None] = queue.SimpleQueue()
        self._end: RecordingEnd | None = None
        self.said: list[str] = []
        self.error: Exception | None = None
        self.recording: OpenRecording | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self.deadline_s = self._waits.get(timeout=60)

    def go_on(self, order: RecordingEnd | type[Killed] | None = None) -> None:
        """Let it make its tick, the last one where an end is given, or none any more."""
        self._orders.put(order)
        self.deadline_s = self._waits.get(timeout=60)
        if self.deadline_s is None:
            self._thread.join()

    def wait_until(self, mono_s: float) -> RecordingEnd | None:
        """Wait as a StopRequest does."""
        if self._end is None:
            self._waits.put(mono_s)
            order = self._orders.get()
            if order is Killed:
                raise Killed
            self._end = order
        return self._end

    def _run(self) -> None:
        try:
            gpus = GpuWatch((), self._options.interval_s)
            self.recording = OpenRecording(self._options, self.said.append)
            self.recording.run(gpus, None, self)  # type: ignore[arg-type]  # all of a StopRequest that it asks for
        except Killed:
            self.recording._journal.close()  # as the kernel closes what a killed process had open
        except Exception as error:  # noqa: BLE001 - the test is to see it
            self.error = error
        self._waits.put(None)
