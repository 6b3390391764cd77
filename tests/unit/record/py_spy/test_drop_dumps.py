"""From readings of a GPU to `stacks/dumps.jsonl`, with a stand-in for py-spy, and without waiting in real time."""

import json
import os
import time
from pathlib import Path

import pytest
from support.stand_in import FAILS, HANGS, NO_JSON, answers, calls, is_running, stand_in, thread

from gpu_report.record.clocks import Clocks
from gpu_report.record.py_spy import dump_thread, program
from gpu_report.record.py_spy.drop_dumps import DropDumps
from gpu_report.record.py_spy.dump_file import DumpFile
from gpu_report.record.py_spy.processes import Candidates, Target
from tests.conftest import wait_for

STACK = thread(("/home/me/train.py", 9, "upload"), ("/home/me/train.py", 21, "<module>"))


class Recording:
    """A recorder's ticks, a second apart, of one GPU on which this process trains."""

    def __init__(self, folder: Path) -> None:
        self.run, self.bin, self.events = folder / "run", folder / "bin", []
        self.run.mkdir()
        self.dumps = DropDumps(self.run, lambda kind, _at, fields: self.events.append((kind, dict(fields))))
        self.candidates = Candidates(frozenset({os.getpid()}), frozenset(), frozenset({os.getpid()}))
        self.now_s = 1000.0

    def tick(self, util):
        at = Clocks(1_795_000_000 + self.now_s, self.now_s, self.now_s)
        self.dumps.tick(at, {0: util}, lambda _gpus: self.candidates)
        self.now_s += 1

    def play(self, *utils):
        for util in utils:
            self.tick(util)
            self.settle()

    def settle(self):
        """Wait until nothing is under way: in these tests no time passes between two ticks."""
        deadline_s = time.monotonic() + 10
        while self.dumps._thread.is_busy and not self.dumps._thread._is_ended and time.monotonic() < deadline_s:
            time.sleep(0.005)

    @property
    def lines(self):
        file = self.run / "stacks/dumps.jsonl"
        return [json.loads(line) for line in file.read_text().split("\n") if line] if file.exists() else []


@pytest.fixture
def recording(tmp_path, monkeypatch):
    made = Recording(tmp_path)
    monkeypatch.setenv("PATH", f"{made.bin}:{os.environ['PATH']}")
    yield made
    made.dumps.finish()


def test_a_drop_is_dumped_a_few_times_and_each_stack_is_written_once(recording):
    stand_in(recording.bin, answers(recording.bin.parent, [STACK]))
    recording.play(*[90] * 20, *[2] * 10, *[90] * 5)
    first, *others = recording.lines
    assert first["frames"] == [["/home/me/train.py", 9, "upload"], ["/home/me/train.py", 21, "<module>"]]
    assert (first["pid"], first["role"], first["parent"], first["stack"]) == (os.getpid(), "main", None, 1)
    assert [(line["stack"], "frames" in line) for line in others] == [(1, False)] * 3
    assert recording.events == []


def test_work_starts_no_program(recording):
    stand_in(recording.bin, NO_JSON)
    recording.play(*[90] * 60)
    assert calls(recording.bin) == []
    assert recording.lines == []


@pytest.mark.parametrize("does", [FAILS, NO_JSON, "echo '[]'", "exit 1"])
def test_a_failure_is_an_event_once_and_three_are_enough(recording, does):
    stand_in(recording.bin, does)
    recording.play(*([90] * 20 + [2] * 60) * 2)
    ((kind, fields),) = recording.events
    assert (kind, fields["pid"]) == ("dump_failed", os.getpid())
    assert fields["reason"]
    assert len(calls(recording.bin)) == 2 * dump_thread.FAILURES_AT_MOST  # each tried twice
    assert recording.lines == []


def test_a_process_that_has_ended_meanwhile_is_no_failure(recording):
    stand_in(recording.bin, FAILS)
    target = Target(2**22 + 7)  # beyond the kernel's largest pid
    recording.dumps._thread._dump(program.PySpy(str(recording.bin / "py-spy")), target)
    assert recording.events == []


def test_a_process_that_was_misread_is_tried_again(recording):
    answer = answers(recording.bin.parent, [STACK])
    stand_in(recording.bin, f"[ -e {recording.run}/once ] || {{ touch {recording.run}/once; exit 1; }}\n{answer}")
    recording.play(*[90] * 20, *[2] * 5)
    assert len(recording.lines) == 2
    assert recording.events == []


