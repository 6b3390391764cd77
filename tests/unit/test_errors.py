import errno
import os
from pathlib import Path

import pytest

from gpu_report.errors import error_as_json, error_in, unwritable


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home folder on a disk of its own, as far as anybody can tell."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    stat = Path.stat
    monkeypatch.setattr(Path, "stat", lambda path, **how: Other(stat(path, **how), path == folder))
    return folder


class Other:
    def __init__(self, stat, elsewhere):
        self._stat, self.st_dev = stat, stat.st_dev + elsewhere

    def __getattr__(self, name):
        return getattr(self._stat, name)


def failed(number):
    return OSError(number, os.strerror(number))


@pytest.mark.parametrize(
    ("number", "helps"),
    [
        (errno.ENOSPC, "free some there (`df -h {folder}` shows how full it is), or "),
        (errno.EDQUOT, "delete files of yours there (`quota -s` shows how much you may store), or "),
        (errno.EACCES, ""),
        (errno.EROFS, ""),
    ],
)
def test_what_cannot_be_written_says_what_to_do_and_another_place(tmp_path, home, number, helps):
    said = unwritable(tmp_path / "not there" / "r.html", failed(number))
    helps = helps.format(folder=tmp_path)
    assert said == f"{os.strerror(number)}; {helps}name another place, such as {home / 'r.html'}"


def test_no_place_is_proposed_that_is_no_better(tmp_path, home, monkeypatch):
    assert unwritable(home / "r.html", failed(errno.ENOSPC)).endswith("or name another place")
    assert unwritable(tmp_path / "r.html", failed(errno.ENAMETOOLONG)) == "File name too long; name another place"
    monkeypatch.setenv("HOME", str(tmp_path / "none"))
    assert unwritable(tmp_path / "r.html", failed(errno.EACCES)) == "Permission denied; name another place"


def test_a_path_that_is_to_be_typed_is_quoted(tmp_path, home):
    (tmp_path / "a b").mkdir()
    assert f"`df -h '{tmp_path}/a b'`" in unwritable(tmp_path / "a b" / "r.html", failed(errno.ENOSPC))


@pytest.mark.parametrize("line", ["no GPU: `nvidia-smi` says why", "gpu-report: in quotes\u2028"])
def test_an_error_comes_back_whole_from_between_other_lines(line):
    assert error_in(f"gpu-report: note: x\n{error_as_json(line)}\n[1]\n") == line


def test_what_is_no_json_is_the_error_as_it_was_printed():
    assert error_in(" Error: no such option\n") == "Error: no such option"
