"""What processes wait for: as /proc plays it, and of a real process that reads from a pipe with a name."""

import os
import subprocess
import sys
import time

import pytest

from gpu_report.record.clocks import Clocks
from gpu_report.record.host import process_waits, system_calls
from gpu_report.record.host.process_waits import ProcessWaits
from gpu_report.record.host.trainer_processes import TrainerTree, read_process
from tests.conftest import wait_for

MACHINE = os.uname().machine
READ = next(number for number, name in system_calls.FILE_CALLS[MACHINE].items() if name == "read")
MOUNTS = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n30 21 0:50 / /mnt/the\\040data rw - nfs4 server:/x rw\n"


@pytest.fixture
def play(tmp_path):
    """Play one tick after the other of a process, and return what was written."""
    rows = []
    waits = ProcessWaits(lambda since, values: rows.append({"at": since.mono_s, **values}), tmp_path)

    def tick(second, state, cpu_s=0.0, channel="0", call=None, file=None, pid=7, last=False):
        folder = tmp_path / str(pid)
        (folder / "fd").mkdir(parents=True, exist_ok=True)
        (folder / "wchan").write_text(channel)
        (folder / "mountinfo").write_text(MOUNTS)
        (folder / "syscall").write_text(call if call is not None else f"{READ} 0x5 0x7f00 0x1000 0x0 0x0 0x0 0x7f 0x7f")
        link = folder / "fd" / "5"
        link.unlink(missing_ok=True)
        if file is not None:
            link.symlink_to(file)
        look = type("Look", (), {"state": state, "cpu_s": cpu_s})()
        waits.look(Clocks(1e9 + second, second, second), {pid: look}, frozenset({7}), last=last)
        return rows

    return tick


def test_a_read_on_a_network_file_system_is_one_wait_with_its_file(play):
    for second in range(3):  # each image is another file, and takes CPU to decode
        play(second, "D", second * 0.4, "rpc_wait_bit", file=f"/mnt/the data/{second}.jpg")
    (row,) = play(3, "R", 1.2)
    assert (row["at"], row["seconds"], row["role"]) == (0, 2.5, "main")
    assert (row["call"], row["file"], row["filesystem"]) == ("read", "/mnt/the data/0.jpg", "nfs4")
    assert (row["state"], row["channel"]) == ("D", "rpc_wait_bit")


def test_a_wait_for_anything_else_is_told_when_it_lasts(play):
    for second in range(5):  # other threads use a little
        assert play(second, "S", 3.0 + 0.01 * second, "futex_wait_queue") == []
    (row,) = play(5, "S", 3.05, "futex_wait_queue")
    assert (row["seconds"], row["channel"], row["call"], row["file"]) == (5, "futex_wait_queue", "", "")
    for second in range(6, 12):  # longer: told again once it is twice as long, and at its end
        rows = play(second, "S", 3.05, "futex_wait_queue")
    assert [row["seconds"] for row in rows] == [5, 10]
    assert [row["seconds"] for row in play(12, "R", 3.2)] == [5, 10, 11]


def test_a_worker_that_waits_for_work_now_and_then_is_not_told(play):
    for second in range(20):
        assert play(second, "S", second * 0.1, "pipe_read", file="pipe:[4711]") == []


def test_what_goes_on_at_the_end_is_told(play):
    play(0, "S", channel="do_wait")
    (row,) = play(6, "S", channel="do_wait", last=True)
    assert row["seconds"] == 6


@pytest.mark.parametrize("call", ["running", "", "-1 0x7ffe 0x7f00", "999 0x5 0x0", "garbage 0x"])
def test_where_nobody_may_look_the_state_and_the_channel_remain(play, call):
    play(0, "D", channel="folio_wait_bit_common", call=call, file="/mnt/the data/x")
    (row,) = play(1, "R", call=call)
    assert (row["call"], row["file"], row["channel"]) == ("", "", "folio_wait_bit_common")


@pytest.mark.parametrize("file", ["/dev/nvidiactl", "/proc/1/stat", "anon_inode:[eventpoll]", "/memfd:x (deleted)"])
def test_what_is_no_data_is_not_named(play, file):
    play(0, "S", channel="wait_woken", file=file)
    assert play(1, "R") == []


def test_secrets_in_a_path_are_hidden(play):
    play(0, "D", file="/mnt/the data/token=hf_abcdefghijklmnopqrstuvwxyz0123/a.jpg")
    (row,) = play(1, "R")
    assert "abcdefghij" not in row["file"]


def test_a_storm_of_waits_fills_no_disk(play):
    for second in range(120):
        play(second, "D", file=f"/mnt/the data/{second}")
        rows = play(second + 0.5, "R")
    assert len(rows) == 2 * process_waits.ROWS_PER_MINUTE


def test_a_real_process_that_reads_from_a_pipe_with_a_name(tmp_path):
    pipe = tmp_path / "images.bin"
    os.mkfifo(pipe)
    child = subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'rb').read()"])
    writer = os.open(pipe, os.O_WRONLY)
    rows = []
    waits = ProcessWaits(lambda since, values: rows.append(values))
    tree = TrainerTree()
    try:
        wait_for(lambda: read_process(tree._proc, child.pid).state == "S" and _reads(child.pid))
        for second in (100.0, 101.0):
            tree.sample(second, child.pid, set)
            waits.look(Clocks(second, second, second), tree.looks, tree.mains, last=second == 101.0)
    finally:
        os.close(writer)
        child.wait(10)
    (row,) = rows
    assert (row["role"], row["call"], row["file"], row["seconds"]) == ("main", "read", str(pipe), 1.0)
    assert row["filesystem"]


def _reads(pid):
    time.sleep(0.05)
    return system_calls.call_of(system_calls.Path("/proc"), pid)[0] == "read"
