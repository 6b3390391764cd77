"""How long the blocks are that epochs are drawn in, so that what is drawn wanders as much as they did.

They are as long as the automatic rule of Politis and White finds best for the series at hand (2004, Econometric Reviews
23, 53-70; corrected by Patton, Politis and White 2009, Econometric Reviews 28, 372-375).
"""

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats

LAG_LIMIT = 2.0  # correlations under this many times sqrt(log10(n) / n) count as none ...
LAGS_IN_A_ROW = 5  # ... where so many in a row are (Politis and White 2004, their K_n)


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
