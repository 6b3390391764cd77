"""A GPU or its driver misbehaves: what can still be read is recorded, and why the rest is missing is said once."""

import json
import re
import signal
import time

import pytest
from support.stderr import one_line

from tests.conftest import wait_for

FAST = ("--interval", "0.1")


def filled(rows, column):
    return [row[column] for row in rows if row[column] != ""]


class Live:
    """A recording that goes on while the test changes the fake driver under it."""

    def __init__(self, start_cli, fake, folder):
        self.folder = folder
        self.running = start_cli("record", *FAST, "--output", folder.path, env=fake.env())
        wait_for((folder.path / "samples.csv").exists)
        self.more_rows(3)

    def more_rows(self, count, name="samples.csv"):
        before = len(self.folder.rows(name))
        wait_for(lambda: len(self.folder.rows(name)) >= before + count)

    def until(self, kind):
        wait_for(lambda: self.folder.events(kind))

    def stop(self):
        done = self.running.stop(signal.SIGTERM)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture
def live(start_cli, fake_nvml, recorded):
    return lambda: Live(start_cli, fake_nvml, recorded)


def test_a_healthy_gpu_is_recorded_in_full(run_cli, fake_nvml, recorded):
    fake_nvml.write("count=2\ngpu1.util=12\n")
    done = run_cli("record", *FAST, "--duration", "1", "--output", recorded.path, env=fake_nvml.env())
    assert done.returncode == 0, done.stderr
    rows = recorded.samples(0)
    assert 9 <= len(rows) <= 11  # a busy machine may cost a tick
    first = rows[0]
    assert first["energy_j"] != ""
    assert {name: first[name] for name in ("gpu_util_pct", "memory_util_pct", "memory_used_mib", "power_w")} == {
        "gpu_util_pct": "97",
        "memory_util_pct": "53",
        "memory_used_mib": "43945",
        "power_w": "610.5",
    }
    assert {row["gpu_util_pct"] for row in recorded.samples(1)} == {"12"}
    assert [event["kind"] for event in recorded.events()][:: len(recorded.events()) - 1] == [
        "recording_started",
        "recording_ended",
    ]
    info = recorded.info()
    assert info["ended_by"] == "duration"
    assert [gpu["pci_bus_id"] for gpu in info["gpus"]] == ["00000000:00:06.0", "00000000:00:07.0"]
    assert info["recorder"]["errors"] == 0


def test_ticks_keep_to_their_grid(run_cli, fake_nvml, recorded):
    fake_nvml.write("delay.nvmlDeviceGetPowerUsage=0.03\n")  # sleeps of 0.2 s between ticks would drift by this much
    run_cli("record", "--interval", "0.2", "--duration", "2.4", "--output", recorded.path, env=fake_nvml.env())
    phases = sorted(float(row["mono_s"]) % 0.2 for row in recorded.rows("host.csv"))
    together = max(sum(0 <= (phase - first) % 0.2 < 0.01 for phase in phases) for first in phases)
    assert 8 <= len(phases) <= 13
    assert together >= 0.4 * len(phases)  # all of them on a quiet machine; with a drift one in six


def test_energy_is_read_seldom_and_pcie_throughput_never(run_cli, fake_nvml, recorded):
    run_cli("record", *FAST, "--duration", "1", "--output", recorded.path, env=fake_nvml.env())
    assert len(fake_nvml.calls("nvmlDeviceGetUtilizationRates")) == len(recorded.samples())
    assert len(fake_nvml.calls("nvmlDeviceGetTotalEnergyConsumption")) == 2
    assert fake_nvml.calls("nvmlDeviceGetPcieThroughput") == []
    rows = recorded.samples()
    assert [number for number, row in enumerate(rows) if row["energy_j"]] == [0, len(rows) - 1]
    elapsed_s = float(rows[-1]["mono_s"]) - float(rows[0]["mono_s"])
    joules = float(rows[-1]["energy_j"]) - float(rows[0]["energy_j"])
    assert joules == pytest.approx(610.5 * elapsed_s, abs=31)  # its moment is 50 ms off at most


