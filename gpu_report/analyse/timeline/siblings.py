"""How long a part of an epoch is among its siblings, and how much longer it may be without being an exception."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeseries.intervals import Indices
from gpu_report.analyse.timeseries.robust_outliers import MAD_TO_SIGMA
from gpu_report.analyse.timeseries.thresholds import OUTLIER_Z


@dataclass(frozen=True)
class SiblingLength:
    """What the siblings of a part of an epoch take (s): their typical length, and the longest that is no exception."""

    typical_s: float
    longest_s: float

    @property
    def longer_s(self) -> float:
        """Return how much longer than typical it may be."""
        return self.longest_s - self.typical_s


class SiblingLengths:
    """The lengths of one part (validation, checkpoint) of every epoch of a run, in order, NaN where unknown.

    Lengths drift: a validation gets shorter as the model learns. So each is compared with the median of the
    SIBLINGS on either side of it, while the spread is that of all lengths around such medians; and what is no longer
    than those before it, or than those after it, is part of a drift. The first of a process takes longer by nature and
    is no sibling, unless there is no other.
    """

    def __init__(self, lengths_s: Sequence[float], firsts: Sequence[bool]) -> None:
        self._lengths_s = np.array(lengths_s, dtype=float)
        known, first = np.isfinite(self._lengths_s), np.array(firsts, dtype=bool)
        self._known = np.flatnonzero(known & ~first)
        self._firsts = np.flatnonzero(known & first)
        self._first = first
        self._spread_s = self._spread()

    def of(self, number: int, tolerated_s: float, first_extra_s: float) -> SiblingLength | None:
        """Return what the siblings of an epoch's part take, None without any.

        `tolerated_s` longer is never an exception: what edges are known to. The first of a process may take half as
        long again on top of what all vary by, or `first_extra_s` more where that is longer.
        """
        siblings = self._near(number)
        if not len(siblings):
            return None
        typical_s = self._median(siblings)
        drift_s = max(typical_s, *map(self._median, self._beside(number)))
        if self._first[number]:  # lengths shrink most at first: the next one is nearest to it
            drift_s = max(drift_s, float(self._lengths_s[siblings[0]]))
        share = th.FEW_SIBLINGS_SHARE * min(1.0, th.FEW_SIBLINGS / len(siblings))
        spread_s = min(OUTLIER_Z * self._spread_s, th.SPREAD_AT_MOST * drift_s)
        varies_s = max(share * drift_s, spread_s)
        longer_s = max(tolerated_s, varies_s)
        if self._first[number]:
            longer_s = max(longer_s, th.FIRST_SHARE * drift_s + varies_s, first_extra_s)
        return SiblingLength(typical_s, drift_s + longer_s)

    def _median(self, places: Indices) -> float:
        return float(np.median(self._lengths_s[places])) if len(places) else 0.0

    def _beside(self, number: int) -> tuple[Indices, Indices]:
        """Return the places of the few right before and right after an epoch; a first one stands for those before."""
        at, known = int(np.searchsorted(self._known, number)), self._known[self._known != number]
        before = known[max(at - th.BESIDE, 0) : at]
        if not len(before):
            before = self._firsts[self._firsts < number][-1:]
        return before, known[at : at + th.BESIDE]

    def _near(self, number: int) -> Indices:
        """Return the places of the nearest siblings of an epoch, without itself."""
        known: Indices = self._known[self._known != number]
        if not len(known):
            known = self._firsts[self._firsts != number]
        at = int(np.searchsorted(known, number))
        near: Indices = known[max(at - th.SIBLINGS, 0) : at + th.SIBLINGS]
        return near

    def _spread(self) -> float:
        """Return the robust standard deviation (s) of lengths around the median of their neighbours; 0 of too few."""
        if len(self._known) < th.SPREAD_OF_AT_LEAST:
            return 0.0
        apart = [abs(self._lengths_s[at] - np.median(self._lengths_s[self._near(at)])) for at in self._known.tolist()]
        return MAD_TO_SIGMA * float(np.median(apart))
