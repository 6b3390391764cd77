"""Readings that the driver kept, when the clock of their stamps is set or the machine sleeps."""

from types import SimpleNamespace

import pynvml
import pytest

from gpu_report.record.clocks import Clocks
from gpu_report.record.gpu.driver_samples import POWER, UTILISATION, Ring, Rings

EVERY_S, KEPT_S = 0.2, 14.0


class Driver:
    """Keeps what it read, each reading under the time that its clock showed then; a reading is its own second."""

    def __init__(self, clock):
        self.clock = clock
        self.jumps = [(0.0, 1.8e9)]  # monotonic moments, and by how much the wall clock is ahead from then on
        self.sleeps = [(0.0, 50.0)]  # likewise for boot time
        self.mono_s = 100.0

    def now(self, mono_s):
        boot, wall = (max(each for each in of if each[0] <= mono_s)[1] for of in (self.sleeps, self.jumps))
        return Clocks(mono_s + wall, mono_s, mono_s + boot)

    def samples(self, _handle, _kind, last_us):
        moments = [self.mono_s - EVERY_S * n for n in range(int(KEPT_S / EVERY_S)) if self.mono_s - EVERY_S * n >= 50]
        stamps = [(round(getattr(self.now(at), self.clock) * 1e6), int(at)) for at in moments]
        kept = [(stamp, second % 97) for stamp, second in stamps if stamp > last_us]
        return 1, [SimpleNamespace(timeStamp=us, sampleValue=SimpleNamespace(uiVal=value)) for us, value in kept]


@pytest.fixture(params=["wall_s", "boot_s"])
def driver(request, monkeypatch):
    driver = Driver(request.param)
    monkeypatch.setattr(pynvml, "nvmlDeviceGetSamples", driver.samples)
    return driver


def drained(driver, ring, until_s):
    """Drain a ring every 5 s; return all readings as (their moment, what was read)."""
    found = []
    while driver.mono_s < until_s:
        driver.mono_s += 5.0
        found += [(each.at.mono_s, each.value) for each in ring.drain(0, driver.now(driver.mono_s))]
    return found


@pytest.mark.parametrize("by_s", [-3600.0, 3600.0, -30.0, 30.0, -2.0, 1.0])
@pytest.mark.parametrize("sleeps", [False, True])
@pytest.mark.parametrize("at_s", [103.1, 123.1])
def test_no_reading_moves_when_a_clock_jumps(driver, by_s, sleeps, at_s):
    ring = Ring(UTILISATION, driver.now(100.0))
    driver.jumps.append((at_s, 1.8e9 + by_s))
    if sleeps:
        driver.sleeps.append((at_s, 50.0 + abs(by_s)))
    found = drained(driver, ring, 300.0)
    assert all(value in {int(moment - 0.01) % 97, int(moment + 0.01) % 97} for moment, value in found)
    assert len({moment for moment, _ in found}) == len(found)
    assert max(moment for moment, _ in found) > 299.0
    lost_s = 10.0 + (abs(by_s) if by_s == -30.0 else 2.0)
    assert len(found) * EVERY_S > 200.0 - lost_s


def test_a_tick_that_comes_a_moment_early_still_drains_what_is_kept_for_2_4_s(driver):
    ring = Ring(POWER, driver.now(100.0))
    rings, gaps_s, last_s = Rings([ring]), [], 100.0
    for tick in range(1, 40):
        driver.mono_s = 100.0 + tick + (0.004 if tick % 2 else 0.0)
        if rings.drain(0, driver.now(driver.mono_s), everything=False)[0]:
            gaps_s.append(driver.mono_s - last_s)
            last_s = driver.mono_s
    assert max(gaps_s) < 1.1
