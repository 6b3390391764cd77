"""One clock for a run: seconds from its start, monotonic, whatever the wall clock did meanwhile."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# A wall clock alone (no mono_s) that falls back by more than this was set; by less, rows are merely unsorted.
WALL_STEP_S = 60.0
# mono_s falling by more than this while the wall goes on: the machine was restarted between two segments.
REBOOT_MONO_FALL_S = 1.0
# Clocks that are this far apart (s, and of what they measure) in so many stretches do not both count seconds. A clock
# that is set, or a machine that sleeps, spoils a twentieth of them each time.
COARSEST_S = 1.0
MOST_APART = 0.5
MOST_SPOILT = 0.75
MOST_STRETCHES = 1000
OLDEST_S, NEWEST_S = 946_684_800.0, 7_258_118_400.0  # the years 2000 and 2200
# A stamp this far from the middle of the recording is no stamp (NULs after a crash, a garbled row).
ABSURD_DISTANCE_S = 366 * 86400.0


@dataclass(frozen=True)
class Boot:
    """One uninterrupted stretch of the monotonic clock: where it began on all three clocks."""

    wall_s: float
    mono_s: float
    t_s: float


@dataclass(frozen=True)
class RunClock:
    """Turns a row's (wall_s, mono_s) into seconds from the run's start."""

    boots: tuple[Boot, ...]

    @property
    def start_wall_s(self) -> float:
        """Return the wall time of t_s = 0."""
        return self.boots[0].wall_s - self.boots[0].t_s

    def t(self, wall_s: float, mono_s: float | None) -> float:
        """Return seconds from the run's start; by the wall clock where there is no monotonic stamp (as `times`)."""
        if mono_s is not None and all(map(_is_known, self.boots)):
            boot = min(self.boots, key=lambda b: abs(wall_s - mono_s - (b.wall_s - b.mono_s)))
            t_s = boot.t_s + mono_s - boot.mono_s
            if math.isfinite(t_s):
                return t_s
        return wall_s - self.start_wall_s

    @property
    def is_of_one_boot(self) -> bool:
        """Return whether a monotonic stamp alone tells the time: the machine was not started anew meanwhile."""
        return len(self.boots) == 1 and _is_known(self.boots[0])

    def of_one_boot(self, mono: npt.NDArray[np.floating[Any]]) -> Floats:
        """Return `t` of many rows that all have a monotonic stamp, where it alone tells the time.

        It takes the place of their stamps: a month of the driver's readings has 13 million.
        """
        times: Floats = mono.astype(np.float64, copy=not mono.flags.writeable)
        times -= self.boots[0].mono_s
        times += self.boots[0].t_s
        return times

    def times(self, wall: Floats, mono: Floats) -> Floats:
        """Return `t` of many rows: by the monotonic clock of the boot whose wall-mono offset is nearest."""
        by_wall = wall - self.start_wall_s
        starts = np.array([(b.wall_s - b.mono_s, b.mono_s, b.t_s) for b in self.boots])
        if not np.isfinite(starts).all():
            return by_wall
        by_mono = np.full(len(wall), np.nan)
        nearest = np.full(len(wall), np.inf)
        for offset, mono_s, t_s in starts.tolist():  # at most MOST_BOOTS
            away = np.abs(wall - mono - offset)
            nearer = away < nearest
            nearest[nearer] = away[nearer]
            by_mono[nearer] = t_s + mono[nearer] - mono_s
        return np.where(np.isfinite(by_mono), by_mono, by_wall)


def _is_known(boot: Boot) -> bool:
    return math.isfinite(boot.wall_s - boot.mono_s) and math.isfinite(boot.t_s)


