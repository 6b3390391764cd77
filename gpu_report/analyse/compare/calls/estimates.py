"""Figures of calls with intervals that hold for calls which resemble their neighbours, and the interval of a change.

A standard error is the larger of two. That of the means of consecutive batches sees slow stretches of a long run. That
of a first-order autoregressive series, with the coefficient that neighbours may well have, holds where a run is too
short for batches: with 200 calls correlated by 0.9, batches alone made 8 of 100 intervals of p95 wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_report.analyse.inference.percentiles import batches_of, variance_of_mean
from gpu_report.analyse.timeseries.bootstrap import INTERVAL_CONFIDENCE
from gpu_report.analyse.timeseries.correlation import correlation_bound, widening
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.student import student_quantile
from gpu_report.model import calls_needed

FEWEST_BATCHES: Final = 3  # of fewer, Student's t reaches 64 standard errors and says nothing
WIDENED_BY: Final = 10_000  # values: the widening of more is the same to four digits


@dataclass(frozen=True, eq=False)
class Estimate:
    """A figure of `count` calls with its 99 % interval; an end is infinite where the calls are too few for it.

    Of a quantile `ordered` are the values, and `share_ends` the ends of the interval of the share below it.
    """

    value: float
    low: float
    high: float
    count: int
    ordered: Floats | None = None
    share_ends: tuple[float, float] = (0.0, 0.0)

    def calls_to_tell_from(self, other: float) -> int:
        """Return about how many calls would put an end of the interval before another value, `count` where they do.

        Of a quantile the share of calls below the other value says how short the interval must be.
        """
        if self.ordered is None:
            reach = self.value - self.low if other < self.value else self.high - self.value
            far, room = (reach, abs(self.value - other)) if math.isfinite(reach) else (0.0, 1.0)
            return max(math.ceil(self.count * (far / room) ** 2), self.count) if room else self.count
        middle, far = sum(self.share_ends) / 2, (self.share_ends[1] - self.share_ends[0]) / 2
        below = float(np.searchsorted(self.ordered, other)) / self.count
        room = max(min(abs(below - middle), middle, 1 - middle), 1 / self.count)
        return max(math.ceil(self.count * (far / room) ** 2), self.count)


def quantile_estimate(values: Floats, share: float) -> Estimate | None:
    """Return a quantile of values in the order of their calls, None where too few lie beyond it.

    Its interval lies between the order statistics at the ends of the interval of the share below it (Woodruff 1952).
    """
    known = values[np.isfinite(values)]
    if len(known) < calls_needed(share):
        return None
    ordered = np.sort(known)
    value = float(np.quantile(ordered, share))
    below = (known <= value).astype(float)
    far = _reach(below, share * (1 - share), batches_of(len(known)))
    ends = share - far, share + far
    low, high = (_order_statistic(ordered, end) for end in ends)
    return Estimate(value, min(low, value), max(high, value), len(known), ordered, ends)


def ratio_estimate(amounts: Floats, of: Floats, most_batches: int | None = None) -> Estimate | None:
    """Return the sum of amounts by the sum of what they are of, one of each a call; None where too few are known.

    A mean is a ratio to ones. `most_batches` bounds the batches where amounts were measured more coarsely than calls.
    """
    known = np.isfinite(amounts) & np.isfinite(of)
    count, total = int(known.sum()), float(of[known].sum())
    batches = min(batches_of(count), most_batches or count)
    if count < calls_needed(0.5) or total <= 0 or batches < FEWEST_BATCHES:
        return None
    value = float(amounts[known].sum()) / total
    rests = (amounts[known] - value * of[known]) * count / total
    far = _reach(rests, float(rests.var(ddof=1)), batches)
    return Estimate(value, value - far, value + far, count)


def mean_estimate(values: Floats) -> Estimate | None:
    """Return the mean of values in the order of their calls, None where too few are known."""
    return ratio_estimate(values, np.ones(len(values)))


def change_ends(baseline: Estimate, run: Estimate) -> tuple[float, float]:
    """Return the ends of the interval of the change between two independent estimates; they may be infinite.

    Zou and Donner 2008, "Construction of confidence limits about effect measures: a general approach", Statistics in
    Medicine 27, 1693-1702: each end is as far from the change as both estimates are from their ends on that side.
    """
    change = run.value - baseline.value
    down = math.hypot(run.value - run.low, baseline.high - baseline.value)
    up = math.hypot(run.high - run.value, baseline.value - baseline.low)
    return change - down, change + up


def calls_for(baseline: Estimate, run: Estimate) -> int:
    """Return about how many calls of each run would make their change certain, were it to stay as it is."""
    low, high = change_ends(baseline, run)
    change = run.value - baseline.value
    reach = change - low if change > 0 else high - change
    if math.isinf(reach) or not change:
        return max(baseline.calls_to_tell_from(run.value), run.calls_to_tell_from(baseline.value))
    return math.ceil(min(baseline.count, run.count) * float(reach / change) ** 2)


def _reach(values: Floats, variance: float, batches: int) -> float:
    """Return how far the interval of a mean reaches to either side; `variance` is that of one value."""
    independent = variance / len(values)
    error = math.sqrt(max(variance_of_mean(values, batches), independent * _widening(values) ** 2))
    return student_quantile((1 + INTERVAL_CONFIDENCE) / 2, batches - 1) * error


def _widening(values: Floats) -> float:
    return widening(correlation_bound([values]), min(len(values), WIDENED_BY))


def _order_statistic(values: Floats, share: float) -> float:
    """Return the value with this share below it; beyond all values it may be anything."""
    if not 0 < share < 1:
        return math.copysign(math.inf, share - 0.5)
    return float(np.quantile(values, share, method="nearest"))
