"""One GPU of a recording that goes on: its newest reading, its timeline, what it used, and since when it is idle."""

from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile

from gpu_report.live.reading.envelope import Envelope
from gpu_report.record.py_spy.utilisation_fall import UtilisationFall

UTILISATION, POWER = "gpu_util_pct", "power_w"
# What the page draws of each GPU; the other quantities are in its newest reading.
DRAWN = (UTILISATION, "memory_used_mib", POWER, "temperature_c")
RECENT_S = 600.0  # of readings that are kept one by one ...
RECENT_APART_S = 0.5  # ... where they lie so far apart; of closer ones the least utilisation is kept
# Under this a GPU does nothing: a desktop or another process's context reads 0 to 3.
IDLE_PCT = 5.0
GAP_INTERVALS, GAP_AT_LEAST_S = 3.0, 10.0  # between two readings: over a longer gap nobody knows what was

Reading = tuple[float, dict[str, float]]


@dataclass
class GpuReadings:
    """One GPU so far. Times are wall seconds, `start_s` that of the recording's first row.

    `newest` has the readings of its last row, without those that failed. `fell_since_s` is since when utilisation is
    under half of its level, None where it is not. `energy_j` integrates power, over `recorded_s` without gaps.
    `unread_since_s` is since when a row of it had no reading at all: its driver has lost it.
    """

    index: int
    start_s: float
    at_s: float = 0.0
    newest: dict[str, float] = field(default_factory=dict)
    recent: deque[Reading] = field(default_factory=deque)
    drawn: dict[str, Envelope] = field(default_factory=dict)
    energy_j: float = 0.0
    recorded_s: float = 0.0
    unread_since_s: float | None = None
    fell_since_s: float | None = None
    _worked_s: float | None = None
    _fall: UtilisationFall = field(default_factory=UtilisationFall)

    @property
    def idle_since_s(self) -> float | None:
        """Return since when it has done nothing, None where it works, or nobody knows."""
        util_pct = self.newest.get(UTILISATION)
        if util_pct is None or util_pct >= IDLE_PCT:
            return None
        return self.start_s if self._worked_s is None else self._worked_s

    def after(self, at_s: float) -> list[Reading]:
        """Return the drawn readings of the rows after a moment, of those that are kept one by one."""
        newer = takewhile(lambda reading: reading[0] > at_s, reversed(self.recent))
        return [(round(when_s, 2), values) for when_s, values in newer][::-1]

    def restart(self, at_s: float) -> None:
        """Forget since when anything lasts: the wall clock was set, to `at_s`, or the machine slept."""
        self.recent.clear()
        self._worked_s, self._fall, self.fell_since_s = at_s, UtilisationFall(), None

    def _keep(self, at_s: float, values: dict[str, float]) -> None:
        if self.recent and at_s - self.recent[-1][0] < RECENT_APART_S and values:
            known = self.recent[-1][1].get(UTILISATION)
            if known is not None and values.get(UTILISATION, known) < known:
                self.recent[-1][1][UTILISATION] = values[UTILISATION]
            return
        self.recent.append((at_s, values))
        while at_s - self.recent[0][0] > RECENT_S:
            self.recent.popleft()

    @property
    def level_pct(self) -> float | None:
        """Return what utilisation usually is, None where it is not known."""
        return self._fall.level_pct

    @property
    def low_since_s(self) -> float | None:
        """Return since when utilisation is under half of its level, None where it is not, or is not known now."""
        return self.fell_since_s if UTILISATION in self.newest else None

    def draw(self, at_s: float, values: dict[str, float], since_before_s: float | None) -> None:
        """Take in the drawn readings of a row, in any order; `since_before_s` is the time since the row before it."""
        for name, value in values.items():
            envelope = self.drawn.get(name)
            if envelope is None:
                envelope = self.drawn[name] = Envelope(self.start_s)
            envelope.add(at_s, value)
        if values.get(UTILISATION, 0.0) >= IDLE_PCT:
            self._worked_s = max(self._worked_s or at_s, at_s)
        if since_before_s is not None:
            self.energy_j += values.get(POWER, 0.0) * since_before_s
            self.recorded_s += since_before_s

    def take(self, at_s: float, values: dict[str, float]) -> None:
        """Take in the newest row; a quantity that could not be read is not among `values`."""
        self.at_s, self.newest = at_s, values
        self._keep(at_s, {name: values[name] for name in DRAWN if name in values})
        self.unread_since_s = None if self.recent[-1][1] else self.unread_since_s or at_s
        util_pct = values.get(UTILISATION)
        if util_pct is not None:
            self.fell_since_s = self._fall.take(at_s, util_pct)
