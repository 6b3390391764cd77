"""Percentiles of latency with intervals that hold for calls which resemble their neighbours.

The interval of a quantile lies between two order statistics (Woodruff 1952): those at the ends of the interval of the
share of calls below it. That share's standard error is taken from the means of consecutive batches, since calls come in
good and bad stretches (clocks, neighbours, traffic), and Student's t allows for their number.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.student import student_quantile
from gpu_report.model import Latency, Quantile, calls_needed

CONFIDENCE: Final = 0.95
MOST_BATCHES: Final = 20  # of more, each is shorter than a bad stretch and looks independent of its neighbours
BATCHES_OF_ROOT: Final = 1.5  # of the cube root of calls: fewer and longer batches where calls are few
SHARES: Final = (0.5, 0.95, 0.99)


def quantile(values_ms: Floats, share: float) -> Quantile:
    """Return a quantile of latencies in the order of their calls, empty where too few lie beyond it."""
    return quantiles(values_ms, (share,))[0]


def quantiles(values_ms: Floats, shares: tuple[float, ...]) -> tuple[Quantile, ...]:
    """Return several quantiles; the latencies are sorted once."""
    known = values_ms[np.isfinite(values_ms)].astype(np.float64)
    ordered = np.sort(known)
    return tuple(_quantile(known, ordered, share) for share in shares)


def latency(values_ms: Floats) -> Latency:
    """Return how long some calls took; there must be one at least."""
    p50, p95, p99 = quantiles(values_ms, SHARES)
    return Latency(len(values_ms), float(np.mean(values_ms)), float(np.max(values_ms)), p50, p95, p99)


def _quantile(values: npt.NDArray[np.float64], ordered: npt.NDArray[np.float64], share: float) -> Quantile:
    if len(ordered) < calls_needed(share):
        return Quantile()
    value = float(np.quantile(ordered, share))
    low, high = np.clip(share + _half_width(values <= value, share) * np.array([-1.0, 1.0]), 0.0, 1.0)
    ends = np.quantile(ordered, (low, high), method="nearest")
    return Quantile(value, float(min(ends[0], value)), float(max(ends[1], value)))


def _half_width(below: npt.NDArray[np.bool_], share: float) -> float:
    """Return half the interval of the share of calls below a quantile."""
    batches = batches_of(len(below))
    independent = share * (1.0 - share) / len(below)  # the least: batches may look alike by chance
    error = float(np.sqrt(max(variance_of_mean(below, batches), independent)))
    return student_quantile((1.0 + CONFIDENCE) / 2.0, batches - 1) * error


def batches_of(count: int) -> int:
    """Return into how many batches of neighbours so many calls are put."""
    return int(min(MOST_BATCHES, max(BATCHES_OF_ROOT * np.cbrt(count), 2)))


def variance_of_mean(values: npt.NDArray[np.bool_] | Floats, batches: int) -> float:
    """Return the variance of the mean of values that resemble their neighbours, by the means of some batches."""
    size = len(values) // batches
    means = values[: size * batches].reshape(batches, size).mean(axis=1)
    return float(means.var(ddof=1)) / batches
