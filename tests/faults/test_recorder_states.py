"""What the recorder says of a machine is true, whatever happens to it, in any order; all of it in simulated time.

A run folder is recorded into by one recorder after the other. After each, what it wrote is compared with what the
machine had been through: its rows, its gaps, its faults, its clocks, its losses and its end.
"""

import contextlib
import itertools
import json
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test
from support.fuzzing import implausible
from support.run_folder_reader import RunFolder
from support.simulated_machine import (
    COLUMNS,
    COUNTER_A_SECOND,
    RING_S,
    WELL,
    Health,
    Killed,
    Machine,
    Recorder,
    is_counter,
    recorder_on,
    truth,
)

from gpu_report.analyse import analyse
from gpu_report.errors import InputError, UsageError
from gpu_report.load import load_run
from gpu_report.record.clocks import JUMP_S, Clocks
from gpu_report.record.gpu.nvml_quantities import LOST_RETRY_S, NVML_CALLS
from gpu_report.record.gpu.sampler import STALL_S
from gpu_report.record.lifecycle.stop_request import RecordingEnd
from gpu_report.record.lifecycle.tick_loop import GAP_INTERVALS
from gpu_report.record.options import RecordOptions
from gpu_report.render import render_html
from gpu_report.render.run.summary_json import build_summary

MOST_SLEW_S = 0.4  # by so much NTP moves a clock between two ticks, at most: what is more counts as set
ALWAYS = ("gpu_util_pct", "temperature_c", "sm_clock_mhz")  # read at each tick
STEADY_TICKS = 30
WHOLE = 0.51  # what rounding a reading to a whole number may change, and a little
STAMP_S = 0.0011  # ... and a stamp to milliseconds
PAGE_EVERY = 10  # runs: a page takes ten times as long as all the rest
# Between two recorders. Where a clock was set by less than a minute right before one begins, the driver's ring holds
# stamps of before that, which cannot be told from others: that is not played.
REST_S = RING_S + 1.0
HANG = Health(takes_s=math.inf)
GPUS = st.integers(0, 1)
CALLS = [call.columns for call in NVML_CALLS]


class Segment:
    """One recorder's part of a run: when it ticked, and how it ended."""

    def __init__(self, began: Clocks, interval_s: float) -> None:
        self.began = began
        self.interval_s = interval_s
        self.ticks: list[Clocks] = []
        self.told_end: dict[str, object] | None = None
        self.whole_events = True  # none was refused by the disk