def test_a_lost_gpu_leaves_empty_cells_and_the_other_one_goes_on(live, fake_nvml, recorded):
    fake_nvml.write("count=2\n")
    recording = live()
    fake_nvml.write("count=2\ngpu1.error=15\n")
    recording.until("nvml_error")
    recording.more_rows(8)
    recording.stop()
    assert len(recorded.samples(0)) == len(recorded.samples(1))
    assert len(filled(recorded.samples(0), "gpu_util_pct")) == len(recorded.samples(0))
    assert filled(recorded.samples(1)[:1], "gpu_util_pct") == ["97"]
    assert filled(recorded.samples(1)[-3:], "power_w") == []
    errors = [(event["gpu"], event["quantity"], event["reason"]) for event in recorded.events("nvml_error")]
    assert errors == [(1, "all", "GPU is lost")]


def test_a_gpu_that_is_no_longer_counted_is_lost_and_the_others_go_on(live, fake_nvml, recorded):
    fake_nvml.write("count=3\n")
    recording = live()
    fake_nvml.write("count=2\n")
    recording.until("nvml_error")
    recording.more_rows(9)
    recording.stop()
    assert [(event["gpu"], event["quantity"]) for event in recorded.events("nvml_error")] == [(2, "all")]
    last = {row["gpu"]: row["gpu_util_pct"] for row in recorded.samples()[-3:]}
    assert last == {"0": "97", "1": "97", "2": ""}


def test_a_counter_that_goes_back_is_recorded_as_it_is_and_never_negative_energy(run_cli, fake_nvml, recorded):
    """As when the driver is loaded anew under a recording."""
    fake_nvml.script("count=1", "gpu0.energy_j=90000", "at=2 gpu0.energy_j=12")
    run_cli("record", *FAST, "--duration", "4", "--output", recorded.path, env=fake_nvml.env())
    assert filled(recorded.samples(), "energy_j") == ["90000", "12"]
    done = run_cli("summary", recorded.path, "--format", "json")
    (gpu,) = json.loads(done.stdout)["gpus"]
    assert gpu["energy_j"] == pytest.approx(610.5 * 4, rel=0.1)  # power's integral, for the counter tells nothing


def test_the_only_gpu_lost_is_asked_seldom(live, fake_nvml, recorded):
    recording = live()
    fake_nvml.write("count=1\nerror=15\n")
    recording.until("nvml_error")
    recording.more_rows(8)
    recording.stop()
    calls = fake_nvml.calls("nvmlDeviceGetUtilizationRates")
    assert len(calls) <= len(filled(recorded.samples(), "gpu_util_pct")) + 2
    assert len(recorded.samples()) > len(calls) + 4


def test_what_a_gpu_does_not_support_is_empty_and_not_asked_again(run_cli, fake_nvml, recorded):
    fake_nvml.write("error.nvmlDeviceGetUtilizationRates=3\nerror.nvmlDeviceGetTotalEnergyConsumption=13\n")
    run_cli("record", *FAST, "--duration", "0.5", "--output", recorded.path, env=fake_nvml.env())
    assert filled(recorded.samples(), "gpu_util_pct") == []
    assert len(filled(recorded.samples(), "power_w")) == len(recorded.samples())
    assert len(fake_nvml.calls("nvmlDeviceGetUtilizationRates")) == 1
    told = {event["quantity"]: event["reason"] for event in recorded.events("nvml_error")}
    assert told == {
        "gpu_util_pct": "Not Supported",
        "memory_util_pct": "Not Supported",
        "energy_j": "Function Not Found",
    }


