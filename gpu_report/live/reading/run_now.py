"""A run folder that grows: everything that is known of the run at this moment."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from gpu_report import run_folder, schema
from gpu_report.errors import InputError
from gpu_report.inside.on_path.gpu_report_inside.profiler.requests import is_recorded
from gpu_report.live.reading.events import Events
from gpu_report.live.reading.gpu_readings import GpuReadings
from gpu_report.live.reading.samples import LiveSamples
from gpu_report.live.reading.training import LiveTraining, Processes
from gpu_report.run_folder import finite

State = Literal["waiting", "recording", "recorder gone", "ended", "folder gone"]
# A recorder that lives writes a row each interval. On a file system without locks that is the only sign of it.
ALIVE_INTERVALS = 3.0
ALIVE_AT_LEAST_S = 5.0
RUN_JSON_EVERY_S = 10.0  # it is written anew at the beginning, when YOLO is found and at the end
LOOK_AT_LEAST_EVERY_S = 2.0
STALE_S = 15.0  # a reading older than this, and than ALIVE_INTERVALS, is none of now


@dataclass(frozen=True)
class Device:
    """What run.json says of a GPU; None where it does not know."""

    name: str | None = None
    uuid: str | None = None
    memory_mib: float | None = None


class RunNow:
    """One run folder, looked at again and again. All times are wall seconds."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._begin()

    def _begin(self) -> None:
        self.samples, self.events, self._processes = (
            LiveSamples(self.folder),
            Events(self.folder),
            Processes(self.folder),
        )
        self._facts: Mapping[str, Any] = {}
        self._facts_read_s = float("-inf")
        self.devices: dict[int, Device] = {}
        self._inode: int | None = None
        self._size, self._host_size, self._looked_s = -1, 0, float("-inf")
        self.is_recorded = self.is_there = False

    def look(self) -> bool:
        """Take in what has come; return whether there is a newer row. OSError where the disk says so."""
        try:
            inode = self.folder.stat().st_ino
        except FileNotFoundError:
            self.is_there = self.is_recorded = False
            return False
        if self._inode is not None and (self._inode != inode or not self.is_there):
            self._begin()
        self._inode, self.is_there = inode, True
        self._read_facts()
        self.samples.interval_s = self.interval_s
        if not self._may_be_new():
            return False
        came = self.samples.look() or self._host_came()
        self.events.look()
        self._processes.look()
        self.is_recorded = is_recorded(str(self.folder))
        return came

    def _may_be_new(self) -> bool:
        """Tell whether to look at the files: at each new row, and now and then, for the callbacks write between two."""
        size = _size(self.folder / schema.SAMPLES_CSV)
        is_due = time.monotonic() - self._looked_s >= LOOK_AT_LEAST_EVERY_S
        if size == self._size and not is_due and not self.samples.is_behind:
            return False
        self._size, self._looked_s = size, time.monotonic()
        return True

    def _host_came(self) -> bool:
        """Tell whether there is a newer row of the host, on a machine of whose GPUs there are none."""
        before, self._host_size = self._host_size, _size(self.folder / schema.HOST_CSV)
        return not self.samples.gpus and self._host_size > before

    def _read_facts(self) -> None:
        now_s = time.monotonic()
        if now_s - self._facts_read_s < RUN_JSON_EVERY_S:
            return
        try:
            facts = run_folder.read_json(self.folder / schema.RUN_JSON)
        except InputError:
            return  # not yet written
        self._facts, self._facts_read_s = facts, now_s
        gpus = facts.get("gpus")
        given = [each for each in gpus if isinstance(each, dict)] if isinstance(gpus, list) else []
        self.devices = {int(index): _device(each) for each in given if (index := finite(each.get("index"))) is not None}

    @property
    def interval_s(self) -> float:
        """Return the time between two samples."""
        return finite(self._facts.get("interval_s")) or 1.0

    @property
    def host(self) -> str | None:
        """Return the machine's name, None where it is not known."""
        host = self._facts.get("host")
        name = host.get("name") if isinstance(host, dict) else None
        return name if isinstance(name, str) else None

    @property
    def training(self) -> LiveTraining | None:
        """Return the newest training, None where none is known."""
        return self._processes.newest

    @property
    def running(self) -> list[LiveTraining]:
        """Return the trainings that have not ended."""
        return self._processes.running

    @property
    def gpus(self) -> list[GpuReadings]:
        """Return the GPUs in the order of their index."""
        return [self.samples.gpus[index] for index in sorted(self.samples.gpus)]

    @property
    def last_s(self) -> float | None:
        """Return when the newest row was written, None without any."""
        return max((gpu.at_s for gpu in self.samples.gpus.values()), default=None)

    def state(self, now_s: float) -> State:
        """Return whether it is being recorded; readings are of now only then."""
        if not self.is_there:
            return "folder gone" if self._inode is not None else "waiting"
        if self.events.ended_s is not None:
            return "ended"
        alive_s = max(ALIVE_INTERVALS * self.interval_s, ALIVE_AT_LEAST_S)
        if self.is_recorded or (self.last_s is not None and now_s - self.last_s < alive_s):
            return "recording"
        return "recorder gone" if self.last_s is not None or self.events.started_s is not None else "waiting"

    def is_of_now(self, gpu: GpuReadings, now_s: float) -> bool:
        """Tell whether a GPU's newest reading may be shown as what it does now."""
        return self.state(now_s) == "recording" and -self.fresh_s <= now_s - gpu.at_s <= self.fresh_s

    @property
    def fresh_s(self) -> float:
        """Return how old a reading may be that is shown as one of now."""
        return max(STALE_S, ALIVE_INTERVALS * self.interval_s)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _device(facts: Mapping[str, Any]) -> Device:
    name, uuid = (value if isinstance(value := facts.get(key), str) else None for key in ("name", "uuid"))
    return Device(name, uuid, finite(facts.get("memory_total_mib")))