class RecorderStates(RuleBasedStateMachine):
    """Everything that may happen to a recorder, and what must hold of what it wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="states-")) / "run"
        self.machine = Machine(gpus=2)
        self.segments: list[Segment] = []
        self.recorder: Recorder | None = None
        self.ticks_since_jump = 0
        self.killed = False
        self.runs = 0
        self._on = recorder_on(self.machine)
        self._on.__enter__()

    def teardown(self) -> None:
        if self.recorder is not None:
            self.stop(0.0)
        self._on.__exit__(None, None, None)
        shutil.rmtree(self.path.parent)

    # --- what happens ---------------------------------------------------------------------------------------------

    # A clock that jumps every few ticks is none to the loader, which then goes by the wall clock: that is not played.
    steady = precondition(lambda self: self.ticks_since_jump >= STEADY_TICKS)
    running = precondition(lambda self: self.recorder is not None)
    resting = precondition(lambda self: self.recorder is None)

    @initialize(interval_s=st.sampled_from([0.5, 1.0, 5.0]))
    def begin(self, interval_s: float) -> None:
        self.interval_s = interval_s
        self.start(None, 0.0)

    @resting
    @rule(duration_s=st.sampled_from([None, None, 7.0, 60.0]), opens_after_s=st.sampled_from([0.0, 0.0, 3.0, 15.0]))
    def start(self, duration_s: float | None, opens_after_s: float) -> None:
        """Begin to record, into the same folder again where there is one."""
        machine = self.machine
        machine.pass_until(machine.mono_s + REST_S)
        machine.opens_s = machine.mono_s + opens_after_s
        self.refused_before = Counter(machine.refused)
        self.killed = False
        segment = Segment(machine.clocks(), self.interval_s)
        options = RecordOptions(
            output=self.path, interval_s=self.interval_s, duration_s=duration_s, yolo=self.path.parent / "none"
        )
        self.recorder = Recorder(options)
        if self.recorder.deadline_s is None:
            assert machine.full
            assert isinstance(self.recorder.error, UsageError)
            self.recorder, machine.refused = None, self.refused_before
            return
        segment.whole_events = not machine.full
        self.segments.append(segment)

    @running
    @rule(ticks=st.integers(1, 40), late_s=st.sampled_from([0.0, 0.003, 0.04]))
    def tick(self, ticks: int, late_s: float) -> None:
        for _ in range(ticks):
            if self.recorder is None:
                return
            self.machine.pass_until(self.recorder.deadline_s + late_s)
            self._go_on()

    @running
    @rule(seconds=st.floats(0.1, 300.0).map(lambda s: round(s, 1)))
    def stopped_for_a_while(self, seconds: float) -> None:
        self.machine.pass_until(self.recorder.deadline_s + seconds)
        self._go_on()

    @rule(gpu=GPUS, columns=st.sets(st.sampled_from(COLUMNS), min_size=1, max_size=4))
    def fault(self, gpu: int, columns: set[str]) -> None:
        self.machine.becomes(gpu, Health(columns=frozenset(columns)))

    @rule(gpu=GPUS)
    def lost(self, gpu: int) -> None:
        self.machine.becomes(gpu, Health(lost=True))

    @rule(gpu=GPUS)
    def hang(self, gpu: int) -> None:
        self.machine.becomes(gpu, HANG)

    @rule(gpu=GPUS, seconds=st.sampled_from([0.2, 0.7, 1.3, 4.0]))
    def slow(self, gpu: int, seconds: float) -> None:
        self.machine.becomes(gpu, Health(takes_s=seconds))

    @rule(gpu=GPUS)
    def recover(self, gpu: int) -> None:
        self.machine.becomes(gpu, WELL)

    @rule(torn=st.booleans())
    def disk_full(self, torn: bool) -> None:
        self.machine.full, self.machine.torn = True, torn
        self._note_refused_events()

    @rule()
    def disk_well(self) -> None:
        self.machine.full = False

    @steady
    @rule(seconds=st.sampled_from([-3600.0, 3600.0, -2.0, 0.7]))
    def clock_set(self, seconds: float) -> None:
        self.ticks_since_jump = 0
        self.machine.set_clock(seconds)

    @rule(seconds=st.floats(-MOST_SLEW_S, MOST_SLEW_S).map(lambda s: round(s, 3)))
    def clock_slewed(self, seconds: float) -> None:
        self.machine.set_clock(seconds)

    @steady
    @rule(seconds=st.sampled_from([1.0, 600.0, 30_000.0]))
    def suspended(self, seconds: float) -> None:
        self.ticks_since_jump = 0
        self.machine.sleep(seconds)

    @running
    @rule(after_s=st.sampled_from([0.0, 0.05, 0.4]))
    def stop(self, after_s: float) -> None:
        """Let a signal arrive before the next tick."""
        self.machine.pass_until(min(self.machine.mono_s + after_s, self.recorder.deadline_s))
        self._go_on(RecordingEnd("signal", "SIGTERM"))

    @running
    @rule()
    def kill(self) -> None:
        self.killed = True
        self._go_on(Killed)

    # --- how it is followed ---------------------------------------------------------------------------------------

    def _go_on(self, order: object = None) -> None:
        """Let the recorder go on until it waits again; where it ended, compare."""
        segment = self.segments[-1]
        if order is not Killed:
            segment.ticks.append(self.machine.clocks())
            self.ticks_since_jump += 1
        self.recorder.go_on(order)
        self._note_refused_events()
        if self.recorder.deadline_s is None:
            ended, self.recorder = self.recorder, None
            if not self.killed:
                by = "duration" if order is None else "signal"
                segment.told_end = {"ended_by": by, "at": self.machine.clocks(), "written": not self.machine.full}
            self._compare(ended)

    def _note_refused_events(self) -> None:
        if self.segments and self.machine.refused["events.jsonl"] > self.refused_before["events.jsonl"]:
            self.segments[-1].whole_events = False

    def _compare(self, ended: Recorder) -> None:
        assert ended.error is None, ended.error
        assert not any("please report this" in line for line in ended.said), ended.said
        self.runs += 1
        folder = RunFolder(self.path)
        events = _events(folder)
        self._compare_losses(folder, ended)
        self._compare_clocks(events)
        self._compare_rows(folder.samples())
        self._compare_ring(folder.rows("ring.csv"))
        self._compare_faults(events)
        self._compare_end(events)
        self._compare_report(folder)

    def _compare_losses(self, folder: RunFolder, ended: Recorder) -> None:
        """Each row that the disk refused was reported, or, where that was refused too, that rows are missing."""
        segment = self.segments[-1]
        told: Counter[str] = Counter()
        for event in _of(segment, _events(folder), "rows_lost"):
            told[event["file"]] += event["rows"]
        for name in ("samples.csv", "host.csv", "ring.csv"):
            refused = self.machine.refused[name] - self.refused_before[name]
            if segment.told_end and segment.told_end["written"]:
                assert told[name] == refused, (name, told, refused)
            assert told[name] <= refused
        if segment.told_end and self.machine.refused != self.refused_before:
            assert "some of it could not be written" in ended.recording.outcome

    def _compare_clocks(self, events: Sequence[dict]) -> None:
        """Gaps, set clocks and suspends are those that took place."""
        segment = self.segments[-1]
        true = [found for two in itertools.pairwise(segment.ticks) for found in _between(*two, segment.interval_s)]
        kinds = ("gap", "clock_step", "suspend")
        told = [(e["kind"], e["mono_s"], e["seconds"]) for e in _of(segment, events, *kinds)]
        left = list(told)
        for kind, mono_s, seconds in true:
            found = [each for each in left if each[0] == kind and abs(each[1] - mono_s) < STAMP_S]
            assert found or not segment.whole_events, (kind, mono_s, seconds, told)
            if found:
                assert found[0][2] == pytest.approx(seconds, abs=STAMP_S)
                left.remove(found[0])
        assert not left, (left, true)

    def _compare_rows(self, rows: Sequence[dict]) -> None:
        """A row has what its GPU read at its moment, and nothing of what could not be read then."""
        for row in rows:
            if (moment := _moment(row)) is not None:
                self._compare_row(row, *moment)
        segment = self.segments[-1]
        if not self._took_long(segment):
            opened = [tick for tick in segment.ticks if tick.mono_s >= self.machine.opens_s]
            whole = [row for row in rows if _is_whole(row) and _is_in(segment, float(row["mono_s"]))]
            refused = self.machine.refused["samples.csv"] - self.refused_before["samples.csv"]
            assert len(whole) == len(self.machine.health) * len(opened) - refused
            if not refused:
                stamps = [round(tick.mono_s, 3) for tick in opened for _ in self.machine.health]
                assert [float(row["mono_s"]) for row in whole] == stamps

    def _compare_row(self, row: dict, mono_s: float, gpu: int) -> None:
        health = self.machine.health_at(gpu, mono_s)
        cells = {name: number for name in COLUMNS if (number := _number(row[name])) is not None}
        if health.lost or self.machine.answers_s(gpu, mono_s) - mono_s > STALL_S:
            assert not cells, (row, health)
        if not health.takes_s:
            assert not health.columns & set(cells), (row, health)
        for name, number in cells.items():
            assert _is_true(name, gpu, mono_s, number), (name, number, row)
        if self._is_well(gpu, mono_s) and _is_whole(row):
            assert set(ALWAYS) <= set(cells), row

    def _is_well(self, gpu: int, mono_s: float) -> bool:
        """Tell whether nothing has kept a GPU from being read for as long as the recorder is careful after a fault."""
        mine = self._healths(gpu, mono_s - LOST_RETRY_S, mono_s)
        others = [h for each in self.machine.health for h in self._healths(each, mono_s - 3 * STALL_S - 15.0, mono_s)]
        return all(health == WELL for health in mine) and not any(health.takes_s for health in others)

    def _healths(self, gpu: int, begin_s: float, end_s: float) -> list[Health]:
        """Return how a GPU was in a stretch of time."""
        within = [health for since, health in self.machine.health[gpu] if begin_s <= since < end_s]
        return [self.machine.health_at(gpu, begin_s), *within]

    def _took_long(self, segment: Segment) -> bool:
        """Tell whether any GPU took its time in a recording."""
        spans = (self._healths(gpu, segment.began.mono_s, self.machine.mono_s) for gpu in self.machine.health)
        return any(health.takes_s for span in spans for health in span)

    def _compare_ring(self, rows: Sequence[dict]) -> None:
        """What the driver kept stands at the moment at which it was read, wherever the wall clock was set to."""
        for row in rows:
            moment, value = _moment(row), _number(row["gpu_util_pct"])
            if moment is not None and value is not None:
                near = (moment[0] + shift for shift in (-1.0, 0.0, 1.0))
                assert value in {truth("gpu_util_pct", moment[1], each) for each in near}, row

    def _compare_faults(self, events: Sequence[dict]) -> None:
        """How each quantity stands by the last that was said of it is how it stands."""
        segment = self.segments[-1]
        if self.killed or not segment.whole_events or not segment.ticks or self._took_long(segment):
            return
        last_s = segment.ticks[-1].mono_s
        said = {(e["gpu"], e["quantity"]): e["kind"] for e in _of(segment, events, "nvml_error", "nvml_recovered")}
        for gpu in self.machine.health if last_s >= self.machine.opens_s else ():
            healths = self._healths(gpu, last_s - LOST_RETRY_S, last_s)
            if any(health.lost for health in healths):
                assert not healths[-1].lost or said[gpu, "all"] == "nvml_error"
                continue
            failing = {name for (of, name), kind in said.items() if of == gpu and kind == "nvml_error"}
            assert failing == self._failing(healths[-1]), (gpu, said)

    def _failing(self, health: Health) -> set[str]:
        """Return the columns that a fault leaves empty: those of the calls that it is in."""
        return {name for columns in CALLS if health.columns & set(columns) for name in columns}

    def _compare_end(self, events: Sequence[dict]) -> None:
        segment = self.segments[-1]
        if not segment.told_end:
            return
        if segment.told_end["written"]:
            info = json.loads((self.path / "run.json").read_text())
            assert info["ended_by"] == segment.told_end["ended_by"]
            assert info["end"]["mono_s"] == pytest.approx(segment.told_end["at"].mono_s, abs=STAMP_S)
            (ended,) = _of(segment, events, "recording_ended")
            assert ended["ended_by"] == info["ended_by"]

    def _compare_report(self, folder: RunFolder) -> None:
        """The folder is read for what stands in it, and a report of it can be."""
        moments = sorted({moment for row in folder.samples() if (moment := _moment(row))})
        if not moments:
            with contextlib.suppress(InputError):  # a part of a row may be all that there is, and count as one
                load_run(self.path)
            return
        run = load_run(self.path)
        times = zip(run.samples["t_s"] + moments[0][0], run.samples["gpu"], strict=True)
        assert {(round(t_s, 3), gpu) for t_s, gpu in times} == set(moments)
        segment = self.segments[-1]
        last_s = moments[-1][0] - moments[0][0]
        if segment.told_end and segment.told_end["written"]:
            assert run.recording.ended_by == segment.told_end["ended_by"]
            end_s = segment.told_end["at"].mono_s - moments[0][0]
            assert run.duration_s == pytest.approx(max(end_s, last_s), abs=2 * STAMP_S)
        else:
            assert last_s - STAMP_S <= run.duration_s
            assert run.duration_s <= self.machine.mono_s - moments[0][0] + segment.interval_s + STAMP_S
        analysis = analyse(run)
        assert implausible(build_summary(analysis)) is None
        if self.runs % PAGE_EVERY == 1:
            assert "<html" in render_html(analysis)


def _events(folder: RunFolder) -> list[dict]:
    """Return the events of a folder, but for lines that were cut short."""
    lines = (folder.path / "events.jsonl").read_text().splitlines()
    return [event for line in lines if (event := _event(line))]


def _event(line: str) -> dict | None:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _of(segment: Segment, events: Sequence[dict], *kinds: str) -> list[dict]:
    return [event for event in events if event["kind"] in kinds and _is_in(segment, event["mono_s"])]


def _is_in(segment: Segment, mono_s: float) -> bool:
    """Tell whether a moment is of a segment, which is the last one."""
    return mono_s >= segment.began.mono_s - STAMP_S


def _between(before: Clocks, after: Clocks, interval_s: float) -> list[tuple[str, float, float]]:
    """Return what is to be said of two ticks."""
    mono_s, boot_s, wall_s = (getattr(after, name) - getattr(before, name) for name in ("mono_s", "boot_s", "wall_s"))
    found = {"gap": mono_s if mono_s > (1 + GAP_INTERVALS) * interval_s else 0.0}
    found["suspend"] = boot_s - mono_s if boot_s - mono_s > JUMP_S else 0.0
    found["clock_step"] = wall_s - boot_s if abs(wall_s - boot_s) > JUMP_S else 0.0
    return [(kind, after.mono_s, seconds) for kind, seconds in found.items() if seconds]


def _number(cell: str | None) -> float | None:
    try:
        return float(cell or "")
    except ValueError:
        return None


def _moment(row: dict) -> tuple[float, int] | None:
    """Return when a row is of, and of which GPU; None where it was cut short before that."""
    mono_s, gpu = _number(row["mono_s"]), _number(row["gpu"])
    return None if mono_s is None or gpu is None else (mono_s, int(gpu))


def _is_whole(row: dict) -> bool:
    return None not in row.values()


def _is_true(column: str, gpu: int, mono_s: float, number: float) -> bool:
    """Tell whether a GPU read this at a moment, or so soon after it that it is of one row."""
    if is_counter(column):
        return abs(number - truth(column, gpu, mono_s)) <= COUNTER_A_SECOND * STALL_S + WHOLE
    possible = range(math.floor(mono_s - STAMP_S), math.floor(mono_s + STALL_S + STAMP_S) + 1)
    return number in {truth(column, gpu, second) for second in possible}


def _play(examples: int, steps: int) -> None:
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],  # to make one shorter takes minutes; what fails is short enough to be read
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(RecorderStates, settings=chosen)


def test_what_the_recorder_says_is_true_whatever_happens():
    _play(examples=30, steps=40)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_what_the_recorder_says_is_true_whatever_happens_for_long():
    _play(examples=300, steps=60)
