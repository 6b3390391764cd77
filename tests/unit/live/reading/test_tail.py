"""Lines of a file that grows, however it is written, cut, replaced or gone."""

import os

import pytest

from gpu_report.live.reading import tail
from gpu_report.live.reading.tail import FileTail


@pytest.fixture
def file(tmp_path):
    return tmp_path / "samples.csv"


def append(path, data):
    with path.open("ab") as file:
        file.write(data)


def test_a_file_that_is_not_there_yet_has_no_lines(file):
    lines = FileTail(file)
    assert lines.lines() == []
    append(file, b"a\n")
    assert lines.lines() == [b"a"]


def test_a_torn_last_line_waits_until_it_is_whole(file):
    lines = FileTail(file)
    append(file, b"one\ntw")
    assert lines.lines() == [b"one"]
    append(file, b"o\nthree\n")
    assert lines.lines() == [b"two", b"three"]
    assert lines.lines() == []


def test_a_file_that_is_made_anew_is_read_from_its_beginning(file):
    lines = FileTail(file)
    append(file, b"a\nb\ntorn")
    assert lines.lines() == [b"a", b"b"]
    file.unlink()
    assert lines.lines() == []
    append(file, b"c\n")
    assert lines.lines() == [b"c"]
    assert lines.was_made_anew
    file.write_bytes(b"")
    assert lines.lines() == []
    append(file, b"d\n")
    assert lines.lines() == [b"d"]


def test_what_begins_within_a_line_leaves_that_out(file):
    append(file, b"first\nsecond\nthird\n")
    assert FileTail(file, begin=8).lines() == [b"third"]
    assert FileTail(file, begin=0, end=13).lines() == [b"first", b"second"]


def test_a_large_file_comes_in_pieces(file, monkeypatch):
    monkeypatch.setattr(tail, "READ_AT_ONCE", 10)
    append(file, b"0123\n" * 5)
    lines, got = FileTail(file), []
    while lines.is_behind:
        got += lines.lines()
    assert got == [b"0123"] * 5


def test_a_line_without_an_end_does_not_fill_the_memory(file, monkeypatch):
    monkeypatch.setattr(tail, "LARGEST_LINE", 100)
    lines = FileTail(file)
    for _ in range(5):
        append(file, b"\0" * 90)
        assert lines.lines() == []
    append(file, b"\nnext\n")
    assert lines.lines()[-1] == b"next"


def test_what_is_no_file_is_an_error_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no ordinary file"):
        FileTail(tmp_path / "pipe").lines()