def test_an_old_driver_is_read_by_its_older_calls(run_cli, fake_nvml, recorded):
    fake_nvml.write(
        "error.nvmlDeviceGetMemoryInfo_v2=13\nerror.nvmlDeviceGetTemperatureV=13\n"
        "error.nvmlDeviceGetCurrentClocksEventReasons=13\n"
    )
    run_cli("record", *FAST, "--duration", "0.3", "--output", recorded.path, env=fake_nvml.env())
    row = recorded.samples()[0]
    assert row["memory_used_mib"] == str(43945 + 615)  # v1 counts the reserved block
    assert row["memory_reserved_mib"] == ""
    assert (row["temperature_c"], row["clock_event_reasons"]) == ("49", "4")
    said = [(event["quantity"], event["reason"]) for event in recorded.events("nvml_error")]
    assert said == [("memory_reserved_mib", "an old driver: memory_used_mib includes what it reserves")]


def test_a_performance_state_that_the_driver_does_not_know_is_empty_and_said_once(run_cli, fake_nvml, recorded):
    fake_nvml.write("pstate=32\n")
    run_cli("record", *FAST, "--duration", "0.5", "--output", recorded.path, env=fake_nvml.env())
    assert {row["performance_state"] for row in recorded.samples()} == {""}
    said = [(event["quantity"], event["reason"]) for event in recorded.events("nvml_error")]
    assert said == [("performance_state", "the driver does not know it")]


@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceGetUtilizationRates",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetFieldValues",
        "nvmlGpmSampleGet",
        "nvmlGpmMetricsGet",
    ],
)
def test_an_unknown_error_once_disables_nothing_for_good(live, fake_nvml, recorded, call):
    recording = live()
    fake_nvml.write(f"error.{call}=999\n")
    recording.more_rows(4)
    fake_nvml.write("count=1\n")
    asked = len(fake_nvml.calls(call))
    recording.more_rows(3)
    recording.stop()
    assert len(fake_nvml.calls(call)) > asked + 1
    failed = {event["quantity"] for event in recorded.events("nvml_error")}
    assert failed == {event["quantity"] for event in recorded.events("nvml_recovered")}
    assert failed


def test_an_unknown_error_that_passes_is_told_twice_and_read_again(live, fake_nvml, recorded):
    recording = live()
    fake_nvml.write("error.nvmlDeviceGetPowerUsage=999\n")
    recording.until("nvml_error")
    recording.more_rows(3)
    fake_nvml.write("count=1\n")
    recording.until("nvml_recovered")
    recording.more_rows(2)
    recording.stop()
    assert [event["quantity"] for event in recorded.events("nvml_error")] == ["power_w"]
    assert [event["quantity"] for event in recorded.events("nvml_recovered")] == ["power_w"]
    power = [row["power_w"] for row in recorded.samples()]
    assert power.count("") >= 3
    assert power[0] != ""
    assert power[-1] != ""
    assert filled(recorded.samples(), "gpu_util_pct") == ["97"] * len(power)


def test_a_driver_that_never_answers_again_stops_neither_the_host_rows_nor_sigterm(live, fake_nvml, recorded):
    recording = live()
    fake_nvml.write("hang.nvmlDeviceGetPowerUsage=1\n")
    recording.until("nvml_stalled")
    recording.more_rows(5, "host.csv")
    asked = time.monotonic()
    recording.stop()
    assert time.monotonic() - asked < 5
    assert len(recorded.events("nvml_stalled")) == 1
    assert recorded.events()[-1]["kind"] == "recording_ended"
    assert recorded.events()[-1]["signal"] == "SIGTERM"
    assert recorded.info()["ended_by"] == "signal"
    assert [row["power_w"] for row in recorded.samples()][-3:] == ["", "", ""]


def test_one_gpu_of_eight_that_never_answers_is_named_and_the_others_are_read(live, fake_nvml, recorded):
    fake_nvml.write("count=8\n")
    recording = live()
    fake_nvml.write("count=8\ngpu3.hang=1\n")
    recording.until("nvml_stalled")
    recording.more_rows(80)
    recording.stop()
    assert [event["gpu"] for event in recorded.events("nvml_stalled")] == [3]
    last = {row["gpu"]: row["gpu_util_pct"] for row in recorded.samples()}
    assert last == {str(gpu): "" if gpu == 3 else "97" for gpu in range(8)}
    assert recorded.events()[-1]["kind"] == "recording_ended"


