"""Reading the three clocks of a row, and telling a set clock and a sleeping machine from their differences."""

import time
from dataclasses import dataclass

JUMP_S = 0.5  # a clock that moved by less between two ticks is being slewed by NTP, not set


@dataclass(frozen=True)
class Clocks:
    """One moment: UTC wall seconds since 1970, monotonic seconds, and boot seconds (which run on in suspend)."""

    wall_s: float
    mono_s: float
    boot_s: float

    def as_json(self) -> dict[str, float]:
        """Return it as run.json holds it."""
        return {"wall_s": round(self.wall_s, 6), "mono_s": round(self.mono_s, 6), "boot_s": round(self.boot_s, 6)}


def now() -> Clocks:
    """Read all clocks, one right after the other."""
    return Clocks(time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME))


def at_wall(wall_s: float, reference: Clocks) -> Clocks:
    """Return the moment `wall_s` on all clocks, as `reference` relates them."""
    offset = wall_s - reference.wall_s
    return Clocks(wall_s, reference.mono_s + offset, reference.boot_s + offset)


def suspended_s(before: Clocks, after: Clocks) -> float:
    """Return how long the machine slept between two moments: 0 when it did not."""
    slept = (after.boot_s - before.boot_s) - (after.mono_s - before.mono_s)
    return slept if slept > JUMP_S else 0.0


def step_s(before: Clocks, after: Clocks) -> float:
    """Return by how much the wall clock was set between two moments, suspend apart: 0 when it was not."""
    step = (after.wall_s - before.wall_s) - (after.boot_s - before.boot_s)
    return step if abs(step) > JUMP_S else 0.0
