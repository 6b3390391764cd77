"""How far a change may be chance: block bootstrap intervals for short, autocorrelated series.

Epochs and windows of one run are no independent draws: caches fill, clocks settle, neighbours come and go. Blocks of
consecutive values are drawn instead, on a circle (Politis and Romano 1992, "A circular block-resampling procedure for
stationary data"). They are as long as the automatic rule of Politis and White finds best for the series at hand (2004,
Econometric Reviews 23, 53-70; corrected by Patton, Politis and White 2009, Econometric Reviews 28, 372-375). Everything
is seeded: the same runs give the same interval.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats

INTERVAL_CONFIDENCE = 0.99  # so that a change out of nothing is called significant at most once in a hundred
RESAMPLES = 10_000  # of each side: the widened 99 % interval of 5 values uses quantiles of 0.01 % and less
RESAMPLED_VALUES = 4_000_000  # ... but no more than so many numbers at a time (32 MB) ...
RESAMPLES_AT_LEAST = 2_000  # ... and no fewer than this

SEED = 20_261_121
LAG_LIMIT = 2.0  # correlations under this many times sqrt(log10(n) / n) count as none ...
LAGS_IN_A_ROW = 5  # ... where so many in a row are (Politis and White 2004, their K_n)

# Takes an array of resamples (one a row) and returns one figure a row.
Statistic = Callable[[Floats], Floats]
Interval = tuple[float, float]


def change_intervals(
    baselines: Sequence[Floats], run: Floats, statistic: Statistic, confidence: float = INTERVAL_CONFIDENCE
) -> tuple[Interval, Interval | None, int]:
    """Return the interval of the change of a statistic, that of its share of the baseline, and the longest block.

    Of several baselines their median is the baseline. The share is None where the baseline may be zero.
    """
    random = np.random.default_rng(SEED)
    drawn = [_resampled(values, statistic, random) for values in (*baselines, run)]
    count = min(len(each) for each in drawn)
    before = np.median(np.array([each[:count] for each in drawn[:-1]]), axis=0)
    change = drawn[-1][:count] - before
    fewest, block = min(map(len, (*baselines, run))), max(map(block_length, (*baselines, run)))
    ends = widened(fewest, block, confidence)
    share = _ends(change / before, ends) if (before > 0).all() else None
    return _ends(change, ends), share, block


def widened(count: int, block: int, confidence: float) -> Interval:
    """Return the quantiles of a bootstrap distribution that make an interval of this confidence from `count` values.

    Percentile intervals are too narrow for few values: by sqrt((n-1)/n), for the variance is biased, and because they
    take the normal distribution's quantiles in place of Student's. Hesterberg (2015, "What Teachers Should Know About
    the Bootstrap", The American Statistician 69, 371-386) widens them by both: the expanded percentile interval. Means
    of blocks of b values vary less about the mean of all by (n-b)/n, which is his factor with b = 1.
    """
    tail = (1 - confidence) / 2
    far = student_quantile(1 - tail, count - 1) * (count / max(count - block, 1)) ** 0.5
    outside = 1 - NormalDist().cdf(far)
    return outside, 1 - outside


def block_length(values: Floats) -> int:
    """Return how many consecutive values a block of the circular bootstrap has (sources: module docstring)."""
    count = len(values)
    lags = _correlated_lags(values)
    if not lags or count < 3:
        return 1
    covariance = _autocovariance(values, min(2 * lags, count - 1))
    at = np.arange(1, len(covariance))
    weight = np.clip(2 * (1 - at / (2 * lags)), 0.0, 1.0)
    slope = 2 * float((weight * at * covariance[1:]).sum())
    spectrum = float(covariance[0] + 2 * (weight * covariance[1:]).sum())
    longest = max(int(np.ceil(min(3 * count**0.5, count / 3))), 1)
    if spectrum <= 0:
        return longest
    best = (2 * slope**2 / (4 / 3 * spectrum**2)) ** (1 / 3) * count ** (1 / 3)
    return int(np.clip(np.ceil(best), 1, longest))


@lru_cache(maxsize=64)
def student_quantile(share: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution, for a share over one half: its density is integrated.

    With t = sqrt(degrees) tan(angle) the density is proportional to cos(angle) to the power of degrees - 1.
    """
    angle = np.linspace(0, np.pi / 2, 20_001)
    density = np.cos(angle) ** (degrees - 1)
    area = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return float(degrees**0.5 * np.tan(np.interp(2 * share - 1, area / area[-1], angle)))


def _resampled(values: Floats, statistic: Statistic, random: np.random.Generator) -> Floats:
    """Return the statistic of resamples of the values, in circular blocks."""
    count = len(values)
    block = block_length(values)
    draws = int(np.clip(RESAMPLED_VALUES // count, RESAMPLES_AT_LEAST, RESAMPLES))
    starts = random.integers(0, count, size=(draws, -(-count // block)))
    rows = (starts[:, :, None] + np.arange(block)) % count
    return statistic(values[rows.reshape(draws, -1)[:, :count]])


def _ends(values: Floats, ends: Interval) -> Interval:
    low, high = np.quantile(values, ends)
    return float(low), float(high)


def _correlated_lags(values: Floats) -> int:
    """Return the lag after which no correlation stands out: the smallest that K_n insignificant ones follow."""
    count = len(values)
    if count < 3 or np.ptp(values) == 0:
        return 0
    most = min(int(np.ceil(count**0.5)) + LAGS_IN_A_ROW, count - 1)
    covariance = _autocovariance(values, most)
    stands_out = np.abs(covariance[1:] / covariance[0]) >= LAG_LIMIT * (np.log10(count) / count) ** 0.5
    for lag in range(most):
        if not stands_out[lag : lag + LAGS_IN_A_ROW].any():
            return lag
    return most


def _autocovariance(values: Floats, lags: int) -> Floats:
    centred = values - values.mean()
    return np.array([float(centred[: len(values) - lag] @ centred[lag:]) for lag in range(lags + 1)]) / len(values)
