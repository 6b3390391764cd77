"""Whether a function of the user's takes ever longer: what it costs a batch, from a training's beginning to its end."""

from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.interval_cover import IntervalCover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.trend import mann_kendall_rise

GROWN = 2.0  # times the first third's cost, in the last: a cache that fills adds less
LEAST_S = 1.0  # in the last third: 20 notes, of which the standard error is 22 %
PARTS = 20  # with as many batches each: the test compares 190 pairs, and single parts may scatter
LEAST_BATCHES = 5 * PARTS  # so that no part is one odd batch alone
GROWS_SHARE = 0.05  # of an epoch, by which each takes longer than the one before: after 20 epochs it is twice as long
ERRORS = 2.0  # standard errors under the slope of a line: what it grows by at least (97 %)


@dataclass(frozen=True)
class CallGrowth:
    """What a function costs a batch (s) in the first and in the last third of the batches.

    `more_s` is what each epoch takes longer for it than the one before, at least, of the seconds `epoch_s` that one
    takes now; None where no line shows that much, or an epoch's length is not known.
    """

    first_s: float
    last_s: float
    more_s: float | None = None
    epoch_s: float | None = None

    @property
    def grows_on_s(self) -> float | None:
        """Return `more_s` where that is GROWS_SHARE of an epoch, else None: then it is no news."""
        is_much = self.more_s is not None and self.epoch_s is not None and self.more_s >= GROWS_SHARE * self.epoch_s
        return self.more_s if is_much else None


def call_growth(there: IntervalCover, done: Throughput, span: Span, epoch_batches: int | None) -> CallGrowth | None:
    """Return how the cost of a function grew in a training, None where it did not, or too little was noted.

    `there` is when it ran, `span` that of the steady state.
    """
    first, last = np.interp(span, done.t_s, done.batches)
    if last - first < LEAST_BATCHES:
        return None
    edges = np.linspace(first, last, PARTS + 1)  # as many batches in each part
    at_s = np.interp(edges, done.batches, done.t_s)
    took_s = there.seconds_in_each(np.column_stack([at_s[:-1], at_s[1:]]))
    cost = took_s / np.diff(edges)
    grown = mann_kendall_rise(cost.tolist())
    if grown is None or grown.last < GROWN * grown.first or took_s[-PARTS // 3 :].sum() < LEAST_S:
        return None
    slope, rate = _slope_at_least((edges[:-1] + edges[1:]) / 2, cost), done.batches_per_s([span])
    if not grown.is_gradual or slope <= 0 or not epoch_batches or not rate:  # one step says nothing of what comes
        return CallGrowth(grown.first, grown.last)
    return CallGrowth(grown.first, grown.last, slope * epoch_batches**2, epoch_batches / rate)


def _slope_at_least(x: Floats, y: Floats) -> float:
    """Return the slope of the line through some points (least squares), less ERRORS times its standard error."""
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    left = y - y.mean() - slope * centred
    error = float(np.sqrt(left @ left / (len(x) - 2) / (centred @ centred)))
    return slope - ERRORS * error
