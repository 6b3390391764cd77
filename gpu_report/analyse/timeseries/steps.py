"""The steps between readings, worked out where they are asked for: to keep a week's of eight GPUs takes 0.2 GB."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_report.analyse.timeseries.intervals import Floats, Indices, parts

MOST_OTHERS = 0.01  # of all readings: with more of them the seconds themselves are kept


@dataclass(frozen=True, eq=False)
class ReadingSeconds:
    """Seconds that each reading stands for: to the next one, but for a few `others`, of which the last is one."""

    t_s: Floats
    others: Indices
    others_s: Floats

    def __getitem__(self, rows: Any) -> Any:
        """Return the seconds of some readings, by a slice, a number, a mask or an array of numbers: `[:]` are all.

        ValueError for a slice that goes backwards.
        """
        if isinstance(rows, slice):
            if (rows.step or 1) < 0:
                raise ValueError(rows)
            return self._of_slice(*rows.indices(len(self)))
        if isinstance(rows, np.ndarray) and rows.dtype == bool:
            return np.concatenate([self[part][rows[part]] for part in parts(len(self))])
        if isinstance(rows, int | np.integer):  # one by one they are asked for often
            return self._of_number(range(len(self))[rows])
        return self._of_numbers(rows)

    def __len__(self) -> int:
        """Return how many readings there are."""
        return len(self.t_s)

    def sum(self) -> float:
        """Return the seconds of all readings."""
        return float(self[:].sum())

    def _of_slice(self, start: int, stop: int, step: int) -> Floats:
        seconds = np.empty(max(stop - start, 0))
        known = self.t_s[start : min(stop, len(self) - 1) + 1]
        np.subtract(known[1:], known[:-1], out=seconds[: max(len(known) - 1, 0)])
        first, last = np.searchsorted(self.others, [start, max(stop, start)])
        seconds[self.others[first:last] - start] = self.others_s[first:last]
        return seconds[::step]

    def _of_number(self, row: int) -> float:
        at = bisect_left(self.others, row)
        return float(self.others_s[at] if self.others[at] == row else self.t_s[row + 1] - self.t_s[row])

    def _of_numbers(self, rows: Indices) -> Floats:
        rows = np.where(rows < 0, rows + len(self), rows)
        seconds = self.t_s[np.minimum(rows + 1, len(self) - 1)] - self.t_s[rows]
        at = np.searchsorted(self.others, rows)  # the last reading is one of them
        return np.where(self.others[at] == rows, self.others_s[at], seconds)


Seconds = Floats | ReadingSeconds


def as_steps(t_s: Floats, seconds: Floats) -> Seconds:
    """Return what readings stand for as the steps to the next one, as it is where too many stand for something else."""
    if not len(t_s):
        return seconds
    found = [
        part.start + np.flatnonzero(np.diff(t_s[_with_next(part)]) != seconds[part][: len(t_s) - 1 - part.start])
        for part in parts(len(t_s))
    ]
    others = np.append(np.concatenate(found), len(t_s) - 1)
    return ReadingSeconds(t_s, others, seconds[others]) if len(others) <= max(MOST_OTHERS * len(t_s), 1) else seconds


def _with_next(part: slice) -> slice:
    return slice(part.start, part.stop + 1)
