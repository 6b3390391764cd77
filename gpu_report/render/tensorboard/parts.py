"""A recording in equal parts of time, with the least, the mean and the most of each quantity in each of them.

TensorBoard keeps 1,000 points of a tag and draws them at random (reservoir sampling): of a day at 1 Hz it would lose a
drop of 10 s entirely in 9 of 10 cases. Parts are no more than it keeps, and the least of a part has the drop in it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

MOST_POINTS: Final = 1000  # of a tag: DEFAULT_TENSOR_SIZE_GUIDANCE of TensorBoard
STATISTICS: Final = ("min", "mean", "max")

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TagLine:
    """A tag's points: its value in each part, NaN where nothing was read in it."""

    tag: str
    values: Floats


def part_seconds(duration_s: float, most_parts: int = MOST_POINTS) -> int:
    """Return how long a part is, in whole seconds: each has a step of its own, which is its second of the run."""
    return max(math.ceil(duration_s / max(min(most_parts, MOST_POINTS), 1)), 1)


def part_count(duration_s: float, part_s: int) -> int:
    """Return how many parts of so many seconds a recording has."""
    return max(math.ceil(duration_s / part_s), 1)


def lines_of(group: str, rows: pd.DataFrame, columns: Sequence[str], part_s: int, count: int) -> list[TagLine]:
    """Return three lines for each column that was read at all, named `group/column/min` and so on.

    `rows` are of one GPU or of the host, with `t_s`, the seconds since the run's start.
    """
    names = [name for name in columns if name in rows and rows[name].notna().any()]
    if not names:
        return []
    part = np.clip(rows["t_s"].to_numpy(dtype=float) // part_s, 0, count - 1).astype(np.intp)
    order = np.argsort(part, kind="stable")
    found = []
    for name in names:
        values = rows[name].to_numpy(dtype=float)[order]
        statistics = zip(STATISTICS, _of_parts(part[order], values, count), strict=True)
        found += [TagLine(f"{group}/{name}/{statistic}", each) for statistic, each in statistics]
    return found


def _of_parts(part: npt.NDArray[np.intp], values: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """Return the least, the mean and the most in each part of the values that were read, which are in order of part."""
    read = np.isfinite(values)
    part, values = part[read], values[read]
    having, firsts, sizes = np.unique(part, return_index=True, return_counts=True)
    least, mean, most = (np.full(count, np.nan) for _ in STATISTICS)
    least[having] = np.minimum.reduceat(values, firsts)
    mean[having] = np.add.reduceat(values, firsts) / sizes
    most[having] = np.maximum.reduceat(values, firsts)
    return least, mean, most
