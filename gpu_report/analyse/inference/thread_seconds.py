"""How long threads beside the main one stood in each stack."""

from collections.abc import Iterable, Mapping

import numpy as np

from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import ThreadStacks

Seconds = Mapping[int, float]  # by the number of a stack


def seconds_in(thread: ThreadStacks, span: Span) -> dict[int, float]:
    """Return how many seconds of a span a thread stood in each stack."""
    shared = np.clip(np.minimum(thread.end_s, span[1]) - np.maximum(thread.start_s, span[0]), 0.0, None)
    seconds = np.bincount(thread.number, shared).tolist() if len(thread.number) else []
    return {number: spent for number, spent in enumerate(seconds) if spent > 0}


def added(many: Iterable[Seconds]) -> dict[int, float]:
    """Return the seconds of many threads together."""
    return sums_by_key(pair for seconds in many for pair in seconds.items())
