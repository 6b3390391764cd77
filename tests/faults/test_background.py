"""A recorder that was sent to the background, and its end."""

import os
import signal
import time
from pathlib import Path

from conftest import wait_for
from support.run_folder_reader import RunFolder

from gpu_report.record.lifecycle import background


def alive(pid):
    """Tell whether a process runs; one that nobody has reaped yet (state Z) does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_returns_at_once_prints_the_folder_records_on_and_is_stopped(run_cli, fake_nvml, tmp_path):
    began = time.monotonic()
    started = run_cli("record", "--background", "--interval", "0.1", env=fake_nvml.env())
    assert (started.returncode, started.stderr) == (0, "")
    assert time.monotonic() - began < 5
    folder = tmp_path / started.stdout.strip()
    recorded = RunFolder(folder)
    pid = recorded.info()["pid"]
    assert os.getsid(pid) == pid  # a session of its own: a hangup of this one does not reach it
    time.sleep(1)
    assert len(recorded.samples()) > 5
    stopped = run_cli("stop")
    assert (stopped.returncode, Path(stopped.stdout.strip()).name) == (0, folder.name)
    assert recorded.info()["ended_by"] == "signal"
    wait_for(lambda: not alive(pid))


def test_a_command_that_is_recorded_is_not_stopped(start_cli, run_cli, fake_nvml, tmp_path):
    started = run_cli("record", "--background", env=fake_nvml.env())
    training = start_cli("record", "--output", "gpu-runs/training", "--", "sleep", "60", env=fake_nvml.env())
    folder = tmp_path / "gpu-runs" / "training"
    wait_for(lambda: background.recorder_pid(folder) is not None and RunFolder(folder).events("command_started"))
    refused = run_cli("stop", "gpu-runs/training")
    assert refused.returncode == 4
    assert f"    kill {training.process.pid}\n" in refused.stderr
    assert run_cli("stop").stdout == started.stdout  # though the training's is newer
    assert training.process.poll() is None
    training.stop()


def test_what_keeps_it_from_starting_is_said(run_cli):
    done = run_cli("record", "--background", env={"LD_LIBRARY_PATH": "/nonexistent"})
    assert done.returncode == 5
    assert "nothing to record: there is no COMMAND, and " in done.stderr
    assert all(each.startswith("    ") for each in done.stderr.splitlines()[1:])  # commands, to be copied


def test_an_error_that_quotes_what_an_error_begins_with_is_said_whole(run_cli, fake_nvml, tmp_path):
    folder = tmp_path / "gpu-report: x"
    folder.write_text("a file")
    done = run_cli("record", "--background", "--output", folder / "r", env=fake_nvml.env())
    assert done.returncode == 2
    assert f"{folder}/r: Not a directory" in done.stderr


def test_for_a_training_that_is_attached_the_host_is_recorded_without_a_gpu(run_cli, tmp_path):
    options = ("record", "--with-parent", os.getpid(), "--duration", 2, "--interval", "0.2", "--output", "r")
    done = run_cli(*map(str, options), env={"LD_LIBRARY_PATH": "/nonexistent"})
    assert done.returncode == 0
    recorded = RunFolder(tmp_path / "r")
    assert recorded.info()["ended_by"] == "duration"
    assert len((tmp_path / "r" / "host.csv").read_text().splitlines()) > 3


def test_a_second_recorder_for_the_same_folder_is_refused_and_the_first_goes_on(run_cli, fake_nvml, tmp_path):
    assert run_cli("record", "--background", "--output", "r", env=fake_nvml.env()).returncode == 0
    second = run_cli("record", "--background", "--output", "r", env=fake_nvml.env())
    assert second.returncode == 2
    assert "in use" in second.stderr
    assert run_cli("stop", "r").returncode == 0
    assert RunFolder(tmp_path / "r").events("recording_started")[-1]["segment"] == 1


def test_a_command_is_not_sent_to_the_background(run_cli):
    done = run_cli("record", "--background", "--", "true")
    assert done.returncode == 2
    assert "nohup" in done.stderr


def test_stopping_what_does_not_run_is_exit_4(run_cli, tmp_path):
    assert run_cli("stop").returncode == 4
    assert run_cli("stop", tmp_path).returncode == 4


def test_a_killed_recorder_is_not_taken_for_a_running_one(run_cli, fake_nvml, tmp_path):
    run_cli("record", "--background", "--output", "r", env=fake_nvml.env())
    recorded = RunFolder(tmp_path / "r")
    wait_for(recorded.samples)
    pid = recorded.info()["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid))
    assert run_cli("stop", "r").returncode == 4
    assert run_cli("summary", "r").returncode == 0
