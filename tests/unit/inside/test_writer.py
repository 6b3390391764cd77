"""The writer's thread: a disk that hangs costs the training nothing, and what is written stays in order."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from gpu_report.inside import RUN_FOLDER_VARIABLE
from gpu_report.inside.on_path.gpu_report_inside import lines, writer
from gpu_report.inside.on_path.gpu_report_inside.lines import Lines


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def stuck(monkeypatch):
    """A disk that hangs until the event is set."""
    free, real = threading.Event(), os.makedirs
    monkeypatch.setattr(os, "makedirs", lambda *args, **kwargs: (free.wait(20), real(*args, **kwargs)))
    yield free
    free.set()


def written(folder):
    return [json.loads(line) for line in (folder / "inside" / f"{os.getpid()}.jsonl").read_text().splitlines()]


def test_a_disk_that_hangs_blocks_nobody_and_what_waits_comes_in_order(folder, stuck):
    ours = Lines()
    began = time.monotonic()
    for number in range(100):
        ours.write("calls", {"calls": number})
    assert time.monotonic() - began < 0.5
    ours.drain()
    ours.drain()  # not waited for again
    assert 0.9 < time.monotonic() - began < 1.8
    told_s = time.time()
    stuck.set()
    deadline = time.monotonic() + 5
    while not (folder / "inside").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.1)
    ours.drain()
    assert [line["calls"] for line in written(folder)] == list(range(100))
    assert max(line["wall_s"] for line in written(folder)) < told_s - 0.8  # stamped when it happened


def test_what_is_looked_for_is_looked_for_by_the_thread_and_may_fail(folder):
    ours, threads = Lines(), []

    def find():
        threads.append(threading.current_thread())
        return [{"name": "tf32", "file": "/a/train.py", "line": 7}, {"name": "p2p", "file": "/a/train.py", "line": 8}]

    ours.write("run", {"task": "train"})
    ours.write_found("set_in", find)
    ours.write_found("set_in", lambda: 1 / 0)
    ours.write("ended", {"how": "finished"})
    ours.drain()
    assert threads[0] is not threading.current_thread()
    found = [(line["kind"], line.get("line")) for line in written(folder) if line["kind"] != "error"]
    assert found == [("run", None), ("set_in", 7), ("set_in", 8), ("ended", None)]


def test_what_the_disk_does_not_take_is_dropped_and_counted_in_one_line(folder, stuck, monkeypatch):
    monkeypatch.setattr(writer, "MOST_WAITING", 5)
    ours = Lines()
    ours.write("calls", {"calls": 0})
    time.sleep(0.1)  # the thread hangs with this one in hand
    for number in range(1, 13):
        ours.write("calls", {"calls": number})
    threading.Timer(0.2, stuck.set).start()
    ours.drain()  # waited for behind them: told before the process ends
    *kept, told = written(folder)
    assert [line["calls"] for line in kept] == list(range(6))
    assert (told["kind"], told["reason"]) == ("error", "7 lines dropped: the disk did not keep up")


@pytest.mark.parametrize("reader", [False, True])
def test_a_fifo_in_the_files_place_is_refused(folder, reader):
    (folder / "inside").mkdir()
    path = folder / "inside" / f"{os.getpid()}.jsonl"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK) if reader else None
    began = time.monotonic()
    ours = Lines()
    ours.write("calls", {"calls": 1})
    ours.drain()
    assert time.monotonic() - began < 0.5
    if fd is not None:
        assert os.read(fd, 100) == b""
        os.close(fd)


def test_a_change_of_folder_closes_the_file_before(tmp_path):
    file = writer.File()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for number in range(20):
        (tmp_path / str(number)).mkdir()
        file.append(str(tmp_path / str(number)), b"{}\n")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 1


def test_a_fork_neither_uses_nor_waits_for_its_parents_thread(folder, stuck):
    ours = Lines()
    ours.write("calls", {"calls": 1})
    ours._writers[os.getpid()]._starting.acquire()  # held by another thread when the process forks
    pid = os.fork()
    if pid == 0:
        began = time.monotonic()
        ours.drain()
        os._exit(0 if time.monotonic() - began < 0.2 and os.getpid() not in ours._writers else 1)
    assert os.waitpid(pid, 0)[1] == 0


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("https://me:pa/ss@host/m.pt?token=abc#x", "https://***@host/m.pt?***"),
        ("rtsp://me:pass@host", "rtsp://***@host"),
        ("https:/me:pass@host/a", "https:/***@host/a"),  # as pathlib writes it
        ("failed: api_key='a b' at 3", "failed: api_key=*** at 3"),
        ("HF_TOKEN=abc", "HF_TOKEN=***"),
        ("yolo26n.pt", "yolo26n.pt"),
        ("C:/me@home/x.yaml", "C:/me@home/x.yaml"),
        ("x" * 490 + " https://me:password-that-is-cut@host", "x" * 490 + " https://*"),
    ],
)
def test_secrets_reach_no_line(folder, text, safe):
    ours = Lines()
    ours.write("settings", {"model": text, "many": [text], "save_dir": text})
    ours.drain()
    (line,) = written(folder)
    assert (line["model"], line["many"], line["save_dir"]) == (safe, [safe], text)


def test_an_errors_reason_holds_no_secret(folder, monkeypatch):
    ours = Lines()
    monkeypatch.setattr(lines, "LINES", ours)
    monkeypatch.setattr(lines, "_reported", set())
    lines.report("here", OSError("https://me:pass@host/x?sig=abc failed"))
    ours.drain()
    assert written(folder)[0]["reason"] == "OSError: https://***@host/x?*** failed"
