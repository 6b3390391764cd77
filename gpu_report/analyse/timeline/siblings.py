"""How long a part of an epoch is among its siblings, and how much longer it may be without being an exception."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from gpu_report.analyse.timeline import thresholds as th
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
        # lists: of the few siblings of each of 15,000 epochs numpy takes ten times as long to find the median
        self._lengths_s, self._first = [float(length) for length in lengths_s], list(firsts)
        known = [place for place, length in enumerate(self._lengths_s) if math.isfinite(length)]
        self._known = [place for place in known if not self._first[place]]
        self._firsts = [place for place in known if self._first[place]]
        self._medians: dict[tuple[int, ...], float] = {}  # several rules ask of each epoch, and their windows are alike
        self._spread_s = self._spread()

    def of(self, number: int, tolerated_s: float, first_extra_s: float) -> SiblingLength | None:
        """Return what the siblings of an epoch's part take, None without any.

        `tolerated_s` longer is never an exception: what edges are known to. The first of a process may take half as
        long again on top of what all vary by, or `first_extra_s` more where that is longer.
        """
        siblings = self._near(number)
        if not siblings:
            return None
        typical_s = self._median(siblings)
        drift_s = max(typical_s, *map(self._median, self._beside(number)))
        if self._first[number]:  # lengths shrink most at first: the next one is nearest to it
            drift_s = max(drift_s, self._lengths_s[siblings[0]])
        share = th.FEW_SIBLINGS_SHARE * min(1.0, th.FEW_SIBLINGS / len(siblings))
        spread_s = min(OUTLIER_Z * self._spread_s, th.SPREAD_AT_MOST * drift_s)
        varies_s = max(share * drift_s, spread_s)
        longer_s = max(tolerated_s, varies_s)
        if self._first[number]:
            longer_s = max(longer_s, th.FIRST_SHARE * drift_s + varies_s, first_extra_s)
        return SiblingLength(typical_s, drift_s + longer_s)

    def _median(self, places: Sequence[int]) -> float:
        """Return the median length at some places, 0 of none."""
        key = tuple(places)
        if key not in self._medians:
            self._medians[key] = median([self._lengths_s[place] for place in key]) if key else 0.0
        return self._medians[key]

    def _beside(self, number: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return the places of the few right before and right after an epoch; a first one stands for those before."""
        before, after = _around(self._known, number, th.BESIDE)
        return before or self._firsts[: bisect_left(self._firsts, number)][-1:], after

    def _near(self, number: int) -> Sequence[int]:
        """Return the places of the nearest siblings of an epoch, without itself."""
        before, after = _around(self._known, number, th.SIBLINGS)
        if not before and not after:
            before, after = _around(self._firsts, number, th.SIBLINGS)
        return [*before, *after]

    def _spread(self) -> float:
        """Return the robust standard deviation (s) of lengths around the median of their neighbours; 0 of too few."""
        if len(self._known) < th.SPREAD_OF_AT_LEAST:
            return 0.0
        apart = [abs(self._lengths_s[place] - self._median(self._near(place))) for place in self._known]
        return MAD_TO_SIGMA * median(apart)


def _around(places: Sequence[int], number: int, most: int) -> tuple[Sequence[int], Sequence[int]]:
    """Return the places in order, so many at most, that are right before and right after one, without itself."""
    at = bisect_left(places, number)
    after = at + 1 if places[at : at + 1] == [number] else at
    return places[max(at - most, 0) : at], places[after : after + most]
