"""Hours and days at a tick a second, by a clock that runs fast: no drift, and no growth of what the recorder keeps."""

import itertools
import math
import os
import statistics
import threading
import time
import tracemalloc
from pathlib import Path

import pytest
from support.simulated_machine import WELL, Health, Machine, recorder_on

from gpu_report.load import load_run
from gpu_report.record.clocks import Clocks
from gpu_report.record.cost import Cost
from gpu_report.record.gpu.flapping import Flapping
from gpu_report.record.gpu.nvml_quantities import Change
from gpu_report.record.gpu.process_owners import Owners
from gpu_report.record.gpu.processes import ProcessWatch
from gpu_report.record.gpu.sampler import GpuWatch
from gpu_report.record.lifecycle import tick_loop
from gpu_report.record.lifecycle.recording import OpenRecording
from gpu_report.record.lifecycle.stop_request import RecordingEnd
from gpu_report.record.lifecycle.tick_loop import Session, SessionSources
from gpu_report.record.options import RecordOptions
from gpu_report.record.run_folder_writer import Journal

HOURS = 3  # 8 and 24 were no other, and took as many times as long
LONG_S = HOURS * 3600
MARK_S = 1200  # between two looks at the memory: 8, of which the median is the same each time
JITTER_S = (0.0, 0.012, 0.003, 0.04)  # how late the operating system wakes us


