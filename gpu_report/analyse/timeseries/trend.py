"""Whether values that follow each other rise: a test that asks for no shape and bears single outliers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats

TREND_EPOCHS = 5  # four that rise from one to the next do so by chance once in 24 times, five once in 120
NORMAL_EPOCHS = 10  # from so many on the test's normal approximation holds; of fewer all orders are counted
TREND_P = 0.01  # one-sided; of epochs without any trend one run in a hundred passes, and must then also pass the lines
STEP_SHARE = 0.5  # of a rise, in one step: most of it came at once
# Of 1000 drawn series of 20 that scatter by a tenth of their rise one step is told as a line, and no line as a step; by
# a fifth 12 % and 0.4 %.
LEVELS_LEAVE = 0.75
STEP_AFTER = 3  # values, at least: one or two low ones to begin with are outliers
TREND_MOST = 300  # values compared in pairs; more are taken together in blocks


@dataclass(frozen=True)
class Trend:
    """What `count` values came to in the first and in the last third of them (medians), in their unit.

    `is_gradual` says that they went on rising, and did not change once. Where it is plain to see that they changed
    once, `step` is the first value after it, and the medians are of those before and since.
    """

    first: float
    last: float
    count: int
    is_gradual: bool = True
    step: int | None = None

    @property
    def grown(self) -> float:
        """Return by how much they rose."""
        return self.last - self.first

    @property
    def by_the_end(self) -> float:
        """Return by how much they rose in all: on a line, the medians of thirds lie `count` less a third apart."""
        return self.grown * (self.count - 1) / (self.count - self.count // 3) if self.is_gradual else self.grown


def mann_kendall_rise(values: Sequence[float]) -> Trend | None:
    """Return how values rose, None where they are too few or chance may have done it (TREND_P)."""
    if len(values) < TREND_EPOCHS:
        return None
    series = np.array(values, dtype=float)
    step, third = _step_up(series), len(series) // 3
    if step is not None:
        return Trend(
            float(np.median(series[:step])), float(np.median(series[step:])), len(series), is_gradual=False, step=step
        )
    first, last, blocks = float(np.median(series[:third])), float(np.median(series[-third:])), _blocks(series)
    if last <= first or p_of_no_rise(blocks) > TREND_P:
        return None
    return Trend(first, last, len(series), _is_gradual(blocks, last - first))


def _step_up(values: Floats) -> int | None:
    """Return the first value after a step in the first half that parts all values in two levels, None without one.

    No value since may come as near to those before as the values of either side lie apart. In any order of two levels,
    chance puts all low ones first once in so many: TREND_P at most. The test of Mann and Kendall misses a step far from
    the middle, for most pairs lie on one side of it; in the second half it leaves outliers, which are told apart.
    """
    lowest, highest = np.minimum.accumulate, np.maximum.accumulate
    least, most = lowest(values[::-1])[::-1][1:], highest(values[::-1])[::-1][1:]  # of the values since
    gap, before = least - highest(values)[:-1], (highest(values) - lowest(values))[:-1]
    apart = (gap > before) & (gap > most - least)
    found = (int(at) + 1 for at in np.flatnonzero(apart[: len(values) // 2]))
    return next((at for at in found if at >= STEP_AFTER and math.comb(len(values), at) * TREND_P >= 1), None)


def _is_gradual(values: Floats, grown: float) -> bool:
    """Tell whether no single step makes STEP_SHARE of a rise; running medians of three drop single outliers.

    Those hide the first and the last step, which of few values may be all: then the values themselves are asked. Values
    that scatter have such steps by chance: it is one only where two levels fit clearly better than a line.
    """
    is_few = len(values) < NORMAL_EPOCHS
    level = values if is_few else np.median(np.lib.stride_tricks.sliding_window_view(values, 3), axis=1)
    return float(np.diff(level).max(initial=0.0)) < STEP_SHARE * grown or not _fits_two_levels(values)


def _fits_two_levels(values: Floats) -> bool:
    """Tell whether the best step between two levels leaves clearly less (LEVELS_LEAVE) than a line.

    What is left are sums of squares, of least squares.
    """
    at = np.arange(len(values), dtype=float)
    by_line = float(((values - np.polyval(np.polyfit(at, values, 1), at)) ** 2).sum())
    by_levels = min(_around_mean(values[:i]) + _around_mean(values[i:]) for i in range(1, len(values)))
    return by_levels <= LEVELS_LEAVE * by_line


def _around_mean(values: Floats) -> float:
    return float(((values - values.mean()) ** 2).sum())


def p_of_no_rise(values: Floats) -> float:
    """Return how likely values without any trend rise as much (one-sided), by the test of Mann and Kendall.

    H. B. Mann, Econometrica 13 (1945); M. G. Kendall, Rank Correlation Methods (1975); as in R. O. Gilbert, Statistical
    Methods for Environmental Pollution Monitoring (1987), p. 208 to 213. S counts the pairs that rise less those that
    fall; its variance is corrected for ties, and S by 1 for being discrete. With NORMAL_EPOCHS values the normal
    distribution is close enough to that of S (the test of this function holds it against permutations). Of fewer their
    orders are counted, as if none were equal: equal ones add nothing to S.
    """
    count = len(values)
    score = float(np.triu(np.sign(values - values[:, None])).sum())
    if count < NORMAL_EPOCHS:
        pairs, orders = count * (count - 1) // 2, _orders(count)
        return sum(orders[: math.floor((pairs - score) / 2) + 1]) / sum(orders)
    _, ties = np.unique(values, return_counts=True)
    variance = (_triples(count) - sum(_triples(int(tie)) for tie in ties)) / 18
    if variance <= 0:
        return 1.0
    z = (score - np.sign(score)) / math.sqrt(variance)
    return 0.5 * math.erfc(z / math.sqrt(2))


@cache
def _orders(count: int) -> tuple[int, ...]:
    """Return in how many orders of so many values 0, 1, 2 ... pairs fall (D. E. Knuth, TAOCP 3, section 5.1.1)."""
    orders = [1]
    for size in range(2, count + 1):
        orders = [sum(orders[max(n - size + 1, 0) : n + 1]) for n in range(len(orders) + size - 1)]
    return tuple(orders)


def _triples(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)


def _blocks(values: Floats) -> Floats:
    """Return medians of blocks that follow each other, where there are more values than need be compared in pairs."""
    if len(values) <= TREND_MOST:
        return values
    size, longer = divmod(len(values), TREND_MOST)  # so many blocks at the beginning have one value more
    at = longer * (size + 1)
    blocks = values[:at].reshape(longer, size + 1), values[at:].reshape(TREND_MOST - longer, size)
    return np.concatenate([np.median(each, axis=1) for each in blocks if len(each)])
