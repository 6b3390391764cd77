"""Whether what a program does between two calls takes longer from call to call."""

from typing import NamedTuple

import numpy as np

from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.timeseries.growth_fit import fit_growth
from gpu_report.model import GapPart, ServedModel

POINTS = 60  # medians over all calls: enough for a line, few enough for all pairs of corners


class GapGrowth(NamedTuple):
    """How long it took between two calls at first and at last, in milliseconds."""

    first_ms: float
    last_ms: float


def growth_of(served: ServedModel, part: GapPart) -> GapGrowth | None:
    """Return how the gaps that a part takes most of grew, None where they did not or did not go on to the end."""
    gap_ms = served.steady_calls.gap_ms
    gap_ms = gap_ms[np.isfinite(gap_ms)]
    if part.seconds < th.MOST_OF_GAPS * served.gap_s or len(gap_ms) < POINTS:
        return None
    y = np.array([float(np.median(block)) for block in np.array_split(gap_ms, POINTS)])
    fit = fit_growth(np.arange(len(y), dtype=float), y)
    if fit is None or fit.fit < th.GAPS_FIT or fit.last < len(y) - len(y) // 3:
        return None
    before = max(fit.before, 0.0)
    return GapGrowth(before, before + fit.rise) if fit.rise >= th.GAPS_GROW * before else None
