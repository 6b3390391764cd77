"""A training of which nobody reported the end, but whose GPU was left empty long before its last epoch was due."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from gpu_report.analyse.causes.confidence import HINTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.timeline.phases import finished
from gpu_report.analyse.timeline.trainings import whole
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.model import Cause, EpochRow, Evidence, Finding
from gpu_report.wording import length

WHY = "nobody reported its end: it crashed, was stopped or was killed; its own output says which"


def log_after_training(context: Context) -> list[Finding]:
    """Report a log without callbacks that goes on after its training had left, with epochs still to come.

    The GPUs that it used must be empty from then on for longer than an epoch takes, and GONE_LEAST_S.
    """
    rows = context.run.epoch_rows
    if context.rank_groups or not rows:
        return []
    mine = [row for row in rows if row.run == rows[-1].run]
    args = next((yolo.args for yolo in context.run.yolo_runs if yolo.number == mine[0].run), {})
    asked, left = whole(args.get("epochs")), [_left(context, series) for series in context.used_series]
    known = [t_s for t_s in left if t_s is not None]
    if asked is None or finished(args, mine) or not known or len(known) < len(left):
        return []
    end_s = max(known)
    empty_s = context.run.duration_s - end_s
    if end_s < mine[-1].row_t_s or empty_s < max(th.GONE_LEAST_S, _epoch_s(mine)):
        return []
    return [_finding(context, end_s, mine[-1].epoch, asked, empty_s)]


def _left(context: Context, series: GpuSeries) -> float | None:
    """Return when a GPU was first read as empty that stayed so until the log's end, None where it did not."""
    memory = context.gpu_memory(series)
    known = np.flatnonzero(np.isfinite(memory.used_mib))
    used = np.flatnonzero(memory.used_mib[known] >= th.EMPTY_SHARE * (memory.capacity_mib or np.inf))
    if not len(used) or used[-1] + 1 >= len(known):
        return None
    return float(memory.t_s[known[used[-1] + 1]])


def _epoch_s(rows: Sequence[EpochRow]) -> float:
    """Return how far apart rows are (s, median), 0 of a single one."""
    return float(median(np.diff([row.row_t_s for row in rows]))) if len(rows) > 1 else 0.0


def _finding(context: Context, end_s: float, reached: int, asked: int, empty_s: float) -> Finding:
    found = context.finding(
        "run-ended",
        "warning",
        (end_s, end_s),
        f"The training ended after epoch {reached} of {asked}, and its GPU was empty for {length(empty_s)}",
        epoch=reached + 1,
        evidence=(Evidence("empty until the end of the log", empty_s, "s"),),
        cause=Cause("run-ended", HINTED, WHY),
    )
    return replace(found, names_epoch=True)
