"""The scheduler's view of clocks, with clocks that a test sets."""

import json
import time

import pytest

from gpu_report.record.clocks import Clocks
from gpu_report.record.gpu.process_owners import Owners
from gpu_report.record.lifecycle import tick_loop
from gpu_report.record.lifecycle.tick_loop import Session, SessionSources
from gpu_report.record.options import RecordOptions
from gpu_report.record.run_folder_writer import Journal


class NoGpus:
    owners = Owners()
    pids = {}  # noqa: RUF012 - nothing is ever put into it
    util_pct = {}  # noqa: RUF012 - likewise
    others = frozenset()

    def tick(self, at, journal, say, *, last=False):
        journal.sample(at, 0, {"gpu_util_pct": 50})


class BrokenYolo:
    def tick(self, at, pids, emit):
        raise ZeroDivisionError("a mistake of ours")


@pytest.fixture
def recording(tmp_path, monkeypatch):
    said = []
    journal = Journal(tmp_path / "run", said.append)
    options = RecordOptions(interval_s=1.0)
    running = Session(options, SessionSources(journal, NoGpus(), BrokenYolo(), None), said.append)

    def play(*moments):
        for moment in moments:
            monkeypatch.setattr(tick_loop.clocks, "now", lambda moment=moment: Clocks(*moment))
            running.tick(time.monotonic())
        monkeypatch.undo()
        lines = (tmp_path / "run/events.jsonl").read_text().splitlines()
        return [(event["kind"], event.get("seconds")) for event in map(json.loads, lines)]

    yield play, running, said
    journal.close()


def test_regular_ticks_tell_nothing(recording):
    play, *_ = recording
    assert play((100, 10, 20), (101, 11, 21), (102.2, 12.2, 22.2)) == []


def test_a_clock_set_back_an_hour(recording):
    play, *_ = recording
    assert play((5000, 10, 20), (1401, 11, 21)) == [("clock_step", -3600)]


def test_a_machine_that_slept(recording):
    play, *_ = recording
    assert play((100, 10, 20), (701, 11, 621)) == [("suspend", 600)]


def test_a_late_tick_is_a_gap(recording):
    play, *_ = recording
    assert play((100, 10, 20), (103.5, 13.5, 23.5)) == [("gap", 3.5)]


def test_a_mistake_of_ours_is_said_once_and_costs_nothing_else(recording):
    play, running, said = recording
    play((100, 10, 20), (101, 11, 21), (102, 12, 22))
    assert len(said) == 1
    assert "ZeroDivisionError" in said[0]
    assert running.errors == 3
    assert len((running._journal.folder / "samples.csv").read_text().splitlines()) == 4


def test_no_stacks_looks_at_no_process(recording, monkeypatch):
    _, running, _ = recording
    without = Session(
        RecordOptions(stacks=False), SessionSources(running._journal, NoGpus(), BrokenYolo(), None), print
    )
    for session, looks in ((running, 1), (without, 0)):
        seen = []
        monkeypatch.setattr(tick_loop.DropDumps, "tick", lambda *_, seen=seen: seen.append(1))
        session.tick(time.monotonic())
        assert len(seen) == looks