def test_a_gpu_that_answers_again_is_read_again_beside_the_others(live, fake_nvml, recorded):
    fake_nvml.write("count=2\n")
    recording = live()
    fake_nvml.write("count=2\ngpu0.delay.nvmlDeviceGetPowerUsage=2.5\n")
    recording.until("nvml_stalled")
    fake_nvml.write("count=2\n")
    recording.until("nvml_recovered")
    recording.more_rows(8)
    recording.stop()
    assert [event["gpu"] for event in recorded.events("nvml_recovered")] == [0]
    rows = {gpu: [row["gpu_util_pct"] for row in recorded.samples(gpu)] for gpu in (0, 1)}
    assert rows[0][-3:] == rows[1][-3:] == ["97"] * 3
    assert rows[0].count("") > rows[1].count("") > 0


def test_the_last_reading_is_waited_for_so_that_energy_is_whole(run_cli, fake_nvml, recorded):
    fake_nvml.write("count=8\ndelay.nvmlDeviceGetPowerUsage=0.1\n")
    run_cli("record", *FAST, "--duration", "3", "--output", recorded.path, env=fake_nvml.env())
    for gpu in range(8):
        assert recorded.samples(gpu)[-1]["energy_j"] != "", gpu


def test_waits_for_events_that_begin_to_fail_are_said_once(live, fake_nvml, recorded):
    recording = live()
    recording.until("xid_events")
    fake_nvml.write("error.nvmlEventSetWait_v2=15\n")
    wait_for(lambda: len(recorded.events("xid_events")) == 2)
    recording.stop()
    told = [(event["status"], event["reason"]) for event in recorded.events("xid_events")]
    assert told == [("listening", ""), ("unavailable", "GPU is lost")]


def test_a_quantity_that_fails_and_recovers_all_the_time_does_not_fill_the_disk(run_cli, fake_nvml, recorded):
    flapping = [f"at={n / 10} error.nvmlDeviceGetPowerUsage={999 if n % 2 else 0}" for n in range(60)]
    fake_nvml.script(*flapping)
    run_cli("record", *FAST, "--duration", "6", "--output", recorded.path, env=fake_nvml.env())
    told = [event for event in recorded.events() if event.get("quantity") == "power_w"]
    assert 5 <= len(told) <= 11  # ten as they come, and how it stands at the end
    assert filled(recorded.samples(), "power_w") != []


def test_a_wait_for_events_that_never_returns_does_not_hold_the_end(live, fake_nvml, recorded):
    recording = live()
    recording.until("xid_events")
    fake_nvml.write("hang.nvmlEventSetWait_v2=1\n")
    recording.more_rows(8)
    recording.stop()
    assert recorded.events()[-1]["kind"] == "recording_ended"
    assert set(filled(recorded.samples(), "gpu_util_pct")) == {"97"}


def test_the_exit_code_passes_through_a_hung_driver(start_cli, fake_nvml, recorded, tmp_path):
    script = "while [ ! -e go ]; do sleep 0.05; done; exit 7"
    running = start_cli("record", *FAST, "--output", recorded.path, "--", "sh", "-c", script, env=fake_nvml.env())
    wait_for((recorded.path / "samples.csv").exists)
    fake_nvml.write("hang=1\n")
    wait_for(lambda: recorded.events("nvml_stalled"))
    (tmp_path / "go").touch()
    assert running.wait().returncode == 7
    assert recorded.info()["exit_code"] == 7


def test_a_driver_that_hangs_at_opening_does_not_hold_the_command(start_cli, fake_nvml, recorded):
    fake_nvml.write("hang.nvmlInitWithFlags=1\n")
    running = start_cli(
        "record", *FAST, "--output", recorded.path, "--", "sh", "-c", "sleep 0.3; exit 3", env=fake_nvml.env()
    )
    done = running.wait(timeout_s=10)
    assert done.returncode == 3, done.stderr
    assert recorded.info()["exit_code"] == 3
    assert len(recorded.rows("host.csv")) >= 1


