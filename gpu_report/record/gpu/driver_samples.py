"""The readings that the driver keeps between ticks: sub-second truth at one tick a second.

On an H200 the driver keeps utilisation every 200 ms for 14 s and power every 20 ms for 2.4 s. A drain costs 2 ms and
0.6 ms of CPU whatever it returns, so each ring is drained as seldom as it can be without losing anything.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pynvml

from gpu_report.record.clocks import JUMP_S, Clocks

UTILISATION_EVERY_S = 5.0  # of 14 s (10 s by nvml.h): two drains may fail before a reading is lost
POWER_EVERY_S = 1.0  # of 2.4 s
TICK_JITTER_S = 0.1  # a tick may come early by it: with the next one power would have 0.4 s left before it is lost
TOLD_AT = 3  # drains that fail running: readings are lost from here on
SAME_CLOCK_S = 60.0  # the newest reading is 0.2 s old: a clock that is further off than this is not its clock
# "Nothing since the last time" in the tongues of various drivers; with none ever, the ring is empty.
_NOTHING_NEW = frozenset({pynvml.NVML_ERROR_NOT_FOUND, pynvml.NVML_ERROR_INVALID_ARGUMENT, pynvml.NVML_SUCCESS})
EMPTY = "the driver keeps no readings between ticks"


@dataclass(frozen=True)
class DriverRing:
    """One ring: the column it fills, NVML's sampling type, its scale, its largest credible value, and its pace."""

    column: str
    sampling_type: int
    scale: float
    limit: float
    every_s: float


UTILISATION = DriverRing("gpu_util_pct", pynvml.NVML_GPU_UTILIZATION_SAMPLES, 1.0, 100.0, UTILISATION_EVERY_S)
POWER = DriverRing("power_w", pynvml.NVML_TOTAL_POWER_SAMPLES, 1e-3, 1e5, POWER_EVERY_S)


@dataclass(frozen=True)
class RingReading:
    """One reading that the driver took, at the moment it took it."""

    at: Clocks
    column: str
    value: float


@dataclass
class Ring:
    """One ring of one GPU: what has been drained and when, on which clock its stamps are, and whether it has any."""

    kind: DriverRing
    start: Clocks
    last_us: int = 0
    due_s: float = 0.0
    to_clocks: Callable[[int, Clocks], Clocks] | None = None
    clock: str | None = None
    before: Clocks | None = None
    seen: bool = False

    def drain(self, handle: Any, now: Clocks) -> list[RingReading]:
        """Return the readings taken since the last drain and since the start; NVMLError where there is no ring."""
        self.due_s = now.mono_s + self.kind.every_s - TICK_JITTER_S
        before, self.before = self.before or self.start, now
        if self._has_jumped(before, now):
            self._skip(handle, now)
            return []
        found = self._new(handle, now)
        if not found:
            return []
        if self.to_clocks is None:
            newest_us = next((stamp for stamp, _ in reversed(found) if clock_of(stamp, now)), found[-1][0])
            self.to_clocks, self.clock = stamp_clock(newest_us, now), clock_of(newest_us, now)
        self.last_us, self.seen = found[-1][0], True
        if self._has_jumped(before, now):  # at the first drain only now is known by which clock
            self._skip(handle, now)
            return []
        readings = [RingReading(self.to_clocks(stamp, now), self.kind.column, value) for stamp, value in found]
        return [reading for reading in readings if reading.at.mono_s >= self.start.mono_s]

    def _has_jumped(self, before: Clocks, now: Clocks) -> bool:
        """Tell whether the stamps' clock was set meanwhile, or the machine slept."""
        return self.clock is not None and abs(_ahead(self.clock, now) - _ahead(self.clock, before)) > JUMP_S

    def _skip(self, handle: Any, now: Clocks) -> None:
        """Pass over what the ring holds when its clock has jumped: which stamps are of before that nobody can tell."""
        known = (self.last_us, *(stamp for stamp, _ in self._new(handle, now)))
        self.last_us = int(max([self._us(now), *(stamp for stamp in known if stamp < self._us(now, SAME_CLOCK_S))]))

    def _us(self, now: Clocks, later_s: float = 0.0) -> float:
        """Return the stamp of a moment; infinity while it is not known by which clock they are."""
        return math.inf if self.clock is None else round((getattr(now, self.clock) + later_s) * 1e6)

    def _new(self, handle: Any, now: Clocks) -> list[tuple[int, float]]:
        """Return (stamp in us, value), sorted, one a stamp: drivers return zero stamps, old ones and any order.

        Those from before a clock was set back lie in the future, and are left out.
        """
        until_us = self._us(now, SAME_CLOCK_S)
        try:
            value_type, samples = pynvml.nvmlDeviceGetSamples(handle, self.kind.sampling_type, self.last_us)
        except pynvml.NVMLError as error:
            if error.value in _NOTHING_NEW:
                return []
            raise
        values = {sample.timeStamp: decode(sample.sampleValue, value_type) * self.kind.scale for sample in samples}
        return sorted((t, v) for t, v in values.items() if self.last_us < t < until_us and 0 <= v <= self.kind.limit)


