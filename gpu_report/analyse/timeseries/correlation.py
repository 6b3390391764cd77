"""How much less the epochs of a run say than as many independent draws would: each is like the one before it.

Caches fill, clocks settle, other processes come and go. Epochs are taken for a first-order autoregressive series, whose
one coefficient is what neighbours have in common: 0 for independent draws.
"""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.student import student_quantile

# No unit. A few epochs cannot show how alike neighbours are: unless they show less, this much is assumed. It is over
# the 0.7 for which intervals must hold, because the spread of correlated epochs is estimated, too.
ASSUMED = 0.8
# Standard errors of the estimate (1 / sqrt(values)) that are added to it. Chosen by simulation: the smallest with which
# 99 % intervals are wrong in about 1 % at most, for coefficients up to 0.7 and 5 to 200 epochs (docs/compare.md).
MARGIN = 1.1
MOST = 0.95  # no unit: from here on a series is a drift, and its mean has no interval worth the name


def correlation_bound(series: Sequence[Floats]) -> float:
    """Return the coefficient that the series may well have, from all of them together: 0 to MOST."""
    total = sum(map(len, series))
    return _bound(_lag_one(series), total / len(series), total)


def correlation_after(series: Sequence[Floats], count: int) -> float:
    """Return what the bound would be with so many values in each series, were they as alike as these seem to be."""
    likely = min(_likely(_lag_one(series), sum(map(len, series)) / len(series)), MOST)
    return _bound(likely - (1 + 4 * likely) / count, count, count * len(series))


def _bound(estimate: float, count: float, total: int) -> float:
    """Return the upper bound of a coefficient that was estimated from series of so many values, in total."""
    upper = estimate + (1 + 4 * ASSUMED) / count + MARGIN / total**0.5
    return float(np.clip(upper, 0.0, min(max(estimate, ASSUMED), MOST)))


def _likely(estimate: float, count: float) -> float:
    """Return an estimate without its bias: from n values it is too low by (1 + 4 r) / n on average.

    Marriott and Pope 1954, "Bias in the estimation of autocorrelations", Biometrika 41, 390-402.
    """
    return (estimate + 1 / count) / max(1 - 4 / count, 1 / count)


def widening(correlation: float, count: int) -> float:
    """Return how many times further the mean of so many correlated values varies than their own spread lets expect.

    The mean's variance grows by V = 1 + 2 sum((1 - k/n) r^k), and the spread about their own mean shrinks by
    (n - V) / (n - 1). Bayley and Hammersley 1946, "The effective number of independent observations in an
    autocorrelated time series", Supplement to the Journal of the Royal Statistical Society 8, 184-197.
    """
    lags = np.arange(1, count)
    variance = 1 + 2 * float(((1 - lags / count) * correlation**lags).sum())
    return float((variance * (count - 1) / (count - variance)) ** 0.5)


def reach(correlation: float, count: int, degrees: int, confidence: float) -> float:
    """Return how far an interval reaches, in ends of a plain bootstrap's: `degrees` as of Student's distribution.

    A bootstrap draws from n values as if they were all there are, which makes it too narrow by sqrt((n - 1) / n), and
    its quantiles are the normal distribution's (Hesterberg 2015, "What Teachers Should Know About the Bootstrap",
    The American Statistician 69, 371-386).
    """
    share = (1 + confidence) / 2
    student = student_quantile(share, degrees) / NormalDist().inv_cdf(share)
    return student * math.sqrt(count / (count - 1)) * widening(correlation, count)


def _lag_one(series: Sequence[Floats]) -> float:
    """Return the first autocorrelation of several series, each about its own mean; 0 where nothing varies."""
    centred = [values - values.mean() for values in series]
    variance = sum(float(values @ values) for values in centred)
    return sum(float(values[1:] @ values[:-1]) for values in centred) / variance if variance > 0 else 0.0