def test_a_driver_that_is_slow_for_less_than_a_tick_leaves_no_empty_row(live, fake_nvml, recorded):
    fake_nvml.write("delay.nvmlDeviceGetPowerUsage=0.07\n")  # more than the half interval that a tick waits
    recording = live()
    recording.more_rows(5)
    recording.stop()
    assert {row["gpu_util_pct"] for row in recorded.samples()[:5]} == {"97"}
    assert recorded.events("nvml_stalled") == []


def test_a_driver_that_answers_late_is_read_again_when_it_does(live, fake_nvml, recorded):
    recording = live()
    fake_nvml.write("delay.nvmlDeviceGetPowerUsage=2.5\nutil=55\n")
    recording.until("nvml_stalled")
    fake_nvml.write("util=77\n")
    recording.until("nvml_recovered")
    recording.more_rows(3)
    recording.stop()
    kinds = [event["kind"] for event in recorded.events()]
    assert kinds.index("nvml_stalled") < kinds.index("nvml_recovered")
    util = [row["gpu_util_pct"] for row in recorded.samples()]
    assert util.count("") >= 10
    assert "55" not in util  # utilisation of before the wait and power of after it are no row
    assert util[-3:] == ["77"] * 3
    assert recorded.events("gap") == []


def test_processes_are_told_when_they_appear_change_and_go(run_cli, fake_nvml, recorded):
    fake_nvml.write("gpu0.procs=1:4000,999999:-\n")
    run_cli("record", *FAST, "--duration", "0.3", "--output", recorded.path, env=fake_nvml.env())
    rows = {row["pid"]: row for row in reversed(recorded.rows("processes.csv"))}  # the first of each
    assert (rows["1"]["memory_used_mib"], rows["1"]["change"]) == ("4000", "appeared")
    assert rows["1"]["name"] != ""
    assert (rows["999999"]["memory_used_mib"], rows["999999"]["name"]) == ("", "")
    assert (rows["1"]["owner"], rows["999999"]["owner"]) == ("unknown", "not visible")


def test_xid_events_need_no_kernel_log(live, fake_nvml, recorded):
    fake_nvml.write("count=2\n")
    recording = live()
    recording.until("xid_events")
    fake_nvml.script("count=2", "at=0.1 gpu1.xid=31", "at=0.2 gpu0.xid=79")
    wait_for(lambda: len(recorded.events("xid")) == 2)
    recording.stop()
    assert [(event["gpu"], event["code"]) for event in recorded.events("xid")] == [(1, 31), (0, 79)]
    assert [event["status"] for event in recorded.events("xid_events")] == ["listening"]


def test_two_xids_at_one_moment_are_two_events(live, fake_nvml, recorded):
    fake_nvml.write("count=2\n")
    recording = live()
    recording.until("xid_events")
    fake_nvml.script("count=2", "at=0.1 gpu1.xid=48", "at=0.1 gpu1.xid=94", "at=0.1 gpu0.xid=63")
    wait_for(lambda: len(recorded.events("xid")) == 3)
    recording.stop()
    assert [(event["gpu"], event["code"]) for event in recorded.events("xid")] == [(1, 48), (1, 94), (0, 63)]


def test_a_lost_gpu_does_not_make_the_event_thread_spin(run_cli, fake_nvml, recorded):
    fake_nvml.write("error.nvmlEventSetWait_v2=15\n")
    run_cli("record", *FAST, "--duration", "1", "--output", recorded.path, env=fake_nvml.env())
    assert len(fake_nvml.calls("nvmlEventSetWait_v2")) == 1
    assert recorded.info()["recorder"]["cpu_pct"] < 60


@pytest.mark.parametrize(
    ("code", "words"),
    [(18, "reload the module"), (9, ""), (4, "no permission"), (999, "")],
)
def test_nvml_that_cannot_be_opened_is_one_line_and_exit_5(run_cli, fake_nvml, recorded, code, words):
    fake_nvml.write(f"error.nvmlInitWithFlags={code}\n")
    done = run_cli("record", "--duration", "1", "--output", recorded.path, env=fake_nvml.env())
    assert done.returncode == 5
    assert words in one_line(done.stderr)
    assert not recorded.path.exists()


