"""Following logs live. The kernel itself cannot be made to speak here, so files, pipes and helpers stand in for it."""

import os
import threading
import time
from pathlib import Path

import pytest

from gpu_report.record.kernel_log import sources
from gpu_report.record.kernel_log.lines import parse_dmesg, parse_plain
from gpu_report.record.kernel_log.thread import KernelLogThread
from gpu_report.record.rate_cap import LINES_PER_WINDOW, WINDOW_S, RateCap
from tests.conftest import wait_for


class Emitted:
    def __init__(self):
        self.events = []

    def __call__(self, kind, at, fields):
        self.events.append((kind, at, fields))
        return True

    def texts(self):
        return [fields["text"] for kind, _, fields in self.events if kind == "kernel"]

    def kinds(self):
        return [kind for kind, _, _ in self.events]


def test_a_named_file_is_followed_from_its_end(tmp_path):
    log = tmp_path / "kern.log"
    log.write_text("before\n")
    emitted = Emitted()
    thread = KernelLogThread(log, emitted)
    wait_for(lambda: "kernel_log" in emitted.kinds())
    with log.open("a") as file:
        file.write("first\nsec")
        file.flush()
        wait_for(lambda: emitted.texts() == ["first"])
        file.write("ond\n")
    began = time.time()
    assert thread.finish(5)
    assert emitted.texts() == ["first", "second"]
    status = emitted.events[0][2]
    assert (status["status"], status["source"]) == ("read", str(log))
    assert emitted.events[-1][1].wall_s == pytest.approx(began, abs=2)


def test_what_was_written_before_a_rotation_is_read_before_what_came_after(tmp_path):
    log = tmp_path / "kern.log"
    log.write_text("")
    source = sources.open_file(log)
    log.write_text("old\nunfinished")
    log.rename(tmp_path / "kern.log.1")
    log.write_text("new\n")
    assert source.read() == [b"old", b"unfinished", b"new"]
    source.close()


def test_a_named_pipe_is_followed(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    emitted = Emitted()
    thread = KernelLogThread(pipe, emitted)
    wait_for(lambda: "kernel_log" in emitted.kinds())
    pipe.write_text("one\ntwo\n")
    wait_for(lambda: emitted.texts() == ["one", "two"])
    assert thread.finish(5)
    assert [fields["status"] for kind, _, fields in emitted.events if kind == "kernel_log"] == ["read"]


def test_a_device_that_the_user_names_is_read_as_records_of_the_kernel(monkeypatch):
    opened = []
    monkeypatch.setattr(sources, "open_kmsg", opened.append)
    sources.open_file(Path("/dev/null"))
    assert opened == [Path("/dev/null")]


def test_a_line_that_we_cannot_bear_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "parse_plain", lambda _: 1 / 0)
    log = tmp_path / "kern.log"
    log.write_text("")
    emitted = Emitted()
    thread = KernelLogThread(log, emitted)
    wait_for(lambda: "kernel_log" in emitted.kinds())
    log.write_text("x\n")
    wait_for(lambda: emitted.kinds().count("kernel_log") == 2)
    assert "ZeroDivisionError" in emitted.events[-1][2]["reason"]
    assert thread.finish(5)


def test_a_rotated_file_is_followed_on(tmp_path):
    log = tmp_path / "kern.log"
    log.write_text("")
    emitted = Emitted()
    thread = KernelLogThread(log, emitted)
    wait_for(lambda: "kernel_log" in emitted.kinds())
    log.rename(tmp_path / "kern.log.1")
    log.write_text("after the rotation\n")
    wait_for(lambda: emitted.texts() == ["after the rotation"])
    log.write_text("x\n")
    wait_for(lambda: emitted.texts()[-1] == "x")
    assert thread.finish(5)


def test_a_file_that_is_not_there_is_unavailable_with_advice(tmp_path):
    emitted = Emitted()
    thread = KernelLogThread(tmp_path / "missing", emitted)
    assert thread.finish(5)
    kind, _, fields = emitted.events[0]
    assert (kind, fields["status"]) == ("kernel_log", "unavailable")
    assert "missing" in fields["reason"]
    assert fields["advice"]


