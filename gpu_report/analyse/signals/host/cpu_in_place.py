"""The CPU that a process used while it stood in one place, of readings in which it stood in others, too."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.signal_table import SignalTable
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.interval_cover import IntervalCover
from gpu_report.analyse.timeseries.intervals import Span, as_array, mask_in_any

MAIN_CPU = "main_cpu_pct"
LEAST_ROWS = 2  # two unknowns
EPSILON = 1e-9


def cpu_in_place(host: SignalTable, spans: Sequence[Span], there: IntervalCover) -> float | None:
    """Return the main process's CPU (% of a core) while it was there, from the host's readings in some spans.

    A reading is the mean over a row; readings that hold more and less of the place tell the CPU in it from that beside
    it, by least squares. Where they cannot, since all hold about as much of it or the standard error is over
    THERE_ERROR_PCT, it is what the place can have taken at most, had the rest taken none; None where that is
    COMPUTES_CPU_PCT or more, which tells nothing.
    """
    column = host.columns.get(MAIN_CPU)
    if column is None or len(host.t_s) < LEAST_ROWS:
        return None
    starts = np.concatenate([[np.nan], host.t_s[:-1]])
    rows = np.flatnonzero(mask_in_any(host.t_s, as_array(spans), "right") & np.isfinite(column) & np.isfinite(starts))
    length = host.t_s[rows] - starts[rows]
    inside = there.seconds_in_each(np.column_stack([starts[rows], host.t_s[rows]]))
    share = np.clip(inside / length, 0.0, 1.0)
    told = _fitted_cpu_pct(share, column[rows], length)
    at_most = float((length * column[rows]).sum()) / max(float(inside.sum()), EPSILON)
    return told if told is not None or at_most >= th.COMPUTES_CPU_PCT or len(rows) <= LEAST_ROWS else at_most


def _fitted_cpu_pct(share: Floats, cpu_pct: Floats, weight_s: Floats) -> float | None:
    """Return the CPU of a place of which each reading holds a share (0 to 1), None where that cannot be told.

    Weighted least squares of `cpu = in * share + beside * (1 - share)`, `beside` eliminated.
    """
    beside = 1 - share
    both, rest = float((weight_s * share * beside).sum()), float((weight_s * beside**2).sum())
    mixed = both / rest if rest > EPSILON else 0.0
    own = share - mixed * beside  # what of the place no other column can stand for
    free = float((weight_s * own**2).sum())
    if len(share) <= LEAST_ROWS or free < th.THERE_LEAST_S:
        return None
    inside = float((weight_s * own * cpu_pct).sum()) / free
    others = float((weight_s * beside * (cpu_pct - inside * share)).sum()) / rest if rest > EPSILON else 0.0
    left = cpu_pct - inside * share - others * beside
    variance = float((weight_s * left**2).sum() / weight_s.sum()) * len(share) / (len(share) - LEAST_ROWS)
    error = (variance * float(np.mean(weight_s)) / free) ** 0.5
    return max(inside, 0.0) if error <= th.THERE_ERROR_PCT else None
