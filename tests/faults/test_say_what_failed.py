"""What the recorder could not read is said: on stderr, in the events, and where the run is read afterwards."""

import time

import pytest

from tests.conftest import wait_for

FAST = ("--interval", "0.1")
LOST = "error.nvmlDeviceGetHandleByIndex_v2=15\n"


def test_gpus_that_all_fail_are_named_with_their_reasons(run_cli, fake_nvml, recorded):
    fake_nvml.write(f"count=2\n{LOST}")
    done = run_cli("record", *FAST, "--output", recorded.path, "--", "sleep", "0.5", env=fake_nvml.env())
    assert done.returncode == 0
    reason = "GPU 0: GPU is lost; GPU 1: GPU is lost"
    assert f"no GPU readings: {reason}" in done.stderr
    assert [event["reason"] for event in recorded.events("nvml_unavailable")] == [reason]
    read = run_cli("summary", recorded.path)
    assert read.returncode == 4
    assert reason in read.stderr


def test_one_gpu_of_two_that_fails_is_named(run_cli, fake_nvml, recorded):
    fake_nvml.write(f"count=2\ngpu1.{LOST}")
    done = run_cli("record", *FAST, "--output", recorded.path, "--", "sleep", "0.5", env=fake_nvml.env())
    assert "no readings of GPU 1: GPU is lost" in done.stderr
    assert {row["gpu"] for row in recorded.samples()} == {"0"}


@pytest.mark.parametrize("ends", [True, False], ids=["ended", "killed"])
def test_a_driver_that_hangs_at_opening_is_told(start_cli, run_cli, fake_nvml, recorded, ends):
    fake_nvml.write("count=1\nhang.nvmlInitWithFlags=1\n")
    running = start_cli("record", *FAST, "--output", recorded.path, "--", "sleep", "14", env=fake_nvml.env())
    wait_for(lambda: recorded.path.exists() and recorded.events("nvml_stalled"), timeout_s=30)
    done = running.stop() if ends else running.stop(9)
    assert "no GPU readings so far: the NVIDIA driver does not answer" in done.stderr
    assert len(recorded.events("nvml_unavailable")) == ends
    read = run_cli("summary", recorded.path)
    assert read.returncode == 4
    assert "the NVIDIA driver d" in read.stderr


@pytest.mark.parametrize("kind", ["Compute", "Graphics"])
def test_a_list_of_processes_that_fails_is_told_and_takes_none_away(start_cli, fake_nvml, recorded, kind):
    """Half of the processes would be gone with one list of two."""
    state = "count=1\ngpu0.procs=41:4000\ngpu0.graphics=42:300\n"
    fake_nvml.write(state)
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(lambda: (recorded.path / "processes.csv").exists() and len(recorded.rows("processes.csv")) == 2)
    fake_nvml.write(f"{state}gpu0.error.nvmlDeviceGet{kind}RunningProcesses_v3=999\n")
    wait_for(lambda: recorded.events("nvml_error"), timeout_s=15)
    running.stop()
    (event,) = recorded.events("nvml_error")
    assert (event["gpu"], event["quantity"], event["reason"]) == (0, "processes", "Unknown Error")
    assert {row["change"] for row in recorded.rows("processes.csv")} == {"appeared"}


def test_a_call_that_takes_a_second_is_told_and_its_row_is_empty(run_cli, fake_nvml, recorded):
    """Its cells would be of before and after the wait: power goes from 600 to 100 W in it."""
    hung = "gpu0.delay.nvmlDeviceGetPowerUsage"
    fake_nvml.script(
        f"start={time.time():.3f}", "count=1", "gpu0.power_w=600", f"at=3 {hung}=1.2", "at=3.9 gpu0.power_w=100",
        "at=4 gpu0.util=5", f"at=4 {hung}=0",
    )  # fmt: skip
    run_cli("record", *FAST, "--duration", "6", "--output", recorded.path, env=fake_nvml.env())
    (stalled,) = recorded.events("nvml_stalled")
    assert stalled["gpu"] == 0
    assert 1.0 <= stalled["seconds"] < 2.5
    assert [event["gpu"] for event in recorded.events("nvml_recovered")] == [0]
    rows = [(row["gpu_util_pct"], row["power_w"]) for row in recorded.samples()]
    assert set(rows) <= {("97", "600"), ("", ""), ("97", "100"), ("5", "100")}
    times_s = [float(row["mono_s"]) for row in recorded.samples() if row["gpu_util_pct"] == ""]
    assert times_s


def test_a_driver_that_does_not_wait_for_events_is_not_asked_all_the_time(run_cli, fake_nvml, recorded):
    fake_nvml.write("count=1\nerror.nvmlEventSetWait_v2=10\n")  # NVML_ERROR_TIMEOUT, at once
    run_cli("record", *FAST, "--duration", "3", "--output", recorded.path, env=fake_nvml.env())
    assert 1 <= len(fake_nvml.calls("nvmlEventSetWait_v2")) <= 3 / 0.25 + 2
    statuses = [event["status"] for event in recorded.events("xid_events")]
    assert statuses == ["listening"]
