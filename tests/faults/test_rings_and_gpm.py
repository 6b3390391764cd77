"""What the driver keeps between ticks, and what the GPU really did: recorded where it is, said where it is not."""

import itertools
import statistics

import pytest
from support.run_folder_reader import RunFolder

SECONDS = 7  # longer than a ring is left alone
SQUARE, SHUFFLED, EMPTY, OLD, REPEATING = range(5)  # the five GPUs of one recording
SCRIPT = (
    "count=5",
    "gpu4.ring=old",
    "square=gpu0.util 97 3 1.4 0.6",
    "gpu1.gpm=0",
    "gpu0.tensor=12.4",
    "gpu0.sm_active=70",
    "at=4 gpu0.sm_active=0",
    "gpu0.power_cap_ns=8432722176",
    "gpu0.sw_thermal_ns=5000000000",
    "gpu1.ring=shuffled",
    "gpu2.ring=0",
    "gpu3.error.nvmlDeviceGetSamples=3",
    "gpu3.error.nvmlDeviceGetFieldValues=13",
)


@pytest.fixture(scope="module")
def several(fake_library, tmp_path_factory):
    """Record four GPUs of different kinds at once; return the run folder and the fake with its trace."""
    import subprocess  # noqa: PLC0415

    from conftest import FakeNvml, clean_environment, cli_command  # noqa: PLC0415 - fixtures of function scope

    folder = tmp_path_factory.mktemp("rings")
    fake = FakeNvml(fake_library, folder / "state.txt", folder / "trace.txt")
    fake.script(*SCRIPT)
    command = cli_command("record", "--duration", SECONDS, "--output", folder / "run")
    subprocess.run(command, env=clean_environment(fake.env()), cwd=folder, check=True, capture_output=True)
    return RunFolder(folder / "run"), fake


def ring(recorded, gpu, column="gpu_util_pct"):
    return [row for row in recorded.rows("ring.csv") if row["gpu"] == str(gpu) and row[column]]


def stamps(rows):
    return [float(row["mono_s"]) for row in rows]


def said(recorded, gpu):
    return [(e["quantity"], e["reason"]) for e in recorded.events("nvml_error") if e["gpu"] == gpu]


def test_dips_between_ticks_are_in_the_ring_and_none_is_lost_or_twice(several):
    recorded, _ = several
    rows = ring(recorded, SQUARE)
    times = stamps(rows)
    steps = [b - a for a, b in itertools.pairwise(times)]
    assert {row["gpu_util_pct"] for row in rows} == {"97", "3"}
    assert len(rows) == pytest.approx(SECONDS * 5, abs=2)
    assert statistics.median(steps) == pytest.approx(0.2, abs=0.002)
    assert (min(steps), max(steps)) == (pytest.approx(0.2, abs=0.05), pytest.approx(0.2, abs=0.05))
    assert min(times) >= recorded.info()["start"]["mono_s"] - 0.001


def test_a_ring_is_drained_seldom(several):
    _, fake = several
    drains = [line for line in fake.trace.read_text().splitlines() if line.endswith(f"nvmlDeviceGetSamples {SQUARE}")]
    assert len(drains) <= 8  # start, 5 s, end: each a call for the size and one for the data


def test_readings_out_of_order_and_empty_slots_are_put_right(several):
    times = stamps(ring(several[0], SHUFFLED))
    assert times == sorted(set(times))
    assert len(times) > SECONDS * 4


def test_a_ring_that_returns_what_it_gave_before_is_recorded_once(several):
    times = stamps(ring(several[0], REPEATING))
    assert times == sorted(set(times))
    assert len(times) == pytest.approx(SECONDS * 5, abs=2)


def test_an_empty_ring_is_said_once_and_ticks_go_on(several):
    recorded, _ = several
    assert ring(recorded, EMPTY) == []
    found = [(quantity, why) for quantity, why in said(recorded, EMPTY) if quantity.startswith("ring")]
    assert found == [("ring gpu_util_pct", "the driver keeps no readings between ticks")]
    assert all(row["gpu_util_pct"] for row in recorded.samples(EMPTY))


def test_a_driver_without_rings_and_fields_is_said_once_each(several):
    recorded, fake = several
    found = dict(said(recorded, OLD))
    assert found["ring gpu_util_pct"] == "Not Supported"
    assert found["power_cap_s"] == "Function Not Found"
    assert len(said(recorded, OLD)) == len(found)
    drains = [line for line in fake.trace.read_text().splitlines() if line.endswith(f"nvmlDeviceGetSamples {OLD}")]
    assert len(drains) == 1


def test_gpm_is_the_mean_since_the_row_before(several):
    recorded, fake = several
    rows = recorded.samples(SQUARE)
    assert rows[0]["sm_active_pct"] == ""  # a difference needs two looks
    values = [float(row["sm_active_pct"]) for row in rows[1:]]
    assert (values[0], values[-1]) == (70, 0)
    assert sum(values) == pytest.approx(70 * 4, abs=75)  # whatever the phase of the ticks, nothing falls between them
    assert {row["tensor_active_pct"] for row in rows[1:]} == {"12.4"}
    assert len(fake.calls("nvmlGpmSampleFree")) == 4 * 2  # two samples for each GPU that has GPM


def test_a_gpu_without_gpm_says_so_once(several):
    recorded, _ = several
    assert said(recorded, SHUFFLED).count(("gpm", "Not Supported")) == 1
    assert {row["sm_active_pct"] for row in recorded.samples(SHUFFLED)} == {""}


def test_throttling_is_counted(several):
    first, second = several[0].samples(SQUARE)[:2]
    assert (first["power_cap_s"], first["sw_thermal_slowdown_s"]) == ("8.43", "5")
    assert second["power_cap_s"] == ""  # read every 10 s: the counter misses nothing between


def test_stamps_by_boot_time_become_the_same_moments(run_cli, fake_nvml, recorded):
    fake_nvml.script("count=1", "ring_clock=boot")
    run_cli("record", "--duration", "2", "--output", recorded.path, env=fake_nvml.env())
    info, times = recorded.info(), stamps(ring(recorded, 0))
    assert min(times) == pytest.approx(info["start"]["mono_s"], abs=0.3)
    assert max(times) == pytest.approx(info["end"]["mono_s"], abs=1.2)


@pytest.mark.parametrize(("arguments", "a_second"), [([], 0), (["--detail"], 50)])
def test_detail_adds_power_every_20_ms(run_cli, fake_nvml, recorded, arguments, a_second):
    run_cli("record", "--duration", "2", "--output", recorded.path, *arguments, env=fake_nvml.env())
    assert len(ring(recorded, 0, "power_w")) == pytest.approx(2 * a_second, rel=0.1)


def test_readings_of_the_driver_that_fail_are_told_once_and_so_is_their_return(run_cli, fake_nvml, recorded):
    """They are kept for 2.4 s: one failed drain loses none, and is no event."""
    failing = "gpu0.error.nvmlDeviceGetSamples"
    fake_nvml.script("count=1", f"at=1 {failing}=999", f"at=6 {failing}=0")
    run_cli("record", "--detail", "--duration", "9", "--output", recorded.path, env=fake_nvml.env())
    events = [event for event in recorded.events() if event.get("quantity") == "ring power_w"]
    assert [(event["kind"], event.get("reason")) for event in events] == [
        ("nvml_error", "Unknown Error"),
        ("nvml_recovered", None),
    ]
