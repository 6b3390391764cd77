"""Values of a table's column within stretches of time."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from gpu_report.analyse.spans import Span
from gpu_report.analyse.track import Floats


def values_within(frame: pd.DataFrame, name: str, spans: Iterable[Span]) -> Floats:
    """Return the known values of a column in the rows that lie in (start, end] of a span: a row tells of its past."""
    if name not in frame:
        return np.empty(0)
    t_s, column = frame["t_s"].to_numpy(dtype=float), frame[name].to_numpy(dtype=float)
    parts = [column[slice(*np.searchsorted(t_s, span, side="right"))] for span in spans]
    values = np.concatenate(parts) if parts else np.empty(0)
    return values[np.isfinite(values)]


def mean_within(frame: pd.DataFrame, name: str, spans: Iterable[Span]) -> float | None:
    """Return the mean of a column over spans, None where nothing of it is known."""
    values = values_within(frame, name, spans)
    return float(values.mean()) if len(values) else None


def median_within(frame: pd.DataFrame, name: str, spans: Iterable[Span]) -> float | None:
    """Return the median of a column over spans, None where nothing of it is known."""
    values = values_within(frame, name, spans)
    return float(np.median(values)) if len(values) else None
