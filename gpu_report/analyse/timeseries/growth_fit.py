"""Growth in a series of points: the stretch in which it rises, between a level before it and a level after it."""

from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats


@dataclass(frozen=True)
class GrowthFit:
    """A rise from point `first`, the last one of the level before, to point `last`, the first of the level after.

    `fit` is the share of the variance of all points that the two levels and the line between them explain (0 to 1).
    """

    first: int
    last: int
    before: float
    rise: float
    fit: float


def fit_growth(x: Floats, y: Floats) -> GrowthFit | None:
    """Return the level, line, level that fits the points best (least squares), None where they do not rise.

    All pairs of corners are tried: n x n of n points, so n is to be a hundred at most.
    """
    spread = float(((y - y.mean()) ** 2).sum()) if len(y) else 0.0
    if len(y) < 2 or spread <= 0:
        return None
    first, last = np.triu_indices(len(y), k=1)
    shape = np.clip((x - x[first, None]) / (x[last] - x[first])[:, None], 0.0, 1.0)
    centred = shape - shape.mean(axis=1, keepdims=True)
    moved = centred @ (y - y.mean())
    weight = (centred**2).sum(axis=1)
    gained = np.where(moved > 0, moved**2 / weight, 0.0)
    best = int(np.argmax(gained))
    if gained[best] <= 0:
        return None
    rise = float(moved[best] / weight[best])
    before = float(y.mean() - rise * shape[best].mean())
    return GrowthFit(int(first[best]), int(last[best]), before, rise, float(gained[best]) / spread)


def theil_sen(x: Floats, y: Floats) -> float:
    """Return the median of the slopes between all pairs of points (Theil 1950, Sen 1968): outliers do not move it."""
    first, last = np.triu_indices(len(x), k=1)
    return float(np.median((y[last] - y[first]) / (x[last] - x[first])))
