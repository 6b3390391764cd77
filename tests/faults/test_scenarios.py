"""Every fault of support/scenarios.py: what can be read is recorded, what cannot is empty, and why is said once.

All are played at the same time, each to a recorder of its own.
"""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import FakeNvml, clean_environment, cli_command
from support.run_folder_reader import RunFolder
from support.scenarios import ALL, POWER, POWER_CALL, SCENARIOS, UTILISATION, UTILISATION_CALL, Scenario

WARM_UP_S = 8.0  # twenty-four recorders start at once, on two cores that other tests may use too
INTERVAL_S = 0.25
MARGIN_S = 1.0  # the fake's clock and ours are the same, but a tick may be late on a busy machine
COLUMNS = {UTILISATION: "gpu_util_pct", POWER: "power_w"}
OTHER_CALLS = {
    "nvmlDeviceGetMemoryInfo_v2": ("memory_used_mib",),
    "nvmlDeviceGetTotalEnergyConsumption": ("energy_j",),
    "nvmlDeviceGetClockInfo": ("sm_clock_mhz", "memory_clock_mhz"),
    "nvmlDeviceGetPerformanceState": ("performance_state",),
    "nvmlDeviceGetCurrentClocksEventReasons": ("clock_event_reasons",),
    "nvmlDeviceGetFieldValues": ("memory_temperature_c", "power_cap_s"),
    "nvmlGpmQueryDeviceSupport": ("sm_active_pct",),
    UTILISATION_CALL: ("gpu_util_pct", "memory_util_pct"),
    POWER_CALL: ("power_w",),
}
NOT_SUPPORTED = {
    f"{call} is not supported": Scenario(f"{call} is not supported", (f"error.{call}=3",), gpus=1, seconds=0.0)
    for call in OTHER_CALLS
}
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS} | NOT_SUPPORTED


@pytest.fixture(scope="module")
def played(fake_library: Path, tmp_path_factory: pytest.TempPathFactory):
    """Play all of them; return run folder, start and what the process said, by name."""
    base = tmp_path_factory.mktemp("scenarios")
    running = {}
    start = time.time() + WARM_UP_S
    for number, scenario in enumerate(BY_NAME.values()):
        folder = base / str(number)
        folder.mkdir()
        fake = FakeNvml(fake_library, folder / "state.txt", folder / "trace.txt")
        fake.script(f"count={scenario.gpus}", *scenario.lines, start_wall_s=start)
        env = fake.env() if scenario.library else {}
        words = ("--interval", INTERVAL_S, "--duration", WARM_UP_S + scenario.seconds, "--output", folder / "run")
        # where NVML cannot be opened nothing would be recorded without a command
        command = (
            () if scenario.opens else ("--", sys.executable, "-c", "import time; time.sleep(3); raise SystemExit(3)")
        )
        running[scenario.name] = folder, subprocess.Popen(
            cli_command("record", *words, *command),
            env=clean_environment(env), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    done = {}
    for name, (folder, process) in running.items():
        _, errors = process.communicate(timeout=90)
        done[name] = RunFolder(folder / "run"), start, process.returncode, errors
    return done


def cells(recorded, start, gpu, quantity, since, until):
    rows = [(float(row["wall_s"]) - start, row[COLUMNS[quantity]]) for row in recorded.samples(gpu)]
    return [value for t, value in rows if since < t < until]


@pytest.mark.parametrize("name", [s.name for s in SCENARIOS if s.opens])
def test_what_can_be_read_is_recorded_and_what_cannot_is_empty(played, name):
    scenario = BY_NAME[name]
    recorded, start, code, errors = played[name]
    assert (code, "Traceback" in errors) == (0, False), errors
    ends_s = scenario.seconds if scenario.ends_s is None else scenario.ends_s
    for gpu in range(scenario.gpus):
        for quantity in ALL:
            if (gpu, quantity) in scenario.dark:
                during = cells(recorded, start, gpu, quantity, scenario.begins_s + MARGIN_S, ends_s - MARGIN_S)
                assert set(during) <= {""}, (gpu, quantity)
                after = cells(recorded, start, gpu, quantity, scenario.seconds - 2, scenario.seconds)
                assert ("" in after) == (scenario.ends_s is None), (gpu, quantity)
            else:
                read = [value for value in cells(recorded, start, gpu, quantity, 0, scenario.seconds) if value]
                # one GPU's call that does not return costs the others the seconds until they have their own thread
                assert len(read) * INTERVAL_S >= scenario.seconds - 2.5, (gpu, quantity)


@pytest.mark.parametrize("name", [s.name for s in SCENARIOS if s.reason])
def test_why_it_is_missing_is_said_once(played, name):
    scenario = BY_NAME[name]
    recorded, *_ = played[name]
    dark_gpus = {gpu for gpu, _ in scenario.dark}
    told = [(event["gpu"], event["quantity"]) for event in recorded.events("nvml_error")]
    assert len(told) == len(set(told))
    assert {gpu for gpu, _ in told} == dark_gpus
    assert all(scenario.reason in event["reason"] for event in recorded.events("nvml_error"))
    back = {(event["gpu"], event["quantity"]) for event in recorded.events("nvml_recovered")}
    assert back == (set(told) if scenario.ends_s else set())


@pytest.mark.parametrize("name", [s.name for s in SCENARIOS if "never returns" in s.name or "takes 3 s" in s.name])
def test_a_call_that_does_not_return_is_an_event_that_names_the_gpu(played, name):
    recorded, *_ = played[name]
    stalled = [event["gpu"] for event in recorded.events("nvml_stalled")]
    expected = {gpu for gpu, _ in BY_NAME[name].dark}
    assert set(stalled) == expected or (not expected and not BY_NAME[name].opens)


@pytest.mark.parametrize("name", [s.name for s in SCENARIOS if not s.opens])
def test_without_nvml_the_command_runs_and_the_host_is_recorded(played, name):
    recorded, _, code, errors = played[name]
    assert (code, "Traceback" in errors) == (3, False), errors
    assert len(recorded.rows("host.csv")) >= 1
    assert recorded.events()[-1]["kind"] == "recording_ended"
    if "never returns" not in name:
        assert recorded.events("nvml_unavailable")[0]["advice"]


@pytest.mark.parametrize("call", OTHER_CALLS)
def test_a_quantity_that_is_not_supported_leaves_all_others(played, call):
    recorded, _, code, errors = played[f"{call} is not supported"]
    assert (code, "Traceback" in errors) == (0, False), errors
    rows = recorded.samples(0)
    for other, columns in OTHER_CALLS.items():
        for column in columns:
            assert any(row[column] for row in rows) == (other != call), column
    assert recorded.events("nvml_error")
