"""What disturbed a training, and how much of an epoch, or of any other stretch of it, that was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeseries import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.intervals import Span, Spans, as_array, union, union_of_rows


@dataclass(frozen=True, eq=False)
class IntervalCover:
    """Stretches of time without overlap: `edges_s` their starts and ends in order, `covered_s` their sum up to each."""

    edges_s: Floats
    covered_s: Floats

    def holds(self, t_s: Floats) -> Bools:
        """Tell of each moment whether it is disturbed; a stretch holds its start."""
        held: Bools = np.searchsorted(self.edges_s, t_s, side="right") % 2 == 1
        return held

    def seconds_in(self, span: Span) -> float:
        """Return how many seconds of a span are disturbed."""
        if not len(self.edges_s):
            return 0.0
        before, until = np.interp(span, self.edges_s, self.covered_s)
        return float(until - before)

    def touches(self, span: Span) -> bool:
        """Tell whether a span is disturbed for longer than nobody would notice (TOUCHED_S)."""
        return self.seconds_in(span) > th.TOUCHED_S

    def seconds_in_each(self, spans: Spans) -> Floats:
        """Return how many seconds of each span are disturbed."""
        if not len(self.edges_s):
            return np.zeros(len(spans))
        before, until = np.interp(as_array(spans).T, self.edges_s, self.covered_s)
        seconds: Floats = until - before
        return seconds


def interval_cover(spans: Iterable[Span] | Floats) -> IntervalCover:
    """Return the stretches that spans, which may overlap, take together; a million are given as rows of an array."""
    apart = union_of_rows(spans) if isinstance(spans, np.ndarray) else as_array(union(list(spans)))
    lengths = np.zeros(apart.size)
    lengths[1::2] = apart[:, 1] - apart[:, 0]
    return IntervalCover(apart.ravel(), np.cumsum(lengths))
