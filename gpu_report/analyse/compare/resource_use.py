"""What training costs in work, however long it takes: seconds of the host's cores and of the GPUs' SMs.

The same training costs as much each time, unless the cores or the clock are slower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpu_report.analyse.compare.metrics import GPU_WORK, MAIN_CPU, WORKERS_CPU
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries, is_well_sampled
from gpu_report.analyse.timeseries.intervals import Span

HOST_COLUMNS = {MAIN_CPU: "main_cpu_pct", WORKERS_CPU: "workers_cpu_pct"}
SM_COLUMN = "sm_active_pct"


@dataclass(frozen=True, eq=False)
class RunningTotal:
    """Seconds of work done, and of time known, by each moment `t_s`; between two moments both grow evenly."""

    t_s: Floats
    work_s: Floats
    known_s: Floats

    def within(self, span: Span) -> float | None:
        """Return the seconds of work in a span, None where less than MEASURED_SHARE of it is known."""
        length = span[1] - span[0]
        known, work = (float(np.diff(np.interp(span, self.t_s, total))[0]) for total in (self.known_s, self.work_s))
        if length <= 0 or not is_well_sampled(known, length):
            return None
        return work * length / known


@dataclass(frozen=True, eq=False)
class Work:
    """The running totals of a run: of the host by metric, and of the SMs of each used GPU."""

    host: Mapping[str, RunningTotal]
    sms: tuple[RunningTotal, ...]

    def within(self, span: Span) -> dict[str, float | None]:
        """Return each metric of a span: seconds, None where not known (of the GPUs together: of any of them)."""
        sms = [total.within(span) for total in self.sms]
        known = [seconds for seconds in sms if seconds is not None]
        together = sum(known) if sms and len(known) == len(sms) else None
        return {**{name: total.within(span) for name, total in self.host.items()}, GPU_WORK: together}


def work_of(host: pd.DataFrame, used: Sequence[GpuSeries]) -> Work:
    """Return the running totals of a host's rows and of the used GPUs."""
    return Work(
        {name: _total(host, column) for name, column in HOST_COLUMNS.items() if column in host and len(host)},
        tuple(
            _total(series.samples, SM_COLUMN) for series in used if SM_COLUMN in series.samples and len(series.samples)
        ),
    )


def _total(rows: pd.DataFrame, column: str) -> RunningTotal:
    """Return the total of a column in percent (of one core, of the SMs), each row the mean since the row before."""
    times, percent = (rows[name].to_numpy(dtype=float) for name in ("t_s", column))
    lengths, known = np.diff(times, prepend=times[0]), np.isfinite(percent)
    work = np.where(known, percent, 0.0) / 100 * lengths
    return RunningTotal(times, np.cumsum(work), np.cumsum(known * lengths))