@dataclass
class Rings:
    """The rings of one GPU that are drained, and what has been said about them."""

    rings: Sequence[Ring]
    said: set[str] = field(default_factory=set)
    failed: dict[str, int] = field(default_factory=dict)  # how often running

    def drain(
        self, handle: Any, now: Clocks, *, everything: bool
    ) -> tuple[list[RingReading], list[tuple[str, str | None]]]:
        """Return what the rings that are due hold, and (column, reason) for each that holds nothing, or does again."""
        readings: list[RingReading] = []
        failures: list[tuple[str, str | None]] = []
        for ring in self.rings:
            if ring.kind.column in self.said or (now.mono_s < ring.due_s and not everything):
                continue
            column = ring.kind.column
            try:
                reason = self._drain_one(ring, handle, now, readings)
            except pynvml.NVMLError as error:  # it may pass, and is asked again; told when it has not
                self.failed[column] = self.failed.get(column, 0) + 1
                if self.failed[column] == TOLD_AT:
                    failures.append((column, str(error)))
                continue
            told = self.failed.pop(column, 0) >= TOLD_AT
            if reason is not None:
                self.said.add(column)
            if reason is not None or told:
                failures.append((column, reason))
        return readings, failures

    def _drain_one(self, ring: Ring, handle: Any, now: Clocks, readings: list[RingReading]) -> str | None:
        """Drain one ring into `readings`; return why it will not be asked again, None while it will be.

        NVMLError for what may pass.
        """
        first = ring.due_s == 0.0
        try:
            readings += ring.drain(handle, now)
        except pynvml.NVMLError as error:
            if error.value in {pynvml.NVML_ERROR_NOT_SUPPORTED, pynvml.NVML_ERROR_FUNCTION_NOT_FOUND}:
                return str(error)
            raise
        # an idle GPU may answer "not found" once; one that still has nothing after a full period has no ring
        return EMPTY if not ring.seen and not first else None


def stamp_clock(newest_us: int, now: Clocks) -> Callable[[int, Clocks], Clocks]:
    """Return how a ring's stamps become moments: by the wall clock, by boot time (DGX Spark), else by its newest."""
    clock = clock_of(newest_us, now)
    if clock is not None:
        return lambda stamp, at: _earlier(at, getattr(at, clock) - stamp / 1e6)
    offset = now.mono_s - newest_us / 1e6
    return lambda stamp, at: _earlier(at, at.mono_s - (stamp / 1e6 + offset))


def clock_of(newest_us: int, now: Clocks) -> str | None:
    """Return which of our clocks a ring's stamps are of, None for another one."""
    near = (name for name in ("wall_s", "boot_s") if abs(getattr(now, name) - newest_us / 1e6) < SAME_CLOCK_S)
    return next(near, None)


def _ahead(clock: str, now: Clocks) -> float:
    """Return by how much a clock is ahead of the monotonic one: it changes where it is set, or the machine sleeps."""
    return float(getattr(now, clock)) - now.mono_s


def decode(value: Any, value_type: int) -> float:
    """Return a sample's value by its NVML value type (0 double, 1 unsigned int, 2, 3 unsigned, 4, 5 signed)."""
    names = {0: "dVal", 1: "uiVal", 2: "ulVal", 3: "ullVal", 4: "sllVal", 5: "siVal"}
    return float(getattr(value, names.get(value_type, "uiVal")))


def _earlier(at: Clocks, age_s: float) -> Clocks:
    return Clocks(at.wall_s - age_s, at.mono_s - age_s, at.boot_s - age_s)
