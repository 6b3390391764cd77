"""Where readings are low for a while: runs of them, joined across strays and never across what was not seen."""

import numpy as np

from gpu_report.analyse.timeseries import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries
from gpu_report.analyse.timeseries.intervals import Indices

Pairs = list[tuple[int, int]]


def low_stretches(series: GpuSeries, low: Bools, usable: Bools, stray_s: float = th.STRAY_S) -> Pairs:
    """Return [first, last) index pairs of runs of `low`, joined across strays of less than `stray_s`.

    A gap in the readings, or one that is not usable, ends a stretch: nothing is said of what was not seen. A single
    reading may always be a stray, however far apart they are taken.
    """
    begins, ends = stretch_bounds(series, low, usable, stray_s)
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def stretch_bounds(series: GpuSeries, low: Bools, usable: Bools, stray_s: float) -> tuple[Indices, Indices]:
    """Return where the stretches begin and end, as `low_stretches` pairs them."""
    stray_s = longest_stray_s(series, stray_s)
    after_gap = series.after_gap
    before_gap = np.append(after_gap[1:], True)
    firsts = np.flatnonzero(low & (after_gap | ~np.concatenate([[False], low[:-1]])))
    lasts = np.flatnonzero(low & (before_gap | ~np.append(low[1:], False)))  # inclusive
    ends_s = series.t_s[lasts] + series.weight_s[lasts]
    stray = series.t_s[firsts[1:]] - ends_s[:-1] < stray_s
    breaks = np.flatnonzero(after_gap | ~usable)  # between one run and the next there is none
    stray &= np.equal(*(np.searchsorted(breaks, edges, side="right") for edges in (lasts[:-1], firsts[1:])))
    begins = firsts[np.concatenate([[True], ~stray])] if len(firsts) else firsts
    ends = lasts[np.append(~stray, True)] if len(lasts) else lasts
    return begins, ends + 1


def longest_stray_s(series: GpuSeries, stray_s: float) -> float:
    """Return how long strays may be: one reading, however far apart they are taken, unless there may be none."""
    return max(stray_s, (1 + th.READING_SLACK) * series.interval_s) if stray_s else 0.0
