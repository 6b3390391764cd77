"""Sums of values over many ranges of readings that overlap, of which only the totals of blocks are kept."""

from collections.abc import Callable

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import parts

BLOCK = 1024  # readings: adding up so many takes about as long as to call numpy at all


class BlockSums:
    """Sums of what `values(first, end)` returns for readings [first, end), of `count` in all."""

    def __init__(self, count: int, values: Callable[[int, int], Floats]) -> None:
        """Add up each block once."""
        self._values = values
        whole = parts(count // BLOCK * BLOCK)  # each of some blocks
        totals = [values(part.start, part.stop).reshape(-1, BLOCK).sum(axis=1) for part in whole]
        self._before = np.concatenate([[0.0], np.cumsum(np.concatenate(totals))])

    def between(self, first: int, end: int) -> float:
        """Return the sum over the readings [first, end)."""
        block, last = -(-first // BLOCK), end // BLOCK
        if block >= last:
            return self._sum(first, end)
        whole = float(self._before[last] - self._before[block])
        return self._sum(first, block * BLOCK) + whole + self._sum(last * BLOCK, end)

    def _sum(self, first: int, end: int) -> float:
        return float(self._values(first, end).sum())
