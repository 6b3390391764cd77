"""Seconds before each of many readings, of which only those at the edges of parts are kept.

A month has 13 million of the driver's readings, and few of them are asked for.
"""

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.timeseries.intervals import ROWS_AT_ONCE, Bools, parts
from gpu_report.analyse.timeseries.steps import Seconds

PARTS_KEPT = 4  # half a MB each; what is asked for lies in two of them by turns: a stretch's, and where it ends


class RunningSeconds:
    """Running totals of what `some` readings stand for (s): `before(n)` of those before reading n."""

    def __init__(self, seconds: Seconds, some: Bools) -> None:
        """Take what each reading stands for, and which of them count."""
        self._seconds, self._some, self._edges = seconds, some, [0.0]
        self._kept: dict[int, npt.NDArray[np.float64]] = {}  # of the parts that were asked for last
        for part in parts(len(seconds)):
            self._edges.append(float(self._within(part.start // ROWS_AT_ONCE)[-1]))

    @property
    def total(self) -> float:
        """Return the seconds of all readings."""
        return self._edges[-1]

    def before(self, row: int) -> float:
        """Return the seconds of the readings before one, or with their number of all."""
        part, at = divmod(row, ROWS_AT_ONCE)
        return float(self._within(part)[at]) if at else self._edges[part]

    def first_at(self, seconds: float) -> int:
        """Return the first reading before which lie so many seconds, one more than the last where none does."""
        part = int(np.searchsorted(self._edges, seconds)) - 1
        if part < 0:
            return 0
        if part == len(self._edges) - 1:
            return len(self._seconds) + 1
        return part * ROWS_AT_ONCE + int(np.searchsorted(self._within(part), seconds))

    def _within(self, part: int) -> npt.NDArray[np.float64]:
        """Return the seconds before each reading of a part, and before the next: added up one by one, as of all."""
        if part not in self._kept:
            if len(self._kept) == PARTS_KEPT:
                del self._kept[next(iter(self._kept))]
            rows = slice(part * ROWS_AT_ONCE, (part + 1) * ROWS_AT_ONCE)
            mine = np.where(self._some[rows], self._seconds[rows], 0.0)
            self._kept[part] = np.cumsum(np.concatenate([self._edges[part : part + 1], mine]))
        return self._kept[part]
