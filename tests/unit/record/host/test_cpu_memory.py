import os
import time

import pytest

from gpu_report import schema
from gpu_report.record.host import cpu_memory
from gpu_report.record.host.cpu_memory import HostSampler


def test_a_sample_has_quantities_of_the_schema_and_shares_need_two_looks():
    sampler = HostSampler()
    first = sampler.sample()
    assert set(first) <= {column.name for column in schema.HOST_QUANTITIES}
    assert first["cpu_pct"] is None
    assert first["memory_used_mib"] > 0


def test_a_busy_core_is_seen():
    sampler = HostSampler()
    sampler.sample()
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        pass
    sample = sampler.sample()
    assert sample["cpu_busiest_core_pct"] > 50
    assert 0 < sample["cpu_pct"] <= 100


def test_shares_are_differences(monkeypatch):
    looks = iter(
        [
            {"cpu": (0, 0, 0, 0, 0, 0, 0, 0), "cpu0": (0, 0, 0, 0, 0, 0, 0, 0), "cpu1": (0,) * 8},
            {
                "cpu": (20, 0, 10, 140, 20, 0, 0, 10),
                "cpu0": (30, 0, 10, 40, 20, 0, 0, 0),
                "cpu1": (0, 0, 0, 100, 0, 0, 0, 0),
            },
        ]
    )
    monkeypatch.setattr(cpu_memory, "_cpu_ticks", lambda: next(looks))
    sampler = HostSampler()
    sampler.sample()
    sample = sampler.sample()
    assert (sample["cpu_pct"], sample["cpu_busiest_core_pct"], sample["iowait_pct"]) == (20.0, 40.0, 10.0)
    assert sample["cpu_steal_pct"] == 5.0


def test_what_cannot_be_read_is_missing_and_not_zero(monkeypatch):
    monkeypatch.setattr(cpu_memory, "read_text", lambda _path: "")
    sampler = HostSampler()
    sampler.sample()
    assert set(sampler.sample().values()) == {None}


def test_the_host_is_described():
    described = cpu_memory.describe()
    assert described["cores"] == len(os.sched_getaffinity(0))
    assert described["memory_mib"] == pytest.approx(
        os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20, rel=0.01
    )
    assert described["os"]
