"""How a training goes now: read from the ends of the run folder's files, a few milliseconds every few seconds."""

import csv
import json
import time
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpu_report import run_folder, schema
from gpu_report.errors import InputError
from gpu_report.notebook.tail import BoundedTail, first_line
from gpu_report.record.lifecycle import background

BUSY_OVER_S = 30.0  # utilisation of a single reading swings between 0 and 100 %
LOW_PCT = 20.0  # of utilisation: under it for LOW_FOR_S is what the report draws red
LOW_FOR_S = 10.0  # as long as a low interval of the report lasts at least
OLD_AFTER_S = 10.0  # a newest reading older than this, and than OLD_AFTER_TICKS, is no reading of now
OLD_AFTER_TICKS = 3.0  # a busy host misses a tick or two
MOST_FILES = 64  # of processes of the training that are followed


@dataclass(frozen=True)
class GpuNow:
    """A GPU: its mean utilisation over BUSY_OVER_S, its memory, and since when it is nearly idle; None: not known.

    `low_since_wall_s` is in UTC seconds since 1970.
    """

    index: int
    busy_pct: float | None
    memory_used_mib: float | None
    low_since_wall_s: float | None


@dataclass(frozen=True)
class LastEpoch:
    """The training part of an epoch that is over, and how long of it was spent waiting for data; seconds."""

    epoch: int
    train_s: float
    data_wait_s: float | None


@dataclass(frozen=True)
class LiveState:
    """What is known at `at_wall_s` (UTC seconds since 1970).

    `read_wall_s` is when the newest reading was taken, None where there is none. `is_old` says that it is none of now,
    `is_recorded` whether a recorder is still writing, `no_gpu` why it reads no GPU.
    """

    at_wall_s: float
    is_recorded: bool
    read_wall_s: float | None = None
    is_old: bool = False
    gpus: tuple[GpuNow, ...] = ()
    no_gpu: str = ""
    phase: str = ""
    epoch: int | None = None
    epochs: int | None = None
    last_epoch: LastEpoch | None = None


@dataclass
class _NewestReadings:
    """The newest readings of a GPU: monotonic seconds and utilisation; `low_since` is on the wall's clock and that."""

    readings: deque[tuple[float, float]] = field(default_factory=deque)
    memory_used_mib: float | None = None
    low_since: tuple[float, float] | None = None

    def take(self, wall_s: float, mono_s: float, pct: float | None, mib: float | None) -> None:
        """Take a row of samples.csv; a cell that is empty says nothing."""
        self.memory_used_mib = mib
        if pct is not None:
            self.readings.append((mono_s, pct))
            self.low_since = (self.low_since or (wall_s, mono_s)) if pct < LOW_PCT else None
        while self.readings and self.readings[0][0] < mono_s - BUSY_OVER_S:
            self.readings.popleft()

    def now(self, index: int) -> GpuNow:
        """Return what is to be said of it."""
        busy = sum(pct for _, pct in self.readings) / len(self.readings) if self.readings else None
        since = self.low_since
        is_low = since is not None and bool(self.readings) and self.readings[-1][0] - since[1] >= LOW_FOR_S
        return GpuNow(index, busy, self.memory_used_mib, since[0] if since is not None and is_low else None)


@dataclass
class _TrainingNow:
    """What the main process of a training has reported so far."""

    phase: str = ""
    epoch: int | None = None
    epochs: int | None = None
    last_epoch: LastEpoch | None = None

    def take(self, line: dict[str, Any]) -> None:
        """Take a line of inside/."""
        kind = line.get("kind")
        if kind == "settings" and isinstance(line.get("epochs"), int):
            self.epochs = line["epochs"]
        elif kind == "phase":
            self.phase = str(line.get("name", ""))
            self.epoch = line["epoch"] if isinstance(line.get("epoch"), int) else self.epoch
        elif kind == "epoch" and isinstance(line.get("epoch"), int):
            end, start = run_folder.finite(line.get("mono_s")), run_folder.finite(line.get("start_mono_s"))
            if end is not None and start is not None:
                waited = run_folder.finite(line.get("data_wait_s"))
                self.last_epoch = LastEpoch(line["epoch"], end - start, waited)


