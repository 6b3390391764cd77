"""Values of a table's column within stretches of time."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import pandas as pd

from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import Span, indices_within
from gpu_report.median import median_of


class Columns(Mapping[str, Floats]):
    """Columns by name, each made when it is first asked for: a rule looks at a few of them.

    They are not kept where that would fill memory, and each is hardly ever asked for twice.
    """

    def __init__(self, names: Iterable[str], make: Callable[[str], Floats], *, are_kept: bool = True) -> None:
        self._names, self._make, self._are_kept = dict.fromkeys(names), make, are_kept
        self._made: dict[str, Floats] = {}

    def __getitem__(self, name: str) -> Floats:
        """Return a column; KeyError for one that there is not."""
        if name not in self._names:
            raise KeyError(name)
        if name in self._made:
            return self._made[name]
        made = self._make(name)
        if self._are_kept:
            self._made[name] = made
        return made

    def __contains__(self, name: object) -> bool:
        """Tell whether there is such a column, without making it."""
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._names)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self._names)


def column_values(frame: pd.DataFrame, name: str, spans: Iterable[Span]) -> Floats:
    """Return the known values of a column in the rows that lie in (start, end] of a span: a row tells of its past."""
    if name not in frame:
        return np.empty(0)
    t_s, column = frame["t_s"].to_numpy(dtype=float), frame[name].to_numpy(dtype=float)
    values: Floats = column[indices_within(t_s, list(spans), "right")]
    return values[np.isfinite(values)]


def column_mean(frame: pd.DataFrame, name: str, spans: Iterable[Span]) -> float | None:
    """Return the mean of a column over spans, None where nothing of it is known."""
    values = column_values(frame, name, spans)
    return float(values.mean()) if len(values) else None


def column_median(frame: pd.DataFrame, name: str, spans: Iterable[Span]) -> float | None:
    """Return the median of a column over spans, None where nothing of it is known."""
    values = column_values(frame, name, spans)
    return median_of(values) if len(values) else None
