"""Whose the processes on a GPU are, and how busy they keep it."""

import subprocess

import pytest
from support.run_folder_reader import RunFolder

from tests.conftest import wait_for

NOT_HERE = 2**22 + 7  # beyond the kernel's largest pid: what the driver names from another container
# A trainer that says its pid, and ends once the recorder has looked at the GPU's processes three times.
TRAINER = "echo $$ > pid; while [ ! -e done ]; do sleep 0.05; done"


@pytest.fixture
def beside_a_trainer(start_cli, fake_nvml, recorded, tmp_path):
    """Record a command that is on the GPU beside pid 1 and one that is not visible; `state` is added to the fake's."""

    def record(*state: str) -> RunFolder:
        running = start_cli("record", "--output", recorded.path, "--", "sh", "-c", TRAINER, env=fake_nvml.env())
        wait_for((tmp_path / "pid").exists)
        pid = (tmp_path / "pid").read_text().strip()
        lines = [line.format(pid=pid) for line in state]
        fake_nvml.script("count=1", f"gpu0.procs={pid}:4000,1:500,{NOT_HERE}:-", *lines)
        wait_for(lambda: len(fake_nvml.calls("nvmlDeviceGetComputeRunningProcesses_v3")) >= 6, timeout_s=30)
        (tmp_path / "done").touch()
        assert running.wait().returncode == 0
        recorded.trainer = pid
        return recorded

    return record


def test_each_process_is_told_whose_it_is_and_what_it_uses(beside_a_trainer):
    recorded = beside_a_trainer("gpu0.proc_util={pid}:60,1:7")
    owners = {row["pid"]: row["owner"] for row in recorded.rows("processes.csv")}
    assert owners == {recorded.trainer: "trainer", "1": "other", str(NOT_HERE): "not visible"}
    used = {row["pid"]: row["gpu_util_pct"] for row in recorded.rows("processes.csv") if row["gpu_util_pct"]}
    assert used == {recorded.trainer: "60", "1": "7", str(NOT_HERE): "24"}
    assert recorded.events("nvml_error") == []


def test_a_driver_that_does_not_tell_says_so_once_and_is_not_asked_again(beside_a_trainer, fake_nvml):
    recorded = beside_a_trainer("error.nvmlDeviceGetProcessUtilization=3")
    errors = [(event["quantity"], event["reason"]) for event in recorded.events("nvml_error")]
    assert errors == [("processes gpu_util_pct", "Not Supported")]
    assert {row["gpu_util_pct"] for row in recorded.rows("processes.csv")} == {""}
    assert len(fake_nvml.calls("nvmlDeviceGetProcessUtilization")) == 1


def test_stamps_from_long_ago_are_no_utilisation(beside_a_trainer):
    recorded = beside_a_trainer("gpu0.proc_util_old=1", "at=6 gpu0.proc_util_old=0", "gpu0.proc_util={pid}:250")
    used = {row["pid"]: row["gpu_util_pct"] for row in recorded.rows("processes.csv") if row["gpu_util_pct"]}
    assert used.get(recorded.trainer, "0") == "0"  # 250 % is none


def test_without_a_command_the_training_is_told_once_its_run_is_found(start_cli, fake_nvml, recorded, tmp_path):
    work, other = tmp_path / "work", tmp_path / "other"
    for folder in (work, other):
        folder.mkdir()
    with (
        subprocess.Popen(["sleep", "60"], cwd=work) as trainer,
        subprocess.Popen(["sleep", "60"], cwd=other) as stranger,
    ):
        fake_nvml.write(f"count=1\ngpu0.procs={trainer.pid}:4000,{stranger.pid}:500\n")
        running = start_cli("record", "--output", recorded.path, env=fake_nvml.env(), cwd=other)
        wait_for((recorded.path / "processes.csv").exists)
        wait_for(lambda: len(recorded.rows("processes.csv")) == 2)
        assert {row["owner"] for row in recorded.rows("processes.csv")} == {"unknown"}
        (work / "runs/detect/train").mkdir(parents=True)
        (work / "runs/detect/train/args.yaml").write_text("epochs: 3\n")
        wait_for(lambda: {row["owner"] for row in recorded.rows("processes.csv")} >= {"trainer", "other"}, timeout_s=30)
        running.stop()  # before the two end: the fake goes on listing pids that nobody can see any more
        for process in (trainer, stranger):
            process.terminate()
    told = {row["pid"]: row["owner"] for row in recorded.rows("processes.csv") if row["owner"] != "unknown"}
    assert told == {str(trainer.pid): "trainer", str(stranger.pid): "other"}
