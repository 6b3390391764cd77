"""The scheduler's side of NVML: asks for readings, writes what comes, and notices when nothing comes."""

import time
from collections.abc import Callable, Mapping, Sequence

from gpu_report.errors import UsageError
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.devices import Device, Opened
from gpu_report.record.health import Health
from gpu_report.record.journal import Journal, Say
from gpu_report.record.no_gpu import explain
from gpu_report.record.nvml_thread import Answer, HealthReading, NvmlThread, OpenFailed, Reading
from gpu_report.record.owners import Owners
from gpu_report.record.xid_events import XidThread

WAIT_S = 1.0  # a tick waits no longer than this for readings that take 0.1 ms a GPU when all is well ...
WAIT_SHARE = 0.5  # ... and no longer than this share of the interval, so that host rows keep to their grid
LAST_WAIT_S = 2.0  # the last tick reads all there is, 10 ms a GPU: the end waits that long for it, not for ever
POLL_S = 0.05  # how often a wait for NVML's opening looks for signals
STALL_S = 2.0  # a call that takes longer is a driver in trouble; a shorter one may be a machine with no core to spare
OPEN_PATIENCE_S = 10.0  # waking GPUs without persistence mode takes seconds; longer than this is worth an event
FINISH_S = 1.5  # how long the end of a recording waits for NVML's threads before it abandons them


class GpuWatch:
    """The GPUs of one recording. `devices` is empty until NVML has been opened."""

    def __init__(self, wanted: Sequence[str], interval_s: float, *, detail: bool = False) -> None:
        self._nvml = NvmlThread(wanted, detail=detail)
        self._wait_s = min(WAIT_SHARE * interval_s, WAIT_S)
        self._xid: XidThread | None = None
        self._stalled = False
        self._failed = False
        self._clean: bool | None = None
        self._first: Opened | OpenFailed | None = None
        self._health_end: dict[int, Health] = {}
        self._health_before: dict[str, object] = {}
        self.devices: tuple[Device, ...] = ()
        self.pids: dict[int, set[int]] = {}

    @property
    def owners(self) -> Owners:
        """Return what tells the trainer's processes from others, to be told of the training."""
        return self._nvml.owners

    def await_open(self, limit_s: float, interrupted: Callable[[], bool]) -> Opened | OpenFailed | None:
        """Wait for NVML to open: None when it does not answer in time; UsageError for a GPU that is not there."""
        deadline = time.monotonic() + limit_s
        while self._first is None and time.monotonic() < deadline and not interrupted():
            for answer in self._nvml.collect(POLL_S):
                if isinstance(answer, OpenFailed) and isinstance(answer.error, UsageError):
                    raise answer.error
                if isinstance(answer, Opened | OpenFailed):
                    self._first = answer
        return self._first

    def begin(self, answer: Opened | OpenFailed, journal: Journal, say: Say) -> None:
        """Take NVML's first answer: describe the GPUs, or say why there are none."""
        at = clocks.now()
        if isinstance(answer, OpenFailed):
            self._failed = True
            why = explain(answer.code, answer.error)
            journal.event("nvml_unavailable", at, {"reason": why.reason, "advice": why.advice})
            say(f"no GPU readings: {why.reason}. {why.advice[:1].upper()}{why.advice[1:]}")
            return
        self.devices = answer.devices
        for index, reason in answer.unusable:
            journal.event("nvml_error", at, {"gpu": index, "quantity": "all", "reason": reason})
        journal.describe({**versions(answer), "gpus": self.described()})
        self._xid = XidThread(answer.devices, journal.event)

    def described(self) -> list[dict[str, object]]:
        """Return run.json's `gpus`, with their health at the end once that was read."""
        return [
            {
                **device.description,
                "health_start": self._health_before.get(
                    str(device.description["uuid"]), device.description["health_start"]
                ),
                "health_end": self._health_end.get(device.index),
            }
            for device in self.devices
        ]

    def go_on_from(self, earlier: Mapping[str, object]) -> None:
        """Keep the start that GPUs had in an earlier recording into the same folder (its run.json)."""
        gpus = earlier.get("gpus")
        known = [gpu for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []
        self._health_before = {str(gpu.get("uuid")): gpu["health_start"] for gpu in known if gpu.get("health_start")}

    def tick(self, at: Clocks, journal: Journal, say: Say, *, last: bool = False) -> None:
        """Write a row a GPU: its readings, or empty cells while NVML does not answer. `last`: read all quantities."""
        if self._failed:
            return
        self._take(self._nvml.collect(0), journal, say)  # an earlier tick's answer, if it has come at last
        if self._nvml.busy:
            self._note_stall(at, journal)
            for device in self.devices:
                journal.sample(at, device.index, {})
        elif self.devices:
            self._nvml.ask("read all" if last else "read")
            self._take(self._nvml.collect(LAST_WAIT_S if last else self._wait_s), journal, say)
            self._note_recovery(at, journal)

    def finish(self) -> bool:
        """End NVML's threads; False when one hangs in the driver. A second call only repeats the answer."""
        if self._clean is None:
            xid_done = self._xid is None or self._xid.finish(FINISH_S)
            # NVML must not be shut down while another thread is in a call: it would crash on the way out
            self._clean = xid_done and not self._nvml.busy and self._nvml.finish(FINISH_S)
        return self._clean

    def _take(self, answers: Sequence[Answer], journal: Journal, say: Say) -> None:
        for answer in answers:
            if isinstance(answer, Reading):
                self._write(answer, journal)
            elif isinstance(answer, HealthReading):
                self._health_end[answer.gpu] = answer.health
            elif isinstance(answer, Opened | OpenFailed):
                self.begin(answer, journal, say)

    def _write(self, reading: Reading, journal: Journal) -> None:
        journal.sample(reading.at, reading.gpu, reading.values)
        journal.ring(reading.gpu, [(ring.at, ring.column, ring.value) for ring in reading.ring])
        for change in reading.changes:
            fields = {"gpu": change.gpu, "quantity": change.quantity}
            if change.reason is None:
                journal.event("nvml_recovered", reading.at, fields)
            else:
                journal.event("nvml_error", reading.at, {**fields, "reason": change.reason})
        present = self.pids.setdefault(reading.gpu, set())
        for process in reading.processes:
            (present.discard if process.change == "gone" else present.add)(process.pid)
            journal.process(reading.at, process.as_row())

    def _note_stall(self, at: Clocks, journal: Journal) -> None:
        waited_s = time.monotonic() - self._nvml.asked_s
        if not self._stalled and waited_s > (STALL_S if self.devices else OPEN_PATIENCE_S):
            self._stalled = True
            journal.event("nvml_stalled", at, {"seconds": round(waited_s, 3)})

    def _note_recovery(self, at: Clocks, journal: Journal) -> None:
        if self._stalled and not self._nvml.busy:
            self._stalled = False
            journal.event("nvml_recovered", at, {"gpu": None, "quantity": "all"})


def versions(opened: Opened) -> dict[str, str | None]:
    """Return the driver's versions as run.json holds them."""
    return {"driver": opened.driver, "nvml": opened.nvml, "cuda": opened.cuda}