@dataclass
class _FollowedProcess:
    """A process of YOLO, and whether it is the main one of a training now."""

    tail: BoundedTail
    is_followed: bool = False


class LiveReader:
    """Reads what was appended to a run folder since the last look.

    What its processes reported before `since_mono_s` (monotonic seconds) is of earlier trainings.
    """

    def __init__(self, folder: Path, since_mono_s: float) -> None:
        self._folder = folder
        self._since_mono_s = since_mono_s
        self._header: list[str] = []
        self._samples = BoundedTail(folder / schema.SAMPLES_CSV)
        self._events = BoundedTail(folder / schema.EVENTS_JSONL)
        self._processes: dict[Path, _FollowedProcess] = {}
        self._training = _TrainingNow()
        self._gpus: dict[int, _NewestReadings] = {}
        self._newest: tuple[float, float] | None = None
        self._no_gpu = ""
        self._interval_s: float | None = None

    def state(self) -> LiveState:
        """Return how it goes now."""
        self._read_samples()
        self._read_events()
        self._read_training()
        newest, training = self._newest, self._training
        limit_s = max(OLD_AFTER_S, OLD_AFTER_TICKS * (self._interval() or 0.0))
        return LiveState(
            at_wall_s=time.time(),
            is_recorded=background.recorder_pid(self._folder) is not None,
            read_wall_s=None if newest is None else newest[0],
            is_old=newest is not None and time.monotonic() - newest[1] > limit_s,
            gpus=tuple(gpu.now(index) for index, gpu in sorted(self._gpus.items())),
            no_gpu=self._no_gpu,
            phase=training.phase,
            epoch=training.epoch,
            epochs=training.epochs,
            last_epoch=training.last_epoch,
        )

    def _interval(self) -> float | None:
        if self._interval_s is None:
            try:
                described = run_folder.read_json(self._folder / schema.RUN_JSON)
            except InputError:
                return None
            self._interval_s = run_folder.finite(described.get("interval_s")) or 1.0
        return self._interval_s

    def _read_samples(self) -> None:
        if not self._header:
            self._header = first_line(self._folder / schema.SAMPLES_CSV).decode("utf-8", "replace").split(",")
        for cells in csv.reader(line.decode("utf-8", "replace") for line in self._samples.lines()):
            row = dict(zip(self._header, cells, strict=False)) if len(cells) == len(self._header) else {}
            wall_s, mono_s, gpu = (_number(row.get(name)) for name in ("wall_s", "mono_s", "gpu"))
            if wall_s is not None and mono_s is not None and gpu is not None:
                self._newest = wall_s, mono_s
                readings = _number(row.get("gpu_util_pct")), _number(row.get("memory_used_mib"))
                self._gpus.setdefault(int(gpu), _NewestReadings()).take(wall_s, mono_s, *readings)

    def _read_events(self) -> None:
        for event in _objects(self._events):
            if event.get("kind") == "nvml_unavailable":
                self._no_gpu = str(event.get("reason") or "NVML is not available")

    def _read_training(self) -> None:
        for path in self._inside():
            if path not in self._processes and len(self._processes) < MOST_FILES:
                self._processes[path] = _FollowedProcess(BoundedTail(path))
        for process in self._processes.values():
            for line in filter(self._is_new, _objects(process.tail)):
                if line.get("kind") == "run":
                    process.is_followed = line.get("task") == "train" and line.get("rank") in {0, -1, None}
                    self._training = _TrainingNow() if process.is_followed else self._training
                if process.is_followed:
                    self._training.take(line)

    def _is_new(self, line: dict[str, Any]) -> bool:
        mono_s = run_folder.finite(line.get("mono_s"))
        return mono_s is not None and mono_s >= self._since_mono_s

    def _inside(self) -> list[Path]:
        try:
            return sorted((self._folder / schema.INSIDE_DIR).glob("*.jsonl"))
        except OSError:
            return []


def _objects(tail: BoundedTail) -> list[dict[str, Any]]:
    """Return the JSON objects of new lines; what is none is left out."""
    found = []
    for line in tail.lines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _number(cell: str | None) -> float | None:
    """Return a cell's number, None where it is empty or none."""
    try:
        return run_folder.finite(float(cell)) if cell else None
    except ValueError:
        return None
