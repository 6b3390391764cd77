"""How far a change may be chance: bootstrap intervals, widened for few values and for neighbours that are alike.

Values are drawn one by one, and how far the drawn statistics lie about the one measured is widened by `reach` of
correlation.py. Blocks of consecutive values, as long as the rule of Politis and White (2004) finds best, were too short
in short runs: of 10 epochs correlated by 0.7 one interval in four was wrong. Everything is seeded: the same runs give
the same interval.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeseries.correlation import correlation_after, correlation_bound, reach
from gpu_report.analyse.timeseries.gpu_series import Floats

INTERVAL_CONFIDENCE = 0.99  # so that a change out of nothing is called significant at most once in a hundred
RESAMPLES = 4_000  # of each side: the 0.5 % quantile then has 20 of them beyond it
RESAMPLED_VALUES = 4_000_000  # ... but no more than so many numbers at a time (32 MB) ...
RESAMPLES_AT_LEAST = 2_000  # ... and no fewer than this
SEED = 20_261_121
MORE = 1.05  # no unit: by this factor grows the number of values of which is asked whether they would be enough
VALUES_AT_MOST = 10_000  # of each side; nobody trains as many epochs, and a change that small is worth nothing

# Takes an array of resamples (one a row) and returns one figure a row.
Statistic = Callable[[Floats], Floats]
Interval = tuple[float, float]


@dataclass(frozen=True)
class ChangeInterval:
    """The interval of a change, that of its share of the baseline, and what neighbours may have in common (0 to 1).

    `share` is None where the baseline is zero. `enough` is how many values of each side would make a change certain
    that is not, and would be were the values independent; else None.
    """

    ends: Interval
    share: Interval | None
    correlation: float
    enough: int | None

    @property
    def is_certain(self) -> bool:
        """Tell whether the change is more than chance."""
        return self.ends[0] > 0 or self.ends[1] < 0

    @property
    def is_certain_of_independent(self) -> bool:
        """Tell whether the change would be more than chance were the values independent of their neighbours."""
        return self.is_certain or self.enough is not None


def change_interval(baselines: Sequence[Floats], run: Floats, statistic: Statistic) -> ChangeInterval:
    """Return the interval of the change of a statistic; of several baselines their median is the baseline."""
    sides = (*baselines, run)
    random = np.random.default_rng(SEED)
    drawn = [_resampled(values, statistic, random) for values in sides]
    count = min(map(len, drawn))
    drawn_changes = drawn[-1][:count] - np.median(np.array([each[:count] for each in drawn[:-1]]), axis=0)
    *old, new = [float(statistic(values)) for values in sides]
    baseline = float(np.median(old))
    fewest, correlation = min(map(len, sides)), correlation_bound(sides)
    far, plain_far = (reach(each, fewest, _degrees(sides), INTERVAL_CONFIDENCE) for each in (correlation, 0.0))
    ends = _ends(drawn_changes, new - baseline, far, INTERVAL_CONFIDENCE)
    plain = _ends(drawn_changes, new - baseline, plain_far, INTERVAL_CONFIDENCE)
    share = (max(ends[0] / baseline, -1.0), ends[1] / baseline) if baseline > 0 else None
    points = (plain[0] > 0 or plain[1] < 0) and ends[0] <= 0 <= ends[1]
    return ChangeInterval(ends, share, correlation, _enough(sides, new - baseline, ends, far) if points else None)


def _enough(sides: Sequence[Floats], change: float, ends: Interval, far: float) -> int:
    """Return how many values of each side would make a change certain, were it and their spread to stay as they are."""
    fewest = min(map(len, sides))
    distance = (change - ends[0] if change > 0 else ends[1] - change) / far
    count = float(fewest)
    while count < VALUES_AT_MOST:
        count = max(count * MORE, count + 1)
        whole = int(count)
        wide = reach(correlation_after(sides, whole), whole, 2 * whole - 2, INTERVAL_CONFIDENCE)
        if distance * wide * (fewest / whole) ** 0.5 < abs(change):
            return whole
    return VALUES_AT_MOST


def _degrees(sides: Sequence[Floats]) -> int:
    """Return the degrees of freedom of a difference of means (Welch 1947, Biometrika 34, 28-35)."""
    parts = [(float(values.var(ddof=1)) / len(values), len(values) - 1) for values in sides]
    total = sum(part for part, _ in parts)
    fewest = min(degrees for _, degrees in parts)
    if total <= 0:
        return fewest
    return max(int(total**2 / sum(part**2 / degrees for part, degrees in parts) + 1e-6), fewest)


def _resampled(values: Floats, statistic: Statistic, random: np.random.Generator) -> Floats:
    """Return the statistic of resamples of the values."""
    draws = int(np.clip(RESAMPLED_VALUES // len(values), RESAMPLES_AT_LEAST, RESAMPLES))
    return statistic(values[random.integers(0, len(values), size=(draws, len(values)))])


def _ends(drawn: Floats, measured: float, far: float, confidence: float) -> Interval:
    """Return the ends of an interval that reaches `far` times as far from what was measured as what was drawn."""
    tail = (1 - confidence) / 2
    low, high = (measured + far * (end - measured) for end in np.quantile(drawn, (tail, 1 - tail)))
    return float(low), float(high)
