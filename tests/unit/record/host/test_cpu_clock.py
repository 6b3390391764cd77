"""The clock of the CPU, and how often heat slowed it."""

import pytest

from gpu_report import schema
from gpu_report.record.host.cpu_clock import CORES_READ, LOOK_EVERY_S, CpuClock


def write(root, core, name, value):
    path = root / f"cpu{core}" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{value}\n")


def clock(root, *khz):
    for core, value in enumerate(khz):
        write(root, core, "cpufreq/scaling_cur_freq", value)


def test_the_clock_is_the_mean_of_the_allowed_cores_every_10_s(tmp_path):
    clock(tmp_path, 4_000_000, 3_000_000, 800_000)
    sampler = CpuClock(tmp_path, {0, 1})
    first = sampler.sample(100.0)
    assert first["cpu_clock_mhz"] == 3500
    assert set(first) <= {column.name for column in schema.HOST_QUANTITIES}
    clock(tmp_path, 1_000_000, 1_400_000, 800_000)
    assert sampler.sample(100.0 + LOOK_EVERY_S / 2) == {}
    assert sampler.sample(100.0 + LOOK_EVERY_S)["cpu_clock_mhz"] == 1200


def test_heat_is_the_rate_of_the_counters_of_cores_and_packages(tmp_path):
    for count in (7, 27):
        write(tmp_path, 0, "thermal_throttle/core_throttle_count", count)
        write(tmp_path, 0, "thermal_throttle/package_throttle_count", 3)
        if count == 7:
            sampler = CpuClock(tmp_path, {0})
            assert sampler.sample(0.0) == {"cpu_clock_mhz": None, "cpu_heat_throttles_per_s": None}
    assert sampler.sample(10.0)["cpu_heat_throttles_per_s"] == pytest.approx(2.0)


def test_a_machine_without_these_files_has_no_clock_and_no_zero(tmp_path):
    sampler = CpuClock(tmp_path, {0, 1})
    assert set(sampler.sample(0.0).values()) == set(sampler.sample(20.0).values()) == {None}
    clock(tmp_path, 2_000_000)
    sampler = CpuClock(tmp_path, {0})
    write(tmp_path, 0, "cpufreq/scaling_cur_freq", "<unknown>")
    assert sampler.sample(0.0)["cpu_clock_mhz"] is None


def test_of_many_cores_some_are_read_that_are_spread(tmp_path):
    clock(tmp_path, *[1_000_000] * CORES_READ, *[3_000_000] * CORES_READ)
    assert CpuClock(tmp_path, range(2 * CORES_READ)).sample(0.0)["cpu_clock_mhz"] == 2000


def test_a_folder_that_nobody_may_look_into_has_no_clock(tmp_path):
    sampler = CpuClock(tmp_path / ("x" * 300), {0, 1})  # an error of the file system, as "permission denied" is
    assert not any(sampler.sample(100.0).values())


def test_where_a_training_works_its_cores_count_alone(tmp_path):
    clock(tmp_path, 4_000_000, 3_000_000, 800_000, 800_000)
    sampler = CpuClock(tmp_path, range(4))
    assert sampler.sample(0.0, None)["cpu_clock_mhz"] == 2150
    assert sampler.sample(10.0, {0, 1})["cpu_clock_mhz"] == 3500
    assert sampler.sample(20.0, {0, 7})["cpu_clock_mhz"] == 4000  # a core that tells nothing
    assert sampler.sample(30.0, set())["cpu_clock_mhz"] is None  # it waits: an idle core's clock is not its own
