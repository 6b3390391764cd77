"""Means, extremes and percentiles, each reading weighted by the time it stands for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.analyse.energy import Energy
from gpu_report.analyse.track import Floats, Track
from gpu_report.model import EpochRow, EpochSummary, Gpu, GpuSummary, Stats

# Counters and codes have no mean.
NOT_AVERAGED = frozenset({"energy_j", "performance_state", "clock_event_reasons", "memory_reserved_mib"})
COUNTERS = frozenset({"power_cap_s", "sw_thermal_slowdown_s", "hw_thermal_slowdown_s", "power_brake_s"})
AVERAGED = tuple(c.name for c in schema.GPU_QUANTITIES if c.name not in NOT_AVERAGED | COUNTERS)
PER_EPOCH = ("memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz")


def weighted_stats(values: Floats, weights: Floats) -> Stats | None:
    """Return the statistics of the known values, None where there is none. Percentiles are of weighted ranks."""
    known = np.isfinite(values)
    if not known.any():
        return None
    value, weight = values[known], weights[known]
    if weight.sum() <= 0:
        weight = np.ones(len(value))
    order = np.argsort(value, kind="stable")
    value, weight = value[order], weight[order]
    ranks = (np.cumsum(weight) - weight / 2) / weight.sum()
    p5, p50, p95 = np.interp([0.05, 0.50, 0.95], ranks, value)
    mean = float(value @ weight / weight.sum())
    return Stats(mean, float(value[0]), float(p5), float(p50), float(p95), float(value[-1]))


def summarise_gpu(gpu: Gpu, track: Track | None, curve: Energy | None, *, used: bool) -> GpuSummary:
    """Return one GPU over the whole run; a GPU without rows has no quantities."""
    if track is None or curve is None:
        return GpuSummary(gpu, 0, {}, None, "none", used=False)
    quantities = {**_quantities(track.rows, track.row_hold_s, AVERAGED), **_utilisation(track, 0.0, float("inf"))}
    return GpuSummary(gpu, len(track.rows), quantities, curve.between(0.0, float("inf")), curve.source, used=used)


@dataclass(frozen=True, eq=False)
class _Table:
    """One GPU's rows as plain arrays, since a long run has thousands of epochs to cut out of them."""

    track: Track
    t_s: Floats
    columns: Mapping[str, Floats]
    energy: Energy


def summarise_epochs(
    rows: Sequence[EpochRow], tracks: Sequence[Track], curves: Sequence[Energy], used_gpus: frozenset[int]
) -> tuple[EpochSummary, ...]:
    """Return one summary an epoch row, in order; `attempt` counts repeats of one epoch in one YOLO run.

    Utilisation is the mean over the GPUs that were used, energy the sum over all.
    """
    tables = [_table(track, curve) for track, curve in zip(tracks, curves, strict=True)]
    seen: dict[tuple[int, int], int] = {}
    summaries = []
    for row in rows:
        key = (row.run, row.epoch)
        seen[key] = seen.get(key, 0) + 1
        summaries.append(_summarise_epoch(row, seen[key], tables, used_gpus))
    return tuple(summaries)


def _table(track: Track, curve: Energy) -> _Table:
    columns = {name: track.rows[name].to_numpy(dtype=float) for name in PER_EPOCH}
    return _Table(track, track.rows["t_s"].to_numpy(dtype=float), columns, curve)


def loss_of(metrics: Mapping[str, float]) -> float | None:
    """Return the sum of the training losses of a row of results.csv, None where it has none."""
    parts = [value for name, value in metrics.items() if name.startswith("train/") and name.endswith("loss")]
    return sum(parts) if parts else None


def _quantities(rows: pd.DataFrame, hold_s: Floats, names: Sequence[str]) -> dict[str, Stats]:
    found = {name: weighted_stats(rows[name].to_numpy(dtype=float), hold_s) for name in names}
    return {name: stats for name, stats in found.items() if stats is not None}


def _summarise_epoch(row: EpochRow, attempt: int, tables: Sequence[_Table], used_gpus: frozenset[int]) -> EpochSummary:
    gpus = {table.track.gpu: _epoch_quantities(table, row) for table in tables}
    util = [q["gpu_util_pct"].mean for gpu, q in gpus.items() if "gpu_util_pct" in q and gpu in used_gpus]
    memory = [q["memory_used_mib"].max for q in gpus.values() if "memory_used_mib" in q]
    joules = [j for table in tables if (j := table.energy.between(row.start_t_s, row.row_t_s)) is not None]
    return EpochSummary(
        run=row.run,
        epoch=row.epoch,
        attempt=attempt,
        start_t_s=row.start_t_s,
        end_t_s=row.row_t_s,
        gpu_util_pct=float(np.mean(util)) if util else None,
        memory_peak_mib=max(memory, default=None),
        energy_j=sum(joules) if joules else None,
        gpus=gpus,
        loss=loss_of(row.metrics),
        lr=row.metrics.get("lr/pg0"),
    )


def _epoch_quantities(table: _Table, row: EpochRow) -> dict[str, Stats]:
    first, last = np.searchsorted(table.t_s, [row.start_t_s, row.row_t_s])
    part = slice(int(first), int(last))
    hold = table.track.row_hold_s[part]
    found = {name: weighted_stats(column[part], hold) for name, column in table.columns.items()}
    stats = {name: value for name, value in found.items() if value is not None}
    return {**stats, **_utilisation(table.track, row.start_t_s, row.row_t_s)}


def _utilisation(track: Track, start_s: float, end_s: float) -> dict[str, Stats]:
    """Return utilisation by its finest readings, which the rows of the samples table are not."""
    part = track.between(start_s, end_s)
    stats = weighted_stats(track.util_pct[part], track.hold_s[part])
    return {"gpu_util_pct": stats} if stats is not None else {}
