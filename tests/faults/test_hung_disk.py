"""A disk that does not answer, played by a named pipe that nobody empties: an open or a write that never returns."""

import fcntl
import os
import signal
import subprocess
import time

import pytest

from tests.conftest import clean_environment, cli_command, wait_for

FAST = ("--interval", "0.05")
SMALLEST_PIPE_BYTES = 4096
WAITS_FOR_GO = "trap 'exit 9' TERM; touch ready; while [ ! -e go ]; do sleep 0.05; done; exit 7"


@pytest.fixture
def full_pipe(recorded):
    """Make samples.csv a pipe of 4 KiB that is never read; yields whether it is full."""
    recorded.path.mkdir()
    path = recorded.path / "samples.csv"
    os.mkfifo(path)
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, SMALLEST_PIPE_BYTES)

    def is_full():
        try:
            return os.write(fd, b"x" * SMALLEST_PIPE_BYTES) == 0
        except BlockingIOError:
            return True

    yield lambda: (recorded.path / "host.csv").exists() and _blocked(recorded) and is_full()
    os.close(fd)


def _blocked(recorded):
    """Say whether rows have stopped coming."""
    before = len(recorded.rows("host.csv"))
    time.sleep(0.5)
    return before > 3 and len(recorded.rows("host.csv")) == before


def test_a_write_that_never_returns_holds_neither_signals_nor_the_commands_end(
    start_cli, fake_nvml, recorded, full_pipe, tmp_path
):
    running = start_cli("record", *FAST, "--output", recorded.path, "--", "sh", "-c", WAITS_FOR_GO, env=fake_nvml.env())
    wait_for(lambda: (tmp_path / "ready").exists() and full_pipe())
    asked = time.monotonic()
    running.process.send_signal(signal.SIGTERM)
    time.sleep(1.5)
    running.process.send_signal(signal.SIGTERM)  # a user who does not wait for the recording to be closed
    done = running.wait()
    assert done.returncode == 9, done.stderr
    assert time.monotonic() - asked < 5
    assert "given up before it was closed" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_second_ctrl_c_ends_a_recorder_whose_disk_hangs(start_cli, fake_nvml, recorded, full_pipe):
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(full_pipe)
    running.process.send_signal(signal.SIGINT)
    time.sleep(1.5)
    assert running.process.poll() is None
    assert running.stop(signal.SIGINT, timeout_s=5).returncode == 130


# What an open of a file on a network drive does whose server is gone: it never returns.
HANGS_AT_OPENING = """
import os, threading
real = os.open
def hangs(path, *rest, **more):
    if str(path).endswith("samples.csv"):
        threading.Event().wait()
    return real(path, *rest, **more)
os.open = hangs
"""


def test_a_folder_that_does_not_answer_does_not_keep_the_command_from_running(fake_nvml, recorded, tmp_path):
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(HANGS_AT_OPENING)
    words = cli_command("record", "--output", recorded.path, "--", "sh", "-c", "exit 5")
    began = time.monotonic()
    env = {**clean_environment(fake_nvml.env()), "PYTHONPATH": str(site)}
    done = subprocess.run(words, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 5, done.stderr
    assert "does not answer" in done.stderr
    assert time.monotonic() - began < 25
