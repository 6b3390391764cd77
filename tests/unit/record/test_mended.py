"""Faults that a review found, each with the test that keeps it away."""

import os
import subprocess
import sys
import time

import pytest
from conftest import clean_environment, cli_command
from support.run_folder_reader import RunFolder

from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_command
from gpu_report.record.yolo.find_run_dir import find_newest, search_roots
from gpu_report.run_folder import Appender

pytestmark = pytest.mark.live


def test_our_own_copies_of_a_yolo_run_are_no_yolo_run(tmp_path):
    ours = tmp_path / "r"
    (ours / "yolo").mkdir(parents=True)
    for path in (
        ours / "samples.csv",
        ours / "events.jsonl",
        ours / "yolo" / "results.csv",
        ours / "yolo" / "args.yaml",
    ):
        path.write_text("x")
    assert find_newest([tmp_path], 0.0) is None
    real = tmp_path / "runs" / "train"
    real.mkdir(parents=True)
    (real / "args.yaml").write_text("x")
    assert find_newest([tmp_path], 0.0) == real


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "yolo detect train project=/data/mine epochs=3; echo done"],
        ["sh", "-c", "python train.py --project '/data/mine'"],
        ["yolo", "train", "project=/data/mine"],
        ["python", "t.py", "--project", "/data/mine"],
    ],
)
def test_a_project_is_found_also_in_a_shell_script(command):
    assert "/data/mine" in {str(root) for root in search_roots(command, [])}


def test_a_project_is_found_in_what_the_command_started(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(20)", f"project={tmp_path}"])
    try:
        time.sleep(0.5)
        assert tmp_path in search_roots([], [child.pid])
    finally:
        child.kill()
        child.wait()


def test_without_a_home_the_search_goes_on(monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    assert search_roots(["x", "project=~nobody-such/x"], [])


def test_secrets_in_a_shell_script_are_redacted():
    (_, _, script) = hide_in_command(["sh", "-c", "export WANDB_API_KEY=0123abc; train --token hunter2 --epochs 3"])
    assert script == "export WANDB_API_KEY=***; train --token *** --epochs 3"


def test_a_renamed_folder_goes_on_being_written_and_a_removed_one_does_not(tmp_path):
    (tmp_path / "a").mkdir()
    file = Appender(tmp_path / "a" / "rows.csv")
    (tmp_path / "a").rename(tmp_path / "b")
    assert file.write(b"1\n")
    assert (tmp_path / "b" / "rows.csv").read_bytes() == b"1\n"
    (tmp_path / "b" / "rows.csv").unlink()
    assert not file.write(b"2\n")
    assert (file.lost, file.lost_reason) == (1, "the run folder was removed")


def test_a_row_after_a_torn_one_stands_on_its_own_line(tmp_path, monkeypatch):
    file = Appender(tmp_path / "rows.csv")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, text: real(fd, text[:3]))
    assert not file.write(b"1,2,3\n")
    monkeypatch.setattr(os, "write", real)
    assert file.write(b"4,5,6\n")
    assert (tmp_path / "rows.csv").read_bytes() == b"1,2?\n4,5,6\n"


def test_a_mistyped_command_leaves_an_earlier_recording_as_it_was(run_cli, fake_nvml, tmp_path):
    run_cli("record", "--duration", "0.3", "--interval", "0.1", "--output", "r", env=fake_nvml.env())
    before = RunFolder(tmp_path / "r").info()
    assert run_cli("record", "--output", "r", "--", "/no/such", env=fake_nvml.env()).returncode == 127
    assert RunFolder(tmp_path / "r").info() == before


def test_a_closed_stdout_does_not_change_the_exit_code(fake_nvml, tmp_path):
    fake_nvml.write("count=1\nhang.nvmlDeviceGetUtilizationRates=1\n")
    words = " ".join(cli_command("record", "--interval", "0.1", "--output", tmp_path / "r", "--", "sh", "-c"))
    done = subprocess.run(
        ["bash", "-c", f"exec {words} 'sleep 1; exit 7' >&-"],
        env=clean_environment(fake_nvml.env()),
        cwd=tmp_path,
        timeout=60,
        check=False,
        stderr=subprocess.PIPE,
    )
    assert done.returncode == 7