@pytest.mark.parametrize("name", ["kern.log", "missing"])
def test_what_has_ended_holds_no_file_and_no_thread(tmp_path, name):
    (tmp_path / "kern.log").write_text("")
    before = len(list(Path("/proc/self/fd").iterdir())), threading.active_count()
    assert KernelLogThread(tmp_path / name, Emitted()).finish(5)
    assert (len(list(Path("/proc/self/fd").iterdir())), threading.active_count()) == before


def test_a_flood_is_cut_and_counted(tmp_path):
    log = tmp_path / "kern.log"
    log.write_text("")
    emitted = Emitted()
    thread = KernelLogThread(log, emitted)
    wait_for(lambda: "kernel_log" in emitted.kinds())
    with log.open("a") as file:
        file.write("loop\n" * (LINES_PER_WINDOW + 50))
    wait_for(lambda: len(emitted.texts()) == LINES_PER_WINDOW)
    assert thread.finish(5)
    assert [fields["count"] for kind, _, fields in emitted.events if kind == "kernel_lines_dropped"] == [50]


def test_a_new_window_admits_again():
    cap = RateCap()
    cap.new_window(0.0)
    assert sum(cap.admit() for _ in range(LINES_PER_WINDOW + 3)) == LINES_PER_WINDOW
    assert cap.new_window(WINDOW_S - 1) == 0
    assert cap.new_window(WINDOW_S) == 3
    assert cap.admit()


def alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_helper_ends_with_its_source():
    source = sources.follow_program("echo", ("sh", "-c", "echo $$; exec sleep 60"), parse_plain)
    pid = source.read()[0].decode()
    assert alive(pid)
    source.close()
    assert not alive(pid)


def test_a_helper_does_not_outlive_a_killed_recorder():
    reading, writing = os.pipe()
    recorder = os.fork()
    if recorder == 0:
        source = sources.follow_program("echo", ("sh", "-c", "echo $$; exec sleep 60"), parse_plain)
        os.write(writing, source.read()[0])
        os.kill(os.getpid(), 9)
    os.waitpid(recorder, 0)
    pid = os.read(reading, 100).decode()
    os.close(reading)
    os.close(writing)
    wait_for(lambda: not alive(pid))


def test_a_helper_that_may_not_read_is_restricted():
    command = ("sh", "-c", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1")
    with pytest.raises(sources.Refused) as refusal:
        sources.follow_program("dmesg", command, parse_dmesg)
    assert refusal.value.restricted
    assert "Operation not permitted" in refusal.value.reason


def kernel_stream():
    try:
        return sources.open_kmsg()
    except sources.Refused as refusal:
        return refusal


def test_the_record_stream_is_read_from_its_end_or_refused_with_a_reason():
    stream = kernel_stream()
    if isinstance(stream, sources.Refused):
        assert "/dev/kmsg" in stream.reason
    else:
        assert stream.read() == []
        stream.close()


def test_records_that_the_ring_lost_are_counted_by_their_numbers():
    reading, writing = os.pipe2(os.O_NONBLOCK)
    source = sources.LogSource("ring", reading, parse_plain, is_record_stream=True)
    for number in (7, 8, 12):
        os.write(writing, b"6,%d,1,-;text\n" % number)
        assert len(source.read()) == 1
    assert source.overwritten == 3
    source.close()
    os.close(writing)


@pytest.mark.parametrize("content", [None, b"", b"no record of a kernel\n"])
def test_what_stands_in_the_place_of_the_kernel_log_in_some_containers_is_none(tmp_path, content):
    path = Path("/dev/null")
    if content is not None:
        path = tmp_path / "kmsg"
        path.write_bytes(content)
    with pytest.raises(sources.Refused, match="is no kernel log here"):
        sources.open_kmsg(path)
