"""Memory errors, remapped rows and the link, at the start and at the end of a recording."""

import time

from tests.conftest import wait_for

FAST = ("--interval", "0.1")
DIRTY = ("gpu0.ecc_volatile_uncorrected=2", "gpu0.remap_pending=1", "gpu0.pcie_replays=9", "gpu0.recovery_action=1")


def health(recorded, gpu=0):
    description = recorded.info()["gpus"][gpu]
    return description["health_start"], description["health_end"]


def test_what_a_run_did_to_a_gpu_stands_in_run_json_and_in_the_report(start_cli, run_cli, fake_nvml, recorded):
    fake_nvml.write("count=2\ngpu0.pcie_replays=4\ngpu1.error.nvmlDeviceGetTotalEccErrors=3\n")
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(lambda: (recorded.path / "run.json").exists() and recorded.info()["gpus"])
    assert health(recorded)[1] is None
    fake_nvml.write("\n".join(["count=2", *DIRTY]) + "\n")
    running.stop()
    start, end = health(recorded)
    assert (start["ecc_volatile_uncorrected"], start["row_remap_pending"], start["pcie_replays"]) == (0, 0, 4)
    assert (end["ecc_volatile_uncorrected"], end["row_remap_pending"], end["pcie_replays"]) == (2, 1, 9)
    assert (start["recovery_action"], end["recovery_action"]) == ("none", "reset the GPU")
    assert health(recorded, 1)[0]["ecc_volatile_corrected"] is None
    page = recorded.path / "report.html"
    assert run_cli("render", page, "--run", recorded.path).returncode == 0
    assert "2 uncorrected memory errors during the run." in page.read_text()
    assert recorded.events("nvml_error") == []


def test_a_recording_that_goes_on_keeps_the_start_of_the_first(run_cli, fake_nvml, recorded):
    for replays in (4, 9):
        fake_nvml.write(f"gpu0.pcie_replays={replays}\n")
        run_cli("record", *FAST, "--duration", "0.3", "--output", recorded.path, env=fake_nvml.env())
    start, end = health(recorded)
    assert (start["pcie_replays"], end["pcie_replays"]) == (4, 9)


def test_a_board_with_retired_pages_has_those(run_cli, fake_nvml, recorded):
    fake_nvml.write("error.nvmlDeviceGetRemappedRows=3\nretired_sbe=2\nretired_dbe=0\nretired_pending=1\n")
    run_cli("record", *FAST, "--duration", "0.3", "--output", recorded.path, env=fake_nvml.env())
    _, end = health(recorded)
    assert (end["retired_pages_corrected"], end["retired_pages_pending"]) == (2, 1)
    assert end["remapped_rows_correctable"] is None


def test_the_link_is_read_at_once_and_every_10_s_and_what_it_can_do_once(run_cli, fake_nvml, recorded):
    fake_nvml.write("count=2\ngpu0.pcie_gen=1\npcie_width=4\npcie_gen_max=3\npcie_gen_gpu_max=4\ngpu1.pcie_width=0\n")
    run_cli("record", *FAST, "--duration", "0.5", "--output", recorded.path, env=fake_nvml.env())
    gpu = recorded.info()["gpus"][0]
    can_do = ("max_pcie_link_generation", "max_pcie_link_width", "gpu_max_pcie_link_generation")
    assert [gpu[name] for name in can_do] == [3, 16, 4]
    first, second, *_ = recorded.samples(0)
    assert (first["pcie_link_generation"], first["pcie_link_width"]) == ("1", "4")
    assert (second["pcie_link_generation"], second["pcie_link_width"]) == ("", "")
    assert recorded.samples(1)[0]["pcie_link_width"] == ""  # no link has no lanes
    assert [event["quantity"] for event in recorded.events("nvml_error")] == ["pcie_link_width"]


def test_a_link_that_the_driver_does_not_tell_is_missing(run_cli, fake_nvml, recorded):
    calls = ("CurrPcieLinkGeneration", "CurrPcieLinkWidth", "MaxPcieLinkGeneration", "GpuMaxPcieLinkGeneration")
    fake_nvml.write("".join(f"error.nvmlDeviceGet{call}=3\n" for call in calls))
    run_cli("record", *FAST, "--duration", "0.5", "--output", recorded.path, env=fake_nvml.env())
    gpu = recorded.info()["gpus"][0]
    assert (gpu["max_pcie_link_generation"], gpu["gpu_max_pcie_link_generation"]) == (None, None)
    assert recorded.samples()[0]["pcie_link_generation"] == ""
    assert {event["quantity"] for event in recorded.events("nvml_error")} == {"pcie_link_generation", "pcie_link_width"}


def test_a_counter_that_hangs_at_the_end_holds_nothing(start_cli, fake_nvml, recorded):
    running = start_cli("record", *FAST, "--output", recorded.path, env=fake_nvml.env())
    wait_for(lambda: (recorded.path / "samples.csv").exists() and recorded.samples())
    fake_nvml.write("count=1\nhang.nvmlDeviceGetPcieReplayCounter=1\n")
    asked = time.monotonic()
    running.stop()
    assert time.monotonic() - asked < 6
    assert recorded.info()["ended_by"] == "signal"
    assert health(recorded)[1] is None
    assert recorded.samples()[-1]["energy_j"] != ""  # what was asked before is kept


def test_eight_gpus_at_10_hz_are_all_read_at_the_end(run_cli, fake_nvml, recorded):
    """As dear as on an H200: more together than the half interval that any other tick waits."""
    fake_nvml.write(
        "count=8\ndelay.nvmlDeviceGetTotalEnergyConsumption=0.005\ndelay.nvmlDeviceGetTotalEccErrors=0.001\n"
    )
    run_cli("record", *FAST, "--duration", "1", "--output", recorded.path, env=fake_nvml.env())
    assert all(gpu["health_end"] for gpu in recorded.info()["gpus"])
    assert all(recorded.samples(gpu)[-1]["energy_j"] for gpu in range(8))
