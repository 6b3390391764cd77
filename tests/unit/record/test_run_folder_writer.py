import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from gpu_report.errors import UsageError
from gpu_report.record.clocks import Clocks
from gpu_report.record.run_folder_writer import REPORT_LOST_EVERY_S, Journal, earlier_start, open_journal

FDS = Path("/proc/self/fd")


def at(seconds):
    return Clocks(1000.0 + seconds, seconds, seconds)


def events(path):
    return [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]


def test_lost_rows_are_told_when_they_begin_now_and_then_and_when_they_end(tmp_path, monkeypatch):
    said = []
    journal = Journal(tmp_path, said.append)
    refuse = [True]
    write = journal._samples.write

    def write_or_lose(line):
        if not refuse[0]:
            return write(line)
        journal._samples.lost += 1
        journal._samples.lost_reason = "No space left on device"
        return False

    monkeypatch.setattr(journal._samples, "write", write_or_lose)
    for second in range(int(REPORT_LOST_EVERY_S) + 10):
        journal.sample(at(second), 0, {})
        journal.settle(at(second))
    refuse[0] = False
    journal.sample(at(100), 0, {})
    journal.settle(at(100))
    journal.settle(at(101))
    told = [(event["file"], event["rows"]) for event in events(tmp_path)]
    assert told == [("samples.csv", 1), ("samples.csv", 60), ("samples.csv", 9)]
    assert len(said) == 1
    journal.close()


def test_nothing_raises_when_the_folder_is_gone(tmp_path):
    said = []
    journal = Journal(tmp_path / "run", said.append)
    shutil.rmtree(tmp_path / "run")
    journal.sample(at(0), 0, {})
    journal.host(at(0), {})
    assert not journal.event("marker", at(0), {"text": "x"})
    journal.describe({"format": 1})
    journal.settle(at(0))
    journal.close()
    assert len(said) == 1


def test_an_event_after_the_end_is_refused_quietly(tmp_path):
    journal = Journal(tmp_path, lambda _line: None)
    journal.close()
    assert not journal.event("marker", at(0), {"text": "late"})
    assert events(tmp_path) == []


def test_a_folder_holds_one_recorder_at_a_time(tmp_path):
    journal = Journal(tmp_path, lambda _line: None)
    with pytest.raises(UsageError, match="in use"):
        open_journal(tmp_path, lambda _line: None)
    journal.close()
    open_journal(tmp_path, lambda _line: None).close()


def test_a_folder_that_cannot_be_opened_is_let_go(tmp_path, monkeypatch):
    (tmp_path / "host.csv").mkdir()
    before = len(list(FDS.iterdir()))
    with pytest.raises(UsageError, match="cannot record into"):
        open_journal(tmp_path, lambda _line: None)
    (tmp_path / "host.csv").rmdir()
    (tmp_path / "samples.csv").write_text("wall_s,mon")
    monkeypatch.setattr("gpu_report.run_folder.os.write", _no_space)
    with pytest.raises(UsageError, match="No space left"):
        open_journal(tmp_path, lambda _line: None)
    assert len(list(FDS.iterdir())) == before
    monkeypatch.undo()
    open_journal(tmp_path, lambda _line: None).close()


def _no_space(fd, data):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_new_folder_has_no_earlier_start(tmp_path):
    assert earlier_start(tmp_path / "new") == (0, {})


def test_discarding_leaves_what_is_not_ours(tmp_path):
    journal = Journal(tmp_path / "a", lambda _line: None)
    journal.describe({"format": 1})
    journal.remove()
    assert not (tmp_path / "a").exists()
    other = Journal(tmp_path / "b", lambda _line: None)
    (tmp_path / "b/notes.txt").write_text("mine")
    other.remove()
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("samples.csv", "x,y\n1,2\n"),
        ("host.csv", "name\n"),
        ("events.jsonl", '{"event": "click"}\n'),
        ("run.json", '{"a": 1}'),
        ("yolo/args.yaml", "mine: 1\n"),
    ],
)
def test_files_of_the_user_that_have_our_names_are_left_alone(tmp_path, name, text):
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    with pytest.raises(UsageError, match=f"it has a {name.partition('/')[0]} that is not of a recording"):
        open_journal(tmp_path, print)
    assert path.read_text() == text
    assert [each.name for each in tmp_path.iterdir()] == [name.partition("/")[0]]


@pytest.mark.parametrize("header", ["", "wall_s,mo", "wall_s,mono_s,gpu,a_column_of_an_older_version\n"])
def test_what_a_recorder_left_is_recorded_into_again(tmp_path, header):
    """A full disk leaves an empty file or a part of its first line, and no run.json."""
    (tmp_path / "samples.csv").write_text(header)
    (tmp_path / "yolo").mkdir()
    (tmp_path / "notes.txt").write_text("mine")
    open_journal(tmp_path, print).close()
    assert (tmp_path / "samples.csv").read_text().startswith(header or "wall_s,mono_s,gpu,")
