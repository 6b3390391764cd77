"""What the main process did in the ends of epochs while the GPU was idle: it computed, waited for a file, or slept.

Only of a training with one process here: of several the host's reading is that of the busiest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from gpu_report.analyse.causes.confidence import LIKELY
from gpu_report.analyse.causes.thresholds import IDLE_CPU_PCT, IO_PRESSURE_PCT, MAIN_FULL_PCT, QUIET_PRESSURE_PCT
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.gpu_series import HOLD_INTERVALS, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, as_array, length_s, row_ranges
from gpu_report.median import median_of
from gpu_report.model import Advice, Cause

ROW_LATE_SHARE = 0.05  # of a row of the host: it is written a moment after the reading of the GPU
Work = Literal["computed", "waited for storage", "slept"]


@dataclass(frozen=True)
class WorkAtEnds:
    """What the main process did in most of the ends of epochs: its CPU (% of a core), and for what share (0 to 1)."""

    work: Work
    main_cpu_pct: float
    share: float


def work_at_ends(context: Context, training: Training, ends: Sequence[Span]) -> WorkAtEnds | None:
    """Return what the main process did in ends of epochs with an idle GPU; None where nothing says it, or no one thing.

    The rows of the host that lie in them as a whole tell it.
    """
    idle = _idle_rows(context, training, ends)
    share, host = length_s(idle) / (length_s(list(ends)) or 1.0), context.run.host
    main = column_mean(host, "main_cpu_pct", idle)
    if main is None or share < MOSTLY_SHARE or training.ranks_here > 1:
        return None
    if main >= MAIN_FULL_PCT:
        return WorkAtEnds("computed", main, share)
    return _waited(context, idle, main, share)


def _waited(context: Context, idle: Sequence[Span], main: float, share: float) -> WorkAtEnds | None:
    """Return for what a main process waited that hardly used its core; None where that may be several things.

    For which file it waited, where the kernel said that, another rule says (`held-epoch-end`).
    """
    pressure = column_mean(context.run.host, "io_pressure_pct", idle)
    if (pressure or 0.0) >= IO_PRESSURE_PCT:
        return WorkAtEnds("waited for storage", main, share)
    known = pressure is not None or any(each.role == "main" for each in context.run.waits)
    slept = known and main < IDLE_CPU_PCT and (pressure or 0.0) < QUIET_PRESSURE_PCT
    return WorkAtEnds("slept", main, share) if slept else None


def _idle_rows(context: Context, training: Training, ends: Sequence[Span]) -> list[Span]:
    """Return the rows of the host (each from the one before) that lie in ends of epochs and in which no GPU worked."""
    t_s = context.run.host["t_s"].to_numpy(dtype=float)
    most_s = HOLD_INTERVALS * median_of(np.diff(t_s)) if len(t_s) > 1 else 0.0
    first, last = row_ranges(t_s, list(ends)) if len(ends) else ((), ())
    inside = [t_s[a:b].tolist() for a, b in zip(first, last, strict=True)]
    spans = [row for rows in inside for row in pairwise(rows) if row[1] - row[0] <= most_s]
    mine = [series for series in context.series if series.gpu in training.gpus]
    works = [_works(series, spans) for series in mine] if spans else []
    return [span for at, span in enumerate(spans) if works and not any(each[at] for each in works)]


def _works(series: GpuSeries, spans: Sequence[Span]) -> Sequence[bool]:
    """Tell of each row whether a GPU worked in it; one that was not read may have.

    The reading that a row begins with is taken with the row before it, a moment sooner or later.
    """
    spans_s = as_array(list(spans))
    means = series.mean_util_of_each(spans_s - ROW_LATE_SHARE * (spans_s[:, 1:] - spans_s[:, :1]))
    return [not pct < th.IDLE_AT_ENDS_PCT for pct in means.tolist()]


def cause_at_ends(work: WorkAtEnds) -> Cause:
    """Return the cause of a long time after validations, by what the main process did in it."""
    cpu = f"{work.main_cpu_pct:.0f} % of a core"
    if work.work == "computed":
        return Cause("main-process", LIKELY, f"the main process computed there ({cpu}), with the GPU idle")
    if work.work == "slept":
        why = f"the main process slept there ({cpu}, no disk), most likely waiting for the network"
        return Cause("trainer-blocked", LIKELY, why)
    return Cause("checkpoint", LIKELY, f"the main process waited for storage there ({cpu})")


def saving_advice(work: WorkAtEnds | None) -> Advice:
    """Return what to do about a long time after validations, in which weights are saved and callbacks run."""
    if work is None:
        short = "Find what takes long after each validation"
        text = f"{short}: a slow disk (`project` says where weights go), or a callback that uploads or evaluates"
    elif work.work == "slept":
        short = "Run slow callbacks after validations in a background thread, or in every 10th epoch only"
        text = f"{short}: most likely one (yours, or an experiment tracker's) waits for the network. No disk was busy"
    elif work.work == "computed":
        short = "Compute less after each validation"
        text = f"{short}: a callback evaluates, draws or packs there on one core. Do it every 10th epoch, or at the end"
    else:
        short = "Save weights on a faster disk"
        text = f"{short}: set `project` to a folder on it, or save less in callbacks"
    return Advice(text, short=short)
