"""A GPU in MIG mode: each of its MIG devices is a device of its own, with what NVML tells of it."""

import pytest

FAST = ("--interval", "0.1")
STATE = (
    "count=2",
    "gpu1.mig=1",
    "gpu1.migs=2",
    "gpu1.mig1.used_mib=9000",
    "gpu1.mig1.sm_active=40",
    "gpu1.mig1.util=55",
    "gpu1.procs=7:4000,8:500",
    "gpu1.mig0.procs=7:4000",
    "gpu1.mig1.procs=8:500",
)
BOARD = (
    "board",
    "power, energy, temperatures, clocks, memory utilisation and, without GPM, utilisation "
    "are known of the whole board only: see GPU 1",
)
RING = ("ring gpu_util_pct", "Not Supported")
UUID = "MIG-00000000-0000-4000-8002-000000000002"


@pytest.fixture
def record(run_cli, fake_nvml, recorded):
    def recording(*arguments, gpm=1):
        fake_nvml.write("\n".join([*STATE, f"gpm={gpm}"]) + "\n")
        done = run_cli("record", *FAST, "--output", recorded.path, *arguments, env=fake_nvml.env())
        assert done.returncode == 0, done.stderr
        return recorded

    return recording


def test_mig_devices_stand_beside_their_gpu(record, fake_nvml):
    recorded = record("--duration", "1.5")
    described = {gpu["index"]: gpu for gpu in recorded.info()["gpus"]}
    assert sorted(described) == [0, 1, 2000, 2001]
    second = described[2001]
    assert (second["uuid"], second["parent_index"], second["mig_index"]) == (UUID, 1, 1)
    assert (second["name"], second["memory_total_mib"]) == ("NVIDIA H200 MIG 1g.18gb", 18000)
    assert second["health_end"] is None
    last = {
        row["gpu"]: row
        for row in recorded.samples()
        if row["memory_used_mib"] and (row["gpu"] != "1" or row["power_w"])
    }
    assert [last[gpu]["memory_used_mib"] for gpu in ("2000", "2001")] == ["6000", "9000"]
    active = {(row["gpu"], row["sm_active_pct"]) for row in recorded.samples() if row["sm_active_pct"]}
    assert active == {("0", "0"), ("2000", "0"), ("2001", "40")}  # GPM wants two ticks that lie apart
    busy = {(row["gpu"], row["gpu_util_pct"]) for row in recorded.samples() if row["gpu_util_pct"]}
    assert busy == {("0", "97"), ("2000", "97"), ("2001", "55")}  # of MIG devices by GPM, too
    assert (last["1"]["power_w"], last["2001"]["power_w"]) == ("610.5", "")
    assert {(row["gpu"], row["pid"]) for row in recorded.rows("processes.csv")} == {("2000", "7"), ("2001", "8")}
    assert [event["status"] for event in recorded.events("xid_events")] == ["listening"]
    assert len(fake_nvml.calls("nvmlDeviceRegisterEvents")) == 2


def said(recorded, gpu):
    return sorted((e["quantity"], e["reason"]) for e in recorded.events("nvml_error") if e["gpu"] == gpu)


def test_each_empty_cell_of_a_mig_device_has_its_event_once(record):
    recorded = record("--duration", "0.5")
    assert said(recorded, 2001) == [BOARD, ("processes gpu_util_pct", "Not Supported"), RING]
    assert ("gpu_util_pct", "Not Supported") in said(recorded, 1)


def test_before_hopper_there_is_no_utilisation_and_it_is_said(record):
    recorded = record("--duration", "0.5", gpm=0)
    assert {row["gpu_util_pct"] for row in recorded.samples(2001)} == {""}
    assert said(recorded, 2001) == [BOARD, ("gpm", "Not Supported"), ("processes gpu_util_pct", "Not Supported"), RING]


def test_a_mig_device_is_chosen_by_its_uuid(record):
    recorded = record("--duration", "0.3", "--gpus", UUID)
    assert {row["gpu"] for row in recorded.samples()} == {"2001"}
    assert [event["status"] for event in recorded.events("xid_events")] == ["listening"]


def test_such_a_run_renders(record, run_cli):
    recorded = record("--duration", "0.5")
    page = recorded.path / "report.html"
    done = run_cli("render", page, "--run", recorded.path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "NVIDIA H200 MIG 1g.18gb, MIG device 1 of GPU 1" in page.read_text()
