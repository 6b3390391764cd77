"""Which dips of utilisation begin no drop, told of all at once: a noisy GPU has ten thousand of them an hour."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries, running_total
from gpu_report.analyse.timeseries.intervals import Indices
from gpu_report.analyse.timeseries.low_stretches import stretch_bounds
from gpu_report.analyse.timeseries.thresholds import STRAY_S

# To look at all dips under one line goes over every reading: it takes as long as to follow one dip in so many, and
# these besides.
READINGS_A_DIP: Final = 2000
FEW_DIPS: Final = 15
NEVER: Final = np.iinfo(np.intp).max
ROUNDING: Final = 1e-6  # of a share: sums are not added up in the order in which a single drop's are


@dataclass(frozen=True)
class Dips:
    """Readings that are under their line, and their levels, in order: lists, for they are gone through one by one.

    `ends` are where the dip that each begins ends. It is no drop where the search for it goes on from `none_from` or
    later, since nothing before the reading is under its line from there on: NEVER where that is not known.
    """

    rows: list[int]
    levels: list[float]
    ends: list[int]
    none_from: list[int]


def ends_of_dips(
    series: GpuSeries, usable: Bools, rows: Indices, lines: Floats, least_s: float
) -> tuple[Indices, Indices]:
    """Return `ends` and `none_from` of the dips that begin at `rows`, each under its line (%), of a series.

    Drops last for `least_s` or more.
    """
    ends, none_from = np.zeros_like(rows), np.full_like(rows, NEVER)
    first_ones = np.diff(rows, prepend=-2) > 1
    for line, dips in zip(*np.unique(lines[first_ones], return_counts=True), strict=True):
        if dips > FEW_DIPS + len(series.t_s) / READINGS_A_DIP:
            mine = lines == line
            ends[mine], none_from[mine] = _under(series, usable, rows[mine], float(line), least_s)
    return ends, none_from


def _under(series: GpuSeries, usable: Bools, rows: Indices, line: float, least_s: float) -> tuple[Indices, Indices]:
    """Return `ends` and `none_from` of the dips under one line that begin at some readings.

    One is no drop where it is too short, and with strays is so, too, or has too many of them.
    """
    low = usable & (series.util_pct < line)
    begins, ends = stretch_bounds(series, low, usable, 0.0)
    dip = np.searchsorted(ends, rows, side="right")
    since = np.where(begins[dip] < rows, rows, np.append(0, ends)[dip])
    joined = stretch_bounds(series, low, usable, STRAY_S)[1]
    until = joined[np.searchsorted(joined, rows, side="right")]
    seconds = series.weight_s[:]
    whole_s, over_s = (total[until] - total[rows] for total in map(running_total, (seconds, seconds * ~low)))
    no_drop = are_short(series, rows, until, least_s) | (over_s > (th.STRAY_SHARE + ROUNDING) * whole_s)
    no_drop &= are_short(series, rows, ends[dip], least_s)
    return ends[dip], np.where(no_drop, since, NEVER)


def are_short(series: GpuSeries, begins: Indices, ends: Indices, least_s: float) -> Bools:
    """Return which stretches [begins, ends) of readings are too few or too short to last for `least_s`."""
    too_few: Bools = ends - begins < th.LOW_READINGS
    return too_few | (series.ends_of(ends - 1) - series.t_s[begins] < least_s)
