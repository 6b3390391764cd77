"""Whether a GPU's utilisation has fallen just now: a provisional drop, judged from its readings alone.

The analysis judges drops afterwards, with phases and all of the run in view. Here a few numbers a GPU must do, at each
tick and at once: what is taken for a drop too often costs a few dumps.
"""

from collections import deque
from statistics import median

# The same as the analysis asks of a drop: under half of a level of 20 % or more, which is known after ten readings.
FALL_SHARE = 0.5
LEVEL_LEAST_PCT = 20.0
LEVEL_READINGS = 60  # at most, one a second at most: the last minute of work
LEVEL_READINGS_LEAST = 10
LEVEL_APART_S = 1.0
START_UP_S = 10.0  # without work before a level is known: what was read until then is start-up, which makes no level
FALL_S = 3.0  # so long without a reading above: the gaps of a training between its epochs are 1 to 2 s
FALL_READINGS = 2  # one low reading is none, however long it stands for
RETURN_S = 3.0  # a drop bears readings above its line for so long, as it does in the analysis
# A fall that lasts so long is a new state, and the level begins anew: as in the analysis.
SUSTAINED_S = 300.0
# Pauses between dumps grow: 3, 4, 5.5, 8, 11, 16, 24, 35, 52, 78, 116 and 173 s into a drop. Four in one of 10 s.
FIRST_PAUSE_S = 1.0
PAUSE_GROWTH = 1.5
MOST_DUMPS = 12


class UtilisationFall:
    """The readings of one GPU as they come."""

    def __init__(self) -> None:
        self._level: deque[float] = deque(maxlen=LEVEL_READINGS)
        self._level_read_s = float("-inf")
        self._begin_s: float | None = None  # of low readings
        self._low_readings = 0
        self._is_fall = False
        self._high_since_s: float | None = None
        self._rests_since_s: float | None = None

    def take(self, at_s: float, util_pct: float | None) -> float | None:
        """Return since when utilisation is down (s on the same clock), None while it is not, or is not known."""
        if util_pct is None:
            return None
        if self._is_low(util_pct):
            return self._low(at_s)
        self._high(at_s, util_pct)
        return None

    def _is_low(self, util_pct: float) -> bool:
        level = self.level_pct
        return level is not None and util_pct < FALL_SHARE * level

    @property
    def level_pct(self) -> float | None:
        """Return what utilisation usually is (median), None where it is not known, or too little to fall."""
        if len(self._level) < LEVEL_READINGS_LEAST:
            return None
        level = median(self._level)
        return level if level >= LEVEL_LEAST_PCT else None

    def _low(self, at_s: float) -> float | None:
        self._high_since_s = None
        self._low_readings += 1
        self._begin_s = at_s if self._begin_s is None else self._begin_s
        if at_s - self._begin_s > SUSTAINED_S:
            self._level.clear()
            self._end()
            return None
        self._is_fall |= at_s - self._begin_s >= FALL_S and self._low_readings >= FALL_READINGS
        return self._begin_s if self._is_fall else None

    def _high(self, at_s: float, util_pct: float) -> None:
        if self._is_fall:
            self._high_since_s = at_s if self._high_since_s is None else self._high_since_s
            if at_s - self._high_since_s < RETURN_S:
                return
        self._end()
        if self._starts_up(at_s, util_pct):
            self._level.clear()
            return
        if at_s - self._level_read_s >= LEVEL_APART_S:
            self._level_read_s = at_s
            self._level.append(util_pct)

    def _starts_up(self, at_s: float, util_pct: float) -> bool:
        """Tell whether there has been no work for long, with no level to fall from: a training starts up so."""
        if util_pct >= LEVEL_LEAST_PCT or self.level_pct is not None:
            self._rests_since_s = None
            return False
        self._rests_since_s = at_s if self._rests_since_s is None else self._rests_since_s
        return at_s - self._rests_since_s >= START_UP_S

    def _end(self) -> None:
        self._begin_s, self._low_readings, self._is_fall, self._high_since_s = None, 0, False, None


class DumpTimes:
    """When to dump in the drops of one GPU: at growing pauses, a bounded number of times in each."""

    def __init__(self) -> None:
        self._fall = UtilisationFall()
        self._since_s: float | None = None
        self._due_s, self._pause_s, self._count = 0.0, FIRST_PAUSE_S, 0

    def due_in(self, at_s: float, util_pct: float | None) -> float | None:
        """Return how long the drop has lasted (s) where a dump is due in it, else None; `done` says it was made."""
        since_s = self._fall.take(at_s, util_pct)
        if since_s is None:
            return None
        if since_s != self._since_s:  # another drop
            self._since_s = since_s
            self._due_s, self._pause_s, self._count = at_s, FIRST_PAUSE_S, 0
        return at_s - since_s if at_s >= self._due_s and self._count < MOST_DUMPS else None

    def done(self, at_s: float) -> None:
        """Note that the dump that was due has been asked for."""
        self._count += 1
        self._due_s = at_s + self._pause_s
        self._pause_s *= PAUSE_GROWTH
