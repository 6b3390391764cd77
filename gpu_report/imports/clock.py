"""Putting stamps, which may be local times without a zone, on the wall clock and on one that only runs on."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

import numpy as np
import numpy.typing as npt

from gpu_report.imports.times import REPEATED_HOUR_S, to_wall_s

Floats = npt.NDArray[np.float64]

_BUCKET_S: Final = 900.0  # zones change their offset on the quarter of an hour
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 (the origin of local stamps)
_MOST_STEPS_SHARE: Final = 0.01  # a clock is not set every 100 rows: more steps back are rows out of order


@dataclass(frozen=True)
class Clocked:
    """Rows of one GPU in the order of the file: UTC epoch seconds, how far behind a steady clock each is, and steps.

    `steps` are the positions at which the wall clock was set back, and by how many seconds.
    """

    wall_s: Floats
    behind_s: Floats
    steps: tuple[tuple[int, float], ...]
    unordered: bool


def put_on_wall(local_s: Floats, timezone: tzinfo | None, interval_s: float) -> Clocked:
    """Return the rows' times; `local_s` is as if the stamps were UTC, in the order of the file.

    The hour that autumn repeats is recognised by the stamps stepping back where the zone says that they may. Any other
    step back of more than one interval is a clock that was set: the steady clock goes on by one interval.
    """
    first, second = _offsets(local_s, timezone)
    repeated = np.zeros(len(local_s), dtype=bool)
    back = np.flatnonzero(np.diff(local_s) < -REPEATED_HOUR_S)
    if back.size:
        repeated[back[0] + 1 :] = True
    wall_s = local_s - np.where(repeated, second, first)
    changes = np.diff(wall_s)
    at = np.flatnonzero(changes < -max(interval_s, 1.0)) + 1
    nothing = np.zeros(len(wall_s))
    if np.count_nonzero(changes < 0) > max(1.0, _MOST_STEPS_SHARE * len(wall_s)):
        return Clocked(wall_s, nothing, (), unordered=True)
    behind_s = nothing
    behind_s[at] = interval_s - changes[at - 1]
    steps = tuple((int(position), float(changes[position - 1])) for position in at)
    return Clocked(wall_s, np.cumsum(behind_s), steps, unordered=False)


def on_wall(stamp_s: Floats, timezone: tzinfo | None) -> tuple[Floats, Floats]:
    """Return wall and steady times (s) of stamps in the order of the file, of which many may be the same."""
    stamps, back = np.unique(stamp_s, return_inverse=True)
    if not stamps.size:
        return stamp_s, stamp_s
    if np.all(np.diff(stamp_s) >= 0):  # nothing was set back: each different stamp once is enough
        clocked = put_on_wall(stamps, timezone, typical_interval_s(stamps) or 1.0)
        return clocked.wall_s[back], (clocked.wall_s + clocked.behind_s)[back]
    clocked = put_on_wall(stamp_s, timezone, typical_interval_s(stamp_s) or 1.0)
    return clocked.wall_s, clocked.wall_s + clocked.behind_s


def typical_interval_s(local_s: Floats) -> float | None:
    """Return the median spacing of one GPU's rows in seconds, None where there are fewer than two."""
    spacing = np.diff(local_s)
    forward = spacing[spacing > 0]
    return float(np.median(forward)) if forward.size else None


def _offsets(local_s: Floats, timezone: tzinfo | None) -> tuple[Floats, Floats]:
    """Return each stamp's offset from UTC in seconds, in a repeated hour that of its first and of its second pass."""
    buckets, position = np.unique(np.floor(local_s / _BUCKET_S), return_inverse=True)
    both = np.array([[_offset(bucket, timezone, fold) for bucket in buckets] for fold in (0, 1)])
    return both[0][position], both[1][position]


def _offset(bucket: float, timezone: tzinfo | None, fold: int) -> float:
    try:
        local = (_EPOCH + timedelta(seconds=bucket * _BUCKET_S)).replace(fold=fold)
        return local.replace(tzinfo=UTC).timestamp() - to_wall_s(local, timezone)
    except (ValueError, OverflowError):  # a stamp at the edge of the calendar: its offset is of no importance
        return 0.0