def run_times(wall: Floats, mono: Floats) -> tuple[Floats, tuple[Boot, ...], bool]:
    """Return t (seconds from the first row, NaN where a row has no stamp), the boots, and whether the wall stepped.

    Rows are in file order. Where `mono` is missing everywhere the wall clock stands in for it.
    """
    if not np.isfinite(mono).any():
        steady, stepped = _without_steps(wall)
        first = int(np.flatnonzero(np.isfinite(steady))[0])
        return steady - np.nanmin(steady), (Boot(float(wall[first]), float("nan"), 0.0),), stepped
    return (*_across_boots(wall, mono), False)


def _without_steps(wall: Floats) -> tuple[Floats, bool]:
    """Undo backward steps of the wall clock: time goes on from where it was."""
    known = np.flatnonzero(np.isfinite(wall))
    moves = np.diff(wall[known], prepend=wall[known][0])
    back = moves < -WALL_STEP_S
    steady = wall.copy()
    steady[known] = wall[known] - np.cumsum(np.where(back, moves, 0.0))
    return steady, bool(back.any())


def _across_boots(wall: Floats, mono: Floats) -> tuple[Floats, tuple[Boot, ...]]:
    """Join segments recorded in different boots: within one by `mono`, between two by the wall clock."""
    known = np.flatnonzero(np.isfinite(mono))
    starts = [0, *_restarts(wall[known], mono[known])]
    t = np.full(len(wall), np.nan)
    boots: list[Boot] = []
    for start, stop in zip(starts, [*starts[1:], len(known)], strict=True):
        rows = known[start:stop]
        first = rows[np.argmin(mono[rows])]
        begin = 0.0 if not boots else boots[0].t_s + float(wall[first]) - boots[0].wall_s
        boots.append(Boot(float(wall[first]), float(mono[first]), begin))
        t[rows] = begin + mono[rows] - mono[first]
    return t, tuple(boots)


def restarts(wall: Floats, mono: Floats) -> int:
    """Return how often the machine was started anew meanwhile, as the monotonic clock tells it."""
    known = np.isfinite(mono)
    return len(_restarts(wall[known], mono[known]))


def are_of_our_days(wall: Floats) -> bool:
    """Tell whether times lie between the years 2000 and 2200: a machine without a clock begins in 1970."""
    return bool(OLDEST_S < np.nanmedian(wall) < NEWEST_S) if np.isfinite(wall).any() else False


def run_together(wall: Floats, mono: Floats) -> bool:
    """Tell whether both clocks count the same seconds; one that is set now and then does, and one in whole seconds.

    They are compared over many stretches of a twentieth of the rows.
    """
    known = np.isfinite(wall) & np.isfinite(mono)
    wall, mono = wall[known], mono[known]
    rows = max(len(wall) // 20, 3)
    if len(wall) <= rows:
        return True
    begins = np.linspace(0, len(wall) - rows - 1, MOST_STRETCHES).astype(int)
    by_wall, by_mono = (clock[begins + rows] - clock[begins] for clock in (wall, mono))
    apart, least = np.abs(by_wall - by_mono), np.minimum(np.abs(by_wall), np.abs(by_mono))
    return bool((apart > COARSEST_S + MOST_APART * least).mean() < MOST_SPOILT)


def _restarts(wall: Floats, mono: Floats) -> list[int]:
    """Return the rows before which the monotonic clock fell while the wall clock went on."""
    rows: list[int] = (np.flatnonzero((np.diff(mono) < -REBOOT_MONO_FALL_S) & (np.diff(wall) > 0)) + 1).tolist()
    return rows


def plausible(t: Floats) -> npt.NDArray[np.bool_]:
    """Return which rows have a stamp within a year of the middle one."""
    known = np.isfinite(t)
    if not known.any():
        return known
    finite = t if known.all() else t[known]
    if float(finite.max()) - float(finite.min()) < ABSURD_DISTANCE_S:  # a median of millions takes long
        return known
    half = (len(finite) - 1) // 2
    middle = np.partition(finite, half)[half]  # one of them: a mean of the two in the middle may be near neither
    close: npt.NDArray[np.bool_] = known & (np.abs(t - middle) < ABSURD_DISTANCE_S)
    return close
