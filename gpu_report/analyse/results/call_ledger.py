"""Where a GPU's time went in a run that only called models: work, parts of calls, and what lay between them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference.call_time import part_seconds
from gpu_report.analyse.inference.served import served_models
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import GapKind, LedgerRow, ServedModel

# Rows of what is left of a part of calls beside the GPU's work, and of what lies between calls.
PART_ROWS = {"preprocess": "preprocessing", "inference": "small-calls", "postprocess": "postprocessing"}
PART_ROWS["other"] = "postprocessing"
GAP_ROWS: Mapping[GapKind, str] = {
    "own code": "own-code",
    "decoding": "decoding",
    "network": "network",
    "receiving from a process": "receiving",
    "loading the model": "model-loading",
    "waiting for calls": "idle",
}


def call_shares(context: Context, series: GpuSeries) -> dict[str, Floats]:
    """Return the share of each reading's time (0 to 1) by row of the ledger; they add up to 1.

    The GPU's work lies in inference as far as that goes. What comes before the first call after warming up is start-up,
    what comes after the last one idle.
    """
    mine = [each for each in context.cached(served_models) if each.calls.gpu == series.gpu]
    work = series.util_pct.astype(float) / 100
    if not mine:
        return {"work": work, "idle": 1.0 - work}
    begin, end = min(each.start_s for each in mine), max(each.end_s for each in mine)
    parts = part_seconds([each.steady_calls for each in mine], series.t_s, series.ends_of(slice(None)))
    length_s = np.maximum(series.weight_s[:], 1e-9)
    called = sum(parts.values())
    crowd = np.maximum(called / length_s, 1.0)  # calls of several threads or models overlap
    shares = {name: seconds / length_s / crowd for name, seconds in parts.items()}
    between = np.clip(1.0 - sum(shares.values()), 0.0, 1.0)
    idle = _without_work(shares, between, work)
    before, after = series.t_s < begin, series.t_s >= end
    return _rows(idle, work, before, after, _gap_shares(mine))


def _without_work(shares: Mapping[str, Floats], between: Floats, work: Floats) -> dict[str, Floats]:
    """Return what is left of each part, and of `between`, without the GPU's work: of inference first."""
    left = work
    idle: dict[str, Floats] = {}
    for name in ("inference", "other", "postprocess", "preprocess"):
        taken = np.minimum(left, shares[name])
        idle[name], left = shares[name] - taken, left - taken
    idle["between"] = np.maximum(between - left, 0.0)
    return idle


def _rows(
    idle: Mapping[str, Floats], work: Floats, before: Bools, after: Bools, gaps: Mapping[str, float]
) -> dict[str, Floats]:
    inside = ~(before | after)
    rows = {"work": work, "startup": np.where(before, 1.0 - work, 0.0), "idle": np.where(after, 1.0 - work, 0.0)}
    for name, row in PART_ROWS.items():
        rows[row] = rows.get(row, np.zeros(len(work))) + np.where(inside, idle[name], 0.0)
    for row, share in gaps.items():
        rows[row] = rows.get(row, np.zeros(len(work))) + np.where(inside, share * idle["between"], 0.0)
    return rows


def _gap_shares(mine: Sequence[ServedModel]) -> dict[str, float]:
    """Return how the time between calls is shared out, by row; what nobody knows is idle."""
    parts = [part for each in mine for part in each.gap_parts]
    total = sum(part.seconds for part in parts)
    return sums_by_key((GAP_ROWS[part.kind], part.seconds / total) for part in parts) or {"idle": 1.0}


def with_lines(context: Context, rows: Sequence[LedgerRow]) -> tuple[LedgerRow, ...]:
    """Return the ledger with the lines of code that the time between calls went to."""
    found = [part for each in context.cached(served_models) for part in each.gap_parts if part.where is not None]
    lines = {GAP_ROWS[part.kind]: (part.where,) for part in found if part.where and part.kind != "waiting for calls"}
    return tuple(replace(row, where=lines.get(row.name, ())) for row in rows)
