"""Signals, disks and neighbours of a recording without a command, and of the run folder it writes."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from itertools import pairwise

import pytest

from tests.conftest import REPOSITORY, clean_environment, cli_command, wait_for

FAST = ("--interval", "0.1")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_recording_cleanly(start_cli, fake_nvml, recorded, number):
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(lambda: recorded.path.exists() and len(recorded.samples()) > 3)
    done = running.stop(number)
    assert done.returncode == 0, done.stderr
    last = recorded.events()[-1]
    assert (last["kind"], last["ended_by"], last["signal"]) == ("recording_ended", "signal", number.name)
    assert recorded.info()["end"]["wall_s"] == pytest.approx(time.time(), abs=5)


def test_a_hangup_does_not_end_a_recording(start_cli, fake_nvml, recorded):
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(lambda: recorded.path.exists() and len(recorded.samples()) > 1)
    running.process.send_signal(signal.SIGHUP)
    rows = len(recorded.samples())
    wait_for(lambda: len(recorded.samples()) > rows + 3)
    assert running.stop().returncode == 0


def test_a_second_recorder_is_refused_with_and_without_a_command(start_cli, run_cli, fake_nvml, recorded, tmp_path):
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(lambda: recorded.path.exists() and len(recorded.samples()) > 1)
    for command in ((), ("--", "touch", "ran")):
        done = run_cli("record", "--duration", "1", "--output", recorded.path, *command, env=fake_nvml.env())
        assert done.returncode == 2
        assert "in use" in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "ran").exists()
    running.stop()
    assert len(recorded.events("recording_started")) == 1


def test_a_folder_with_an_imported_run_is_refused_and_stays_as_it_was(run_cli, fake_nvml, tmp_path):
    run = shutil.copytree(REPOSITORY / "sample_runs" / "starved", tmp_path / "imported")
    before = {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()}
    done = run_cli("record", *FAST, "--duration", "0.3", "--output", run, env=fake_nvml.env())
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "holds a run that was imported: name a new folder" in done.stderr
    assert {file.name: file.read_bytes() for file in run.iterdir() if file.is_file()} == before


def test_recording_again_into_a_folder_appends_a_segment(run_cli, fake_nvml, recorded):
    arguments = ("record", *FAST, "--duration", "0.3", "--output", recorded.path)
    run_cli(*arguments, env=fake_nvml.env())
    first = recorded.info()
    with (recorded.path / "samples.csv").open("a") as file:
        file.write("1795243702.554,21")  # a recorder that was killed in the midst of a row
    done = run_cli(*arguments, env=fake_nvml.env())
    assert done.returncode == 0, done.stderr
    assert [event["segment"] for event in recorded.events("recording_started")] == [1, 2]
    assert recorded.info()["start"] == first["start"]
    assert recorded.info()["end"]["wall_s"] > first["end"]["wall_s"]
    whole = [row for row in recorded.samples() if row["gpu_util_pct"] == "97"]
    assert len(whole) == len(recorded.samples()) - 1
    assert len(whole) >= 4


def test_a_folder_that_cannot_be_made_is_exit_2_without_a_command(run_cli, fake_nvml, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run_cli("record", "--duration", "1", "--output", tmp_path / "file" / "run", env=fake_nvml.env())
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "--output" in done.stderr


def test_a_folder_that_cannot_be_made_does_not_keep_the_command_from_running(run_cli, fake_nvml, tmp_path):
    (tmp_path / "file").write_text("in the way")
    done = run_cli(
        "record", "--output", tmp_path / "file" / "run", "--", "sh", "-c", "echo trained; exit 6", env=fake_nvml.env()
    )
    assert (done.returncode, done.stdout) == (6, "trained\n")
    assert len(done.stderr.splitlines()) == 1


def test_a_removed_folder_does_not_disturb_the_command(start_cli, fake_nvml, recorded):
    running = start_cli(
        "record", *FAST, "--output", recorded.path, "--", "sh", "-c", "sleep 1.5; exit 8", env=fake_nvml.env()
    )
    wait_for(lambda: recorded.path.exists() and len(recorded.samples()) > 2)
    shutil.rmtree(recorded.path)
    done = running.wait()
    assert done.returncode == 8
    assert "rows are being lost" in done.stderr
    assert "Traceback" not in done.stderr


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (1500, 1500))


def test_a_disk_that_fills_up_costs_rows_and_nothing_else(fake_nvml, recorded, tmp_path):
    """A limit on file size stands for the full disk: write fails in the same way, with EFBIG."""
    words = cli_command(
        "record", "--interval", "0.04", "--output", recorded.path, "--", "sh", "-c", "sleep 1.5; exit 3"
    )
    done = subprocess.run(
        words, preexec_fn=limit_file_size, env=clean_environment(fake_nvml.env()), cwd=tmp_path,
        capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "rows are being lost" in done.stderr
    assert "but some of it could not be written" in done.stderr
    lost = [event for event in recorded.events("rows_lost") if event["file"] == "samples.csv"]
    assert lost
    assert lost[0]["rows"] >= 1
    assert lost[0]["reason"]
    whole = [row for row in recorded.samples() if row["gpu_util_pct"] == "97"]
    assert 3 <= len(whole) < 25


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_disk_full_for_a_while_loses_the_rows_of_that_while(fake_nvml, start_cli, tmp_path, recorded):
    recorded.path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", recorded.path], check=True)
    try:
        running = start_cli("record", "--interval", "0.02", "--output", recorded.path, env=fake_nvml.env())
        wait_for(lambda: (recorded.path / "samples.csv").exists() and len(recorded.samples()) > 3)
        filler = recorded.path / "filler"
        fill(filler)
        wait_for(lambda: not grows(recorded))
        filler.unlink()
        rows = len(recorded.samples())
        wait_for(lambda: len(recorded.samples()) > rows + 3)
        done = running.stop()
        assert done.returncode == 0, done.stderr
        assert "samples.csv" in {event["file"] for event in recorded.events("rows_lost")}
        assert recorded.events()[-1]["kind"] == "recording_ended"
        assert recorded.info()["ended_by"] == "signal"
    finally:
        subprocess.run(["umount", "-l", recorded.path], check=True)


def fill(path):
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 512):
                pass
        except OSError:
            return


def grows(recorded):
    rows = (recorded.path / "samples.csv").stat().st_size
    time.sleep(0.35)
    return (recorded.path / "samples.csv").stat().st_size > rows


def test_a_stopped_recorder_tells_its_gap(start_cli, fake_nvml, recorded):
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(lambda: recorded.path.exists() and len(recorded.samples()) > 2)
    running.process.send_signal(signal.SIGSTOP)
    time.sleep(0.8)
    running.process.send_signal(signal.SIGCONT)
    wait_for(lambda: recorded.events("gap"))
    running.stop()
    assert 0.6 < recorded.events("gap")[0]["seconds"] < 2
    times = [float(row["mono_s"]) for row in recorded.samples()]
    close = [later for earlier, later in pairwise(times) if later - earlier < 0.05]
    assert len(close) <= 1  # the late tick and the next point of the grid may be neighbours; a burst would be eight


def test_closed_standard_streams_do_not_end_a_recording(fake_nvml, recorded, tmp_path):
    words = cli_command("record", *FAST, "--duration", "0.5", "--output", recorded.path)
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&- 2>&- <&-', "sh", *words],
        env=clean_environment(fake_nvml.env()), cwd=tmp_path, timeout=20, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert 3 <= len(recorded.samples()) <= 6


def test_record_and_its_help_import_nothing_heavy(fake_nvml, recorded, tmp_path):
    for arguments in (("--help",), (*FAST, "--duration", "0.2", "--output", recorded.path)):
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *cli_command("record", *arguments)[1:]],
            env=clean_environment(fake_nvml.env()),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
        imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
        assert "click" in imported
        assert not imported & {"pandas", "numpy", "plotly", "jinja2", "rich", "psutil", "torch", "ultralytics"}


def test_two_recorders_of_one_second_have_two_folders(start_cli, fake_nvml, tmp_path):
    running = [start_cli("record", *FAST, "--duration", "1", env=fake_nvml.env()) for _ in range(3)]
    assert [recorder.wait().returncode for recorder in running] == [0, 0, 0]
    assert len(list((tmp_path / "gpu-runs").iterdir())) == 3


def test_a_mistyped_kernel_log_is_said(run_cli, fake_nvml, recorded, tmp_path):
    done = run_cli("record", "--kernel-log", tmp_path / "nothing", "--output", recorded.path, env=fake_nvml.env())
    assert done.returncode == 2
    assert "nothing does not exist" in done.stderr
    assert not recorded.path.exists()


def test_a_signal_that_comes_twice_is_one_wish(start_cli, fake_nvml, recorded):
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(lambda: recorded.path.exists() and len(recorded.samples()) > 2)
    running.process.send_signal(signal.SIGTERM)
    time.sleep(0.02)
    assert running.stop(signal.SIGTERM).returncode == 0
    assert recorded.events()[-1]["kind"] == "recording_ended"


@pytest.mark.parametrize(
    ("words", "code"), [(("--",), 2), (("--gpus", ","), 2), (("--", ""), 127), (("--", "", "x"), 127)]
)
def test_empty_words_are_no_wish_for_something_else(run_cli, fake_nvml, recorded, words, code):
    done = run_cli("record", "--output", recorded.path, "--duration", "1", *words, env=fake_nvml.env())
    assert done.returncode == code, done.stderr
    assert "internal error" not in done.stderr
