"""Drops that are no events: of readings far apart, some low ones follow each other by chance.

A driver's reading is of its last second or less. Of a GPU that waits between batches every third may be low: among
hundreds there are many rows of three or four. How many chance makes follows from how often a high reading is followed
by a low one nearby, which a real drop raises by one alone, however long it is.
"""

from collections.abc import Sequence
from math import exp

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.timeline.thresholds import SPARSE_S
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import Indices


def drops_by_chance(
    series: GpuSeries, trains: Bools, drops: Sequence[Drop], line_share: float, stretches: float = 1.0
) -> set[Drop]:
    """Return the drops of one GPU of which chance makes as many, by the readings of training around each.

    `line_share` (0 to 1) of the level is the line of a drop, `stretches` how many such parts of readings all GPUs have:
    what is rare in one of them is not in a thousand. None where readings follow each other without a gap.
    """
    if series.interval_s < SPARSE_S or not drops:
        return set()
    rows = np.flatnonzero(trains)
    at = np.searchsorted(series.t_s[rows], [(drop.start_t_s + drop.end_t_s) / 2 for drop in drops])
    lows = np.array([_low_readings(series, drop, line_share) for drop in drops])
    found = set()
    for drop, middle, low in zip(drops, at.tolist(), lows.tolist(), strict=True):
        near = rows[max(middle - th.CHANCE_READINGS, 0) : middle + th.CHANCE_READINGS]
        alike = int(np.sum((np.abs(at - middle) <= th.CHANCE_READINGS) & (lows >= low)))
        expected = _expected(series, near, line_share * drop.level_pct, low)
        if _at_least(alike, expected) >= th.CHANCE_LEAST / stretches:
            found.add(drop)
    return found


def _low_readings(series: GpuSeries, drop: Drop, line_share: float) -> int:
    """Return how many readings of a drop are under its line."""
    within = series.util_pct[series.between(drop.start_t_s, drop.end_t_s)]
    return int(np.count_nonzero(within < line_share * drop.level_pct))


def _expected(series: GpuSeries, rows: Indices, line_pct: float, low: int) -> float:
    """Return how many stretches with so many low readings chance makes of some readings.

    One stray between two low readings does not end a stretch (`low_stretches`).
    """
    is_low = series.util_pct[rows] < line_pct
    high = int(np.count_nonzero(~is_low[:-1]))
    if not high:
        return 0.0
    begins = np.count_nonzero(is_low[1:] & ~is_low[:-1]) / high
    goes_on = begins * (2 - begins)
    return float(high * begins * goes_on ** (low - 1))


def _at_least(count: int, expected: float) -> float:
    """Return how probable so many events or more are (Poisson)."""
    term = total = exp(-expected)
    for k in range(1, count):
        term *= expected / k
        total += term
    return 1 - total if count else 1.0
