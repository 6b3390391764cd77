"""The scheduler's side of NVML: asks for readings, writes what comes, and notices when nothing comes."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpu_report.errors import UsageError
from gpu_report.gpu_words import gpu_words
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.gpu.devices import NvmlDevice, Opened
from gpu_report.record.gpu.flapping import Flapping
from gpu_report.record.gpu.health import Health
from gpu_report.record.gpu.no_gpu import NO_ANSWER, Unavailable, explain, none_answers
from gpu_report.record.gpu.nvml_quantities import ALL_QUANTITIES, Change
from gpu_report.record.gpu.nvml_thread import OpenFailed, OpenThread, ReadThread, shut_down
from gpu_report.record.gpu.process_owners import OTHER, Owners
from gpu_report.record.gpu.reader import GpuReader, GpuReading
from gpu_report.record.gpu.xid_events import XidThread
from gpu_report.record.run_folder_writer import Journal, Say

WAIT_S = 1.0  # a tick waits no longer than this for readings that take 0.1 ms a GPU when all is well ...
WAIT_SHARE = 0.5  # ... and no longer than this share of the interval, so that host rows keep to their grid
# The last tick has no successor that could take its answer, and the run's energy and rings are in it: so long it waits
# for a request that is under way, and as long for its own.
LAST_WAIT_S = 2.0
POLL_S = 0.05  # how often a wait for NVML's opening looks for signals
SPLIT_S = 0.9  # then (at 1 Hz: by the next tick) the other GPUs of a thread whose call does not return get another one
# A reading takes 1 to 20 ms. One that takes longer than this is told, and its row left empty: what was read before and
# after the wait is of two moments.
STALL_S = 1.0
OPEN_PATIENCE_S = 10.0  # waking GPUs without persistence mode takes seconds; longer than this is worth an event
FINISH_S = 1.5  # how long the end of a recording waits for NVML's threads before it abandons them


class GpuWatch:
    """The GPUs of one recording. `devices` is empty until NVML has been opened."""

    def __init__(self, wanted: Sequence[str], interval_s: float, *, detail: bool = False) -> None:
        self._start = clocks.now()
        self._opening = OpenThread(wanted)
        self._detail = detail
        self._wait_s = min(WAIT_SHARE * interval_s, WAIT_S)
        self._readers: list[GpuReader] = []
        self._threads: list[ReadThread] = []
        self._xid: XidThread | None = None
        self._stalled: set[int | None] = set()
        self._flapping = Flapping()
        self._begun = False
        self._clean: bool | None = None
        self._health_before: dict[str, object] = {}
        self._health_end: dict[int, Health] = {}
        self.owners = Owners()
        self.devices: tuple[NvmlDevice, ...] = ()
        self.pids: dict[int, set[int]] = {}
        self.others: set[int] = set()  # of these, the processes that are known to be of no training of ours
        self.util_pct: dict[int, float | None] = {}  # at the last tick, of the GPUs that answered then

    def await_open(self, limit_s: float, interrupted: Callable[[], bool]) -> Opened | OpenFailed | None:
        """Wait for NVML to open: None when it does not answer in time; UsageError for a GPU that is not there."""
        deadline = time.monotonic() + limit_s
        while (answer := self._opening.answer(POLL_S)) is None:
            if time.monotonic() > deadline or interrupted():
                return None
        if isinstance(answer, OpenFailed) and isinstance(answer.error, UsageError):
            raise answer.error
        return answer

    @property
    def answer(self) -> Opened | OpenFailed | None:
        """Return what NVML answered when it was opened, None so far."""
        return self._opening.answer(0)

    def go_on_from(self, earlier: Mapping[str, object]) -> None:
        """Keep the start that GPUs had in an earlier recording into the same folder (its run.json)."""
        gpus = earlier.get("gpus")
        known = [gpu for gpu in gpus if isinstance(gpu, dict)] if isinstance(gpus, list) else []
        self._health_before = {str(gpu.get("uuid")): gpu["health_start"] for gpu in known if gpu.get("health_start")}

    def described(self) -> list[dict[str, object]]:
        """Return run.json's `gpus`, with their health at the end once that was read."""
        return [self._described(device) for device in self.devices]

    def tick(self, at: Clocks, journal: Journal, say: Say, *, last: bool = False) -> None:
        """Write a row a GPU: its readings, or empty cells while NVML does not answer. `last`: read all quantities."""
        if not self._begun:
            self._begin(at, journal, say, last=last)
        self.util_pct.clear()
        until_s = time.monotonic() + (LAST_WAIT_S if last else 0.0)
        late = [reading for thread in self._threads for reading in thread.collect(until_s)]  # asked for earlier
        asked = [thread for thread in self._threads if not thread.busy]
        for thread in asked:
            thread.ask("all" if last else "due")
        until_s = time.monotonic() + (LAST_WAIT_S if last else self._wait_s)
        for reading in [*late, *(reading for thread in asked for reading in thread.collect(until_s))]:
            self._write(reading, at, journal)
        for thread in [thread for thread in self._threads if thread not in asked]:
            self._without_answer(thread, at, journal)
        self._write_changes([], at, journal, last=last)

    def finish(self) -> bool:
        """End NVML's threads; False when one hangs in the driver. A second call only repeats the answer."""
        if self._clean is None:
            xid_done = self._xid is None or self._xid.finish(FINISH_S)
            idle = [thread.finish(FINISH_S) for thread in self._threads if not thread.busy]
            opened = self._opening.answer(0) is not None
            # NVML must not be shut down while another thread is in a call: it would crash on the way out
            calm = xid_done and opened and len(idle) == len(self._threads) and all(idle)
            self._clean = calm and shut_down(self._readers, FINISH_S)
        return self._clean

    def _begin(self, at: Clocks, journal: Journal, say: Say, *, last: bool) -> None:
        """Take NVML's answer, once it is there: describe the GPUs, or say why there are none."""
        answer = self._opening.answer(0)
        if answer is None:
            self._await_opening(at, journal, say, last=last)
            return
        self._begun = True
        self._note_recovery(None, at, journal)
        if isinstance(answer, OpenFailed):
            _say_none(explain(answer.code, answer.error), at, journal, say)
            return
        self._describe(answer, at, journal)
        if not answer.devices:
            _say_none(none_answers(answer.unusable), at, journal, say)
            return
        for index, reason in answer.unusable:
            say(f"no readings of {gpu_words(index)}: {reason}")
        self._readers = [GpuReader(device, self._start, self.owners, detail=self._detail) for device in answer.devices]
        self._threads = [ReadThread(self._readers)]
        self._xid = XidThread(answer.devices, journal.event)

    def _await_opening(self, at: Clocks, journal: Journal, say: Say, *, last: bool) -> None:
        """Say that NVML takes its time, once; at the end of the recording, that it never answered."""
        if last:
            _say_none(NO_ANSWER, at, journal, say)
        elif at.mono_s - self._opening.asked_s > OPEN_PATIENCE_S and None not in self._stalled:
            self._note_stall(None, at, self._opening.asked_s, journal)
            say(f"no GPU readings so far: {NO_ANSWER.reason}; {NO_ANSWER.advice}")

    def _describe(self, opened: Opened, at: Clocks, journal: Journal) -> None:
        self.devices = opened.devices
        self._write_changes([Change(index, ALL_QUANTITIES, reason) for index, reason in opened.unusable], at, journal)
        journal.describe({**versions(opened), "gpus": self.described()})

    def _described(self, device: NvmlDevice) -> dict[str, object]:
        before = self._health_before.get(str(device.description["uuid"]), device.description["health_start"])
        return {**device.description, "health_start": before, "health_end": self._health_end.get(device.index)}

    def _write(self, reading: GpuReading, at: Clocks, journal: Journal) -> None:
        """Write down a reading; what a call held up stands for no moment, and its cells stay empty."""
        held_up = reading.took_s > STALL_S
        journal.sample(reading.at, reading.gpu, {} if held_up else reading.values)
        if held_up:
            self._note_stall(reading.gpu, at, reading.at.mono_s, journal, reading.took_s)
        else:
            self.util_pct[reading.gpu] = reading.values.get("gpu_util_pct")
        journal.ring(reading.gpu, [(ring.at, ring.column, ring.value) for ring in reading.ring])
        self._note_recovery(reading.gpu, at, journal)
        self._write_changes(reading.changes, reading.at, journal)
        if reading.health is not None:
            self._health_end[reading.gpu] = reading.health
        present = self.pids.setdefault(reading.gpu, set())
        for process in reading.processes:
            (present.discard if process.change == "gone" else present.add)(process.pid)
            (self.others.add if process.seen.owner == OTHER else self.others.discard)(process.pid)
            journal.process(reading.at, process.as_row())

    def _write_changes(self, changes: Iterable[Change], at: Clocks, journal: Journal, *, last: bool = False) -> None:
        due = self._flapping.admit(changes, at.mono_s)
        for change in [*due, *(self._flapping.held() if last else ())]:
            fields = {"gpu": change.gpu, "quantity": change.quantity}
            if change.reason is None:
                journal.event("nvml_recovered", at, fields)
            else:
                journal.event("nvml_error", at, {**fields, "reason": change.reason})

    def _without_answer(self, thread: ReadThread, at: Clocks, journal: Journal) -> None:
        """Write empty rows for a thread in a call that has not returned; leave it to that call when that lasts."""
        for gpu in thread.gpus:
            journal.sample(at, gpu, {})
        waited_s = at.mono_s - thread.asked_s
        if waited_s > SPLIT_S and (others := thread.give_up_others()):
            self._threads.append(ReadThread(others))
        if waited_s > STALL_S:
            for gpu in thread.gpus:
                self._note_stall(gpu, at, thread.asked_s, journal)

    def _note_stall(
        self, gpu: int | None, at: Clocks, asked_s: float, journal: Journal, took_s: float | None = None
    ) -> None:
        """Say once that a call asked for at `asked_s` has not returned, or how long it `took_s` when it has."""
        if gpu not in self._stalled:
            self._stalled.add(gpu)
            waited_s = at.mono_s - asked_s if took_s is None else took_s
            journal.event("nvml_stalled", at, {"gpu": gpu, "seconds": round(waited_s, 3)})

    def _note_recovery(self, gpu: int | None, at: Clocks, journal: Journal) -> None:
        if gpu in self._stalled:
            self._stalled.discard(gpu)
            journal.event("nvml_recovered", at, {"gpu": gpu, "quantity": ALL_QUANTITIES})


def _say_none(why: Unavailable, at: Clocks, journal: Journal, say: Say) -> None:
    """Write down and say why no GPU is read."""
    journal.event("nvml_unavailable", at, {"reason": why.reason, "advice": why.advice})
    say(f"no GPU readings: {why.reason}. {why.advice[:1].upper()}{why.advice[1:]}")


def versions(opened: Opened) -> dict[str, str | None]:
    """Return the driver's versions as run.json holds them."""
    return {"driver": opened.driver, "nvml": opened.nvml, "cuda": opened.cuda}
