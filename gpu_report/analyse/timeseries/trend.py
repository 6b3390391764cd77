"""Whether values that follow each other rise: a test that asks for no shape and bears single outliers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats

# Fewer epochs show no trend: with 10 the test's normal approximation holds, and a third has three.
TREND_EPOCHS = 10
TREND_P = 0.01  # one-sided; of epochs without any trend one run in a hundred passes, and must then also pass the lines
TREND_MOST = 300  # values compared in pairs; more are taken together in blocks


@dataclass(frozen=True)
class Trend:
    """What values came to in the first and in the last third of them (medians), in their unit."""

    first: float
    last: float

    @property
    def grown(self) -> float:
        """Return by how much they rose."""
        return self.last - self.first


def mann_kendall_rise(values: Sequence[float]) -> Trend | None:
    """Return how values rose, None where they are too few or chance may have done it (TREND_P)."""
    if len(values) < TREND_EPOCHS:
        return None
    series = np.array(values, dtype=float)
    third = len(series) // 3
    found = Trend(float(np.median(series[:third])), float(np.median(series[-third:])))
    return found if found.grown > 0 and p_of_no_rise(_blocks(series)) <= TREND_P else None


def p_of_no_rise(values: Floats) -> float:
    """Return how likely values without any trend rise as much (one-sided), by the test of Mann and Kendall.

    H. B. Mann, Econometrica 13 (1945); M. G. Kendall, Rank Correlation Methods (1975); as in R. O. Gilbert, Statistical
    Methods for Environmental Pollution Monitoring (1987), p. 208 to 213. S counts the pairs that rise less those that
    fall; its variance is corrected for ties, and S by 1 for being discrete. With 10 values the normal distribution is
    close enough to that of S (the test of this function holds it against permutations).
    """
    count = len(values)
    score = float(sum(np.sign(values[i + 1 :] - values[i]).sum() for i in range(count - 1)))
    _, ties = np.unique(values, return_counts=True)
    variance = (_triples(count) - sum(_triples(int(tie)) for tie in ties)) / 18
    if variance <= 0:
        return 1.0
    z = (score - np.sign(score)) / math.sqrt(variance)
    return 0.5 * math.erfc(z / math.sqrt(2))


def _triples(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)


def _blocks(values: Floats) -> Floats:
    """Return medians of blocks that follow each other, where there are more values than need be compared in pairs."""
    if len(values) <= TREND_MOST:
        return values
    return np.array([float(np.median(block)) for block in np.array_split(values, TREND_MOST)])