def test_without_nvml_a_command_runs_all_the_same(run_cli, tmp_path, recorded):
    empty = tmp_path / "no-driver"
    empty.mkdir()
    done = run_cli(
        "record", *FAST, "--output", recorded.path, "--", "sh", "-c", "echo trained; exit 4",
        env={"LD_LIBRARY_PATH": str(empty)},
    )  # fmt: skip
    assert done.returncode == 4
    assert done.stdout == "trained\n"
    begun, why, ended = re.split(r"\n(?=gpu-report: )", done.stderr)
    assert "without a GPU" in begun
    assert "no GPU readings" in why
    assert "recorded into" in ended
    event = recorded.events("nvml_unavailable")[0]
    assert event["reason"]
    assert event["advice"]
    assert recorded.rows("host.csv")


@pytest.mark.parametrize("named", ["9", "0,9", "-1", "GPU-9"])
@pytest.mark.parametrize("how", [("--", "touch", "ran"), ("--duration", "0.3"), ("--duration", "0.3", "--background")])
def test_an_unknown_gpu_is_refused_before_anything_starts(run_cli, fake_nvml, recorded, tmp_path, named, how):
    fake_nvml.write("count=2\n")
    options, command = (how, ()) if how[0] != "--" else ((), how)
    asked = ("--gpus", named, "--output", recorded.path)
    done = run_cli("record", *options, *asked, *command, env=fake_nvml.env())
    assert (done.returncode, done.stdout) == (2, "")
    said = one_line(done.stderr)
    assert f"this machine has no GPU {named.removeprefix('0,')}. --gpus can name these: 0 (NVIDIA H200, GPU-" in said
    assert ", 1 (NVIDIA H200, GPU-" in said
    assert not (tmp_path / "ran").exists()
    assert not recorded.path.exists()


def test_a_named_gpu_that_cannot_be_opened_is_refused_with_why(run_cli, fake_nvml, recorded):
    fake_nvml.write("count=2\ngpu1.error.nvmlDeviceGetHandleByIndex_v2=15\n")
    done = run_cli("record", "--gpus", "1", "--duration", "0.3", "--output", recorded.path, env=fake_nvml.env())
    assert done.returncode == 2
    assert "GPU 1 cannot be opened: GPU is lost. --gpus can name these: 0 (" in one_line(done.stderr)


def test_where_nvml_cannot_be_loaded_a_named_gpu_keeps_nothing_from_running(run_cli, tmp_path, recorded):
    (tmp_path / "no-driver").mkdir()
    env = {"LD_LIBRARY_PATH": str(tmp_path / "no-driver")}
    done = run_cli("record", *FAST, "--gpus", "9", "--output", recorded.path, "--", "echo", "trained", env=env)
    assert (done.returncode, done.stdout) == (0, "trained\n")
    assert recorded.events("nvml_unavailable")


def test_gpus_are_chosen_by_uuid_whatever_cuda_may_see(run_cli, fake_nvml, recorded):
    fake_nvml.write("count=3\n")
    uuid = "GPU-00000000-0000-4000-8000-000000000003"
    env = {**fake_nvml.env(), "CUDA_VISIBLE_DEVICES": "0"}
    run_cli("record", *FAST, "--gpus", f"{uuid},1", "--duration", "0.2", "--output", recorded.path, env=env)
    assert {row["gpu"] for row in recorded.samples()} == {"1", "2"}


def test_a_gpu_that_cannot_be_opened_is_told_and_the_rest_recorded(run_cli, fake_nvml, recorded):
    fake_nvml.write("count=2\ngpu0.error.nvmlDeviceGetHandleByIndex_v2=15\n")
    run_cli("record", *FAST, "--duration", "0.3", "--output", recorded.path, env=fake_nvml.env())
    assert {row["gpu"] for row in recorded.samples()} == {"1"}
    assert [(event["gpu"], event["quantity"]) for event in recorded.events("nvml_error")] == [(0, "all")]
