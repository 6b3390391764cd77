"""Columns of readings at common times: what each was within an interval, and what it is in the steady state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from gpu_report.analyse.timeseries.columns import Columns
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats
from gpu_report.analyse.timeseries.intervals import Spans, mask_in_any
from gpu_report.median import enough_of, median_of

LARGEST_MASK = 2.0**53  # what a file can say exactly; more is no bitmask
ROWS_BACK = 1024  # of a column, looked through at once


@dataclass(frozen=True, eq=False)
class SignalTable:
    """Columns sampled at common times, each row the mean since the row before; `steady` marks the steady state.

    What is typical is worked out of the rows of `against`, None for its own.
    """

    t_s: Floats
    columns: Mapping[str, Floats]
    steady: Bools
    against: SignalTable | None = None

    def within(self, name: str, start_t_s: float, end_t_s: float) -> float | None:
        """Return the mean of a column over the rows that lie in (start, end], None where there is none."""
        values = self._part(name, start_t_s, end_t_s)
        return float(values.mean()) if len(values) else None

    def share_with(self, name: str, bits: int, start_t_s: float, end_t_s: float) -> float | None:
        """Return the share of those rows in which a bitmask has any of these bits, None where there is none."""
        values = self._part(name, start_t_s, end_t_s)
        values = values[values < LARGEST_MASK]
        return float(((values.astype(np.int64) & bits) > 0).mean()) if len(values) else None

    def share_above(self, name: str, line: float, start_t_s: float, end_t_s: float) -> float | None:
        """Return the share (0 to 1) of rows in (start, end] at a line or above, None where there are none."""
        values = self._part(name, start_t_s, end_t_s)
        return float((values >= line).mean()) if len(values) else None

    def ceiling(self, names: Sequence[str], near: float, start_t_s: float, end_t_s: float) -> tuple[float, float]:
        """Return what the sum of columns hardly exceeds in (start, end], and in what share of rows it is near that.

        It is the upper quartile, and `near` a share of it. NaN and 0 where not all of the columns were recorded.
        """
        columns = [self.columns[name] for name in names if name in self.columns]
        first, last = np.searchsorted(self.t_s, [start_t_s, end_t_s], side="right")
        values = sum((column[first:last].astype(np.float64) for column in columns), np.zeros(last - first))
        values = values[np.isfinite(values)]
        if len(columns) < len(names) or not len(values):
            return float("nan"), 0.0
        top = float(np.quantile(values, 0.75))
        return top, float((np.abs(values - top) <= near * top).mean())

    def typical(self, name: str) -> float | None:
        """Return the median of a column in the steady state, None where there is none."""
        if self.against is not None:
            return self.against.typical(name)
        if name not in self._typical:
            self._typical[name] = self._steady_median(name)
        return self._typical[name]

    @cached_property
    def _typical(self) -> dict[str, float | None]:
        """Return what has been worked out already: a long run has thousands of signals, all of one series."""
        return {}

    def _steady_median(self, name: str) -> float | None:
        column = self.columns.get(name)
        if column is None:
            return None
        values = enough_of(column[self.steady & np.isfinite(column)]).astype(np.float64)
        return median_of(values) if len(values) else None

    def with_steady(self, steady: Spans) -> SignalTable:
        """Return the same columns, not copied, with the spans of the steady state marked."""
        return replace(self, steady=mask_in_any(self.t_s, steady, "right"))

    def only_steady(self) -> SignalTable:
        """Return the rows of the steady state alone, with nothing that is typical beside them."""
        return self._steady_rows

    @cached_property
    def _steady_rows(self) -> SignalTable:
        """Return them: the host's, which are the same for all GPUs, are to be there once."""
        return self._only(self.steady, np.zeros(int(self.steady.sum()), dtype=bool))

    def with_column(self, name: str, values: Floats) -> SignalTable:
        """Return the same with one column more, of a value a row."""
        names = [*self.columns, name]
        return replace(self, columns=Columns(names, lambda each: values if each == name else self.columns[each]))

    def where_below(self, name: str, line: float) -> SignalTable:
        """Return the rows in which a column was below a line; what is typical is that of the others."""
        below = self.columns[name] < line
        others = np.isfinite(self.columns[name]) & ~below
        every = np.ones(int(others.sum()), dtype=bool)
        return replace(self._only(below, np.zeros(int(below.sum()), dtype=bool)), against=self._only(others, every))

    def _only(self, rows: Bools, steady: Bools) -> SignalTable:
        # of a week of eight GPUs, those that are looked at take 0.2 GB; they hold no table, which may keep this one
        whole = self.columns
        columns = Columns(whole, lambda name: whole[name][rows], are_kept=False)
        return SignalTable(self.t_s[rows], columns, steady)

    def below_since(self, name: str, line: float, until_t_s: float) -> float | None:
        """Return since when a column has been below a line without a break, up to a moment; None where it is not."""
        column = self.columns.get(name)
        last = int(np.searchsorted(self.t_s, until_t_s, side="right")) - 1
        if column is None or last < 0 or not column[last] < line:
            return None
        first = last
        while first > 0 and column[first - 1] < line:  # a part at a time, for what is looked for is near
            part = column[max(first - ROWS_BACK, 0) : first]
            above = np.flatnonzero(~(part < line))
            first -= len(part) - (int(above[-1]) + 1 if len(above) else 0)
        return float(self.t_s[max(first - 1, 0)])

    def _part(self, name: str, start_t_s: float, end_t_s: float) -> Floats:
        column = self.columns.get(name)
        if column is None:
            return np.empty(0)
        first, last = np.searchsorted(self.t_s, [start_t_s, end_t_s], side="right")
        part = column[first:last]
        known = np.isfinite(part)
        return (part if np.count_nonzero(known) == len(part) else part[known]).astype(np.float64, copy=False)


NO_SIGNALS = SignalTable(np.empty(0), {}, np.zeros(0, dtype=bool))


def signal_table(frame: pd.DataFrame, names: Sequence[str]) -> SignalTable:
    """Return columns of a table as a series in which no steady state is marked."""
    t_s = frame["t_s"].to_numpy(dtype=float)
    # as they are kept, not copied: those of a week of eight GPUs take as much again in 64 bits
    columns = Columns([name for name in names if name in frame], lambda name: frame[name].to_numpy())
    return SignalTable(t_s, columns, np.zeros(len(t_s), dtype=bool))