class FastClock:
    """A clock that stands still but for the recorder's own sleep; it also plays the end of the recording."""

    def __init__(self):
        self.now_s = 1000.0
        self.jitter_s = itertools.cycle(JITTER_S)
        self.marks = {}

    def clocks(self):
        return Clocks(1.8e9 + self.now_s, self.now_s, self.now_s)

    def wait_until(self, mono_s):
        self.now_s = max(self.now_s, mono_s) + next(self.jitter_s)
        mark = int((self.now_s - 1000) // MARK_S)
        if mark not in self.marks:
            self.marks[mark] = tracemalloc.get_traced_memory()[0]
        return RecordingEnd("signal", "SIGTERM") if self.now_s >= 1000 + LONG_S else None


class FlappingGpus:
    """One GPU whose power fails every other tick, and processes that come and go with new pids all the time."""

    def __init__(self):
        self.pids = {0: set()}
        self.owners = Owners()
        self.flapping = Flapping()
        self.processes = ProcessWatch(0, self.owners)
        self.ticks = 0

    def tick(self, at, journal, say, *, last=False):
        self.ticks += 1
        journal.sample(at, 0, {"gpu_util_pct": 97, "power_w": 600.0 if self.ticks % 2 else None})
        change = Change(0, "power_w", None if self.ticks % 2 else f"error {self.ticks}")
        for told in self.flapping.admit([change], at.mono_s):
            journal.event("nvml_error", at, {"gpu": 0, "quantity": told.quantity, "reason": told.reason})
        if self.ticks % 5 == 0:
            self.processes.update({4_000_000 + self.ticks: 4000.0})


class BrokenYolo:
    def __init__(self):
        self.ticks = 0

    def search_now(self):
        self.ticks += 1

    def tick(self, at, pids, emit):
        self.ticks += 1
        raise RuntimeError(f"another text each time: {self.ticks}")


class Constant:
    def sample(self, *_):
        return {"cpu_pct": 12.0}


@pytest.fixture
def fast(monkeypatch):
    clock = FastClock()

    class FastTime:
        monotonic = staticmethod(lambda: clock.now_s)

    monkeypatch.setattr(tick_loop, "time", FastTime)
    monkeypatch.setattr(tick_loop.clocks, "now", clock.clocks)
    for sampler in ("HostSampler", "PressureSampler", "CpuClock", "TrainerTree"):
        monkeypatch.setattr(tick_loop, sampler, Constant)
    return clock


def test_hours_of_ticks_drift_by_nothing_and_keep_nothing(fast, tmp_path):
    said = []
    journal = Journal(tmp_path / "run", said.append)
    gpus = FlappingGpus()
    recording = Session(RecordOptions(interval_s=1.0), SessionSources(journal, gpus, BrokenYolo(), None), said.append)
    tracemalloc.start()
    began = time.monotonic()
    try:
        assert recording.run(fast) == RecordingEnd("signal", "SIGTERM")
    finally:
        tracemalloc.stop()
    journal.close()
    rows = (tmp_path / "run/samples.csv").read_text().splitlines()[1:]
    stamps = [float(row.split(",")[1]) for row in rows]
    assert len(stamps) == LONG_S + 1
    late_s = [stamp - 1000.0 - number for number, stamp in enumerate(stamps[:-1])]
    assert 0 <= min(late_s) <= max(late_s) <= max(JITTER_S) + 0.001
    marks = [fast.marks[mark] for mark in range(1, LONG_S // MARK_S)]
    hourly = [3600 / MARK_S * (after - before) for before, after in itertools.pairwise(marks)]
    assert abs(statistics.median(hourly)) < 300, fast.marks  # Python's own tables may grow once, by a step
    assert len(said) < 40
    assert (tmp_path / "run/events.jsonl").stat().st_size < 1_000_000
    assert time.monotonic() - began < 60


def test_cost_keeps_no_tick():
    few, many = Cost(1.0), Cost(1.0)
    few.tick(0.0, 0.001)
    for _ in range(10_000):
        many.tick(0.0, 0.001)
    assert len(few._ticks) == len(many._ticks)


MOST_GROWN_MIB = 4.0  # of the process, from its first hour to its last; a page an hour would be 0.7 in a week
BAD_S = 30.0  # so long each trouble lasts, once an hour


class Hours:
    """A StopRequest: lets a machine's hours go by, each with every trouble in it, and then ends the recording."""

    def __init__(self, machine, hours):
        self.machine, self.hours = machine, hours
        self.began_s, self.rss_mib = machine.mono_s, []
        self.todo = self.troubles()
        self.at_s, self.change = next(self.todo)

    def troubles(self):
        machine = self.machine
        for begin_s in itertools.count(self.began_s, 3600.0):
            yield begin_s + 300.0, lambda: machine.becomes(0, Health(lost=True))
            yield begin_s + 300.0 + BAD_S, lambda: machine.becomes(0, WELL)
            yield begin_s + 900.0, lambda: machine.becomes(0, Health(takes_s=math.inf))
            yield begin_s + 900.0 + BAD_S, lambda: machine.becomes(0, WELL)
            yield begin_s + 1500.0, lambda: machine.becomes(0, Health(columns=frozenset({"power_w"})))
            yield begin_s + 1500.0 + BAD_S, lambda: machine.becomes(0, WELL)
            yield begin_s + 2100.0, lambda: setattr(machine, "full", True)
            yield begin_s + 2100.0 + BAD_S, lambda: setattr(machine, "full", False)
            yield begin_s + 2700.0, lambda: machine.set_clock(3600.0)
            yield begin_s + 2700.0 + BAD_S, lambda: machine.set_clock(-3600.0)
            yield begin_s + 3500.0, lambda: self.rss_mib.append(rss_mib())

    def wait_until(self, mono_s):
        self.machine.pass_until(mono_s)
        while self.at_s <= self.machine.mono_s:
            self.change()
            self.at_s, self.change = next(self.todo)
        return RecordingEnd("signal", "SIGTERM") if mono_s >= self.began_s + 3600.0 * self.hours else None


def rss_mib():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def held():
    """Return what a process holds: its file handles, and its threads."""
    return sorted(path.name for path in Path("/proc/self/fd").iterdir())[:-1], threading.active_count()


@pytest.mark.parametrize(
    "hours", [2, pytest.param(24, marks=pytest.mark.long), pytest.param(7 * 24, marks=pytest.mark.long)]
)
@pytest.mark.timeout(3000)
def test_days_of_every_trouble_leave_nothing_behind_but_a_run(tmp_path, hours):
    machine, said, before = Machine(), [], held()
    with recorder_on(machine):
        gpus, ending = GpuWatch((), 1.0), Hours(machine, hours)
        options = RecordOptions(output=tmp_path / "run", yolo=tmp_path / "none")
        OpenRecording(options, said.append).run(gpus, None, ending)
    assert held() == before
    assert len(ending.rss_mib) == hours
    assert ending.rss_mib[-1] - ending.rss_mib[min(1, hours - 2)] < MOST_GROWN_MIB
    begun, *troubles = said
    assert begun.startswith("recording ")
    assert troubles == [
        f"{tmp_path / 'run' / 'samples.csv'} could not be written (No space left on device): rows are being lost. "
        f"`df -h {tmp_path / 'run'}` shows whether its disk is full. Recording continues"
    ]
    run = load_run(tmp_path / "run")
    assert run.duration_s == pytest.approx(3600.0 * hours, abs=2.0)
    ticks = 3600 * hours - machine.refused["samples.csv"]
    assert ticks - 2 * hours <= len(run.samples) <= ticks + 1
    kinds = [event.kind for event in run.events]
    assert kinds.count("clock_step") == 2 * hours
    assert kinds.count("nvml_stalled") == hours
    lost = [event.fields for event in run.events if event.kind == "rows_lost"]
    for name in ("samples.csv", "host.csv", "ring.csv"):
        assert sum(fields["rows"] for fields in lost if fields["file"] == name) == machine.refused[name] > 0