def test_without_py_spy_nothing_happens(recording, monkeypatch):
    monkeypatch.setattr(dump_thread, "find_program", lambda: None)
    recording.play(*[90] * 20, *[2] * 30)
    assert recording.events == []
    assert recording.lines == []


def test_a_dump_that_hangs_holds_up_no_tick_and_no_end(recording):
    stand_in(recording.bin, HANGS)
    for util in [90] * 20 + [2] * 30:
        began_s = time.monotonic()
        recording.tick(util)
        assert time.monotonic() - began_s < 0.5
    while not calls(recording.bin):
        time.sleep(0.01)
    began_s = time.monotonic()
    recording.dumps.finish()
    assert time.monotonic() - began_s < program.LIMIT_S
    assert len(calls(recording.bin)) == 1
    wait_for(lambda: not is_running(calls(recording.bin)[0][0]), timeout_s=5)
    assert recording.events == []


def test_one_that_is_always_late_is_given_up(recording, monkeypatch):
    monkeypatch.setattr(dump_thread, "PySpy", lambda path: program.PySpy(path, 0.1))
    stand_in(recording.bin, HANGS)
    recording.play(*[90] * 20, *[2] * 60)
    ((_, fields),) = recording.events
    assert "did not answer" in fields["reason"]
    assert len(calls(recording.bin)) <= 2 * dump_thread.FAILURES_AT_MOST  # one may be killed before it begins


def test_the_time_of_py_spy_is_bounded_and_half_of_it_is_kept_for_long_drops(recording, monkeypatch):
    stand_in(recording.bin, answers(recording.bin.parent, [STACK]))
    recording.play(*[90] * 20, *[2] * 5)
    dumps = recording.dumps._thread
    dumps._spent_s = 0.6 * dump_thread.BUDGET_S
    assert not dumps.may(5.0)
    assert dumps.may(60.0)
    dumps._spent_s = 1.1 * dump_thread.BUDGET_S
    assert not dumps.may(60.0)
    dumps._began_s -= 3600.0
    assert dumps.may(60.0)


def test_without_a_process_nothing_is_asked_and_it_stays_due(recording):
    stand_in(recording.bin, answers(recording.bin.parent, [STACK]))
    mine, recording.candidates = recording.candidates, Candidates(frozenset(), frozenset(), frozenset())
    recording.play(*[90] * 20, *[2] * 8)
    assert calls(recording.bin) == []
    recording.candidates = mine
    recording.play(2)
    assert len(recording.lines) == 1


def test_a_disk_that_refuses_is_an_event_and_the_stack_is_written_out_later(recording):
    stand_in(recording.bin, answers(recording.bin.parent, [STACK]))
    in_the_way = recording.run / "stacks"
    in_the_way.write_text("")
    recording.play(*[90] * 20, *[2] * 4)
    (event,) = [fields for kind, fields in recording.events if kind == "rows_lost"]
    assert event["file"] == "stacks/dumps.jsonl"
    in_the_way.unlink()
    recording.play(*[2] * 10)
    assert "frames" in recording.lines[0]
    assert len(recording.events) == 1


def test_hostile_names_are_one_line_each(recording):
    hostile = thread(("/x\n\x1b[2J\u2028<script>.py", 1, "f\nkind"))
    stand_in(recording.bin, answers(recording.bin.parent, [hostile]))
    recording.play(*[90] * 20, *[2] * 4)
    (line,) = recording.lines[:1]
    assert line["kind"] == "dump"
    assert line["frames"][0][0].startswith("/x\n")  # escaped in the file, and again wherever it is shown


def test_stacks_beyond_the_limit_are_not_written_out(tmp_path, monkeypatch):
    monkeypatch.setattr("gpu_report.record.py_spy.dump_file.MOST_STACKS", 2)
    file = DumpFile(tmp_path)
    for number in range(4):
        file.write(Clocks(1, 1, 1), Target(7, parent=5), ((f"/{number}.py", 1, "f"),))
    file.close()
    lines = [json.loads(line) for line in (tmp_path / "stacks/dumps.jsonl").read_text().splitlines()]
    assert [line["stack"] for line in lines] == [1, 2, 0, 0]
    assert {(line["role"], line["parent"]) for line in lines} == {("worker", 5)}
