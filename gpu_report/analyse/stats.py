"""Means, extremes and percentiles, each reading weighted by the time it stands for."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.analyse.track import Floats, Track
from gpu_report.model import EpochRow, EpochSummary, Gpu, GpuSummary, Stats

# Counters and codes have no mean.
AVERAGED = tuple(
    c.name
    for c in schema.GPU_QUANTITIES
    if c.name not in {"energy_j", "performance_state", "clock_event_reasons", "memory_reserved_mib"}
)
PER_EPOCH = ("gpu_util_pct", "memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz")


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
    mean = float(np.average(value, weights=weight))
    return Stats(mean, float(value[0]), float(p5), float(p50), float(p95), float(value[-1]))


def summarise_gpu(gpu: Gpu, track: Track | None) -> GpuSummary:
    """Return one GPU over the whole run; a GPU without rows has no quantities."""
    if track is None:
        return GpuSummary(gpu, 0, {}, None, "none")
    energy, source = energy_j(track, 0.0, float("inf"))
    return GpuSummary(gpu, len(track.rows), _quantities(track.rows, track.row_hold_s, AVERAGED), energy, source)


def summarise_epochs(rows: Sequence[EpochRow], tracks: Sequence[Track]) -> tuple[EpochSummary, ...]:
    """Return one summary an epoch row, in order; `attempt` counts repeats of one epoch in one YOLO run."""
    seen: dict[tuple[int, int], int] = {}
    summaries = []
    for row in rows:
        key = (row.run, row.epoch)
        seen[key] = seen.get(key, 0) + 1
        summaries.append(_summarise_epoch(row, seen[key], tracks))
    return tuple(summaries)


def energy_j(track: Track, start_s: float, end_s: float) -> tuple[float | None, Literal["counter", "power", "none"]]:
    """Return the joules of a span and how they are known.

    Power is integrated over the readings and scaled by what the energy counter says over the whole run: the
    counter is read seldom, because a read takes 3 ms (reference: nvmlDeviceGetTotalEnergyConsumption).
    """
    times = track.rows["t_s"].to_numpy(dtype=float)
    joules = track.rows["power_w"].to_numpy(dtype=float) * track.row_hold_s
    inside = (times >= start_s) & (times < end_s) & np.isfinite(joules)
    if not inside.any():
        return None, "none"
    scale = _counter_scale(track, joules)
    if scale is None:
        return float(joules[inside].sum()), "power"
    return float(joules[inside].sum()) * scale, "counter"


def loss_of(metrics: Mapping[str, float]) -> float | None:
    """Return the sum of the training losses of a row of results.csv, None where it has none."""
    parts = [value for name, value in metrics.items() if name.startswith("train/") and name.endswith("loss")]
    return sum(parts) if parts else None


def _counter_scale(track: Track, joules: Floats) -> float | None:
    """Return counter joules per integrated joule; None without a counter, or where it went back (driver reload)."""
    counter = track.rows["energy_j"].to_numpy(dtype=float)
    read = np.flatnonzero(np.isfinite(counter))
    if len(read) < 2 or (np.diff(counter[read]) < 0).any():
        return None
    integrated = float(np.nansum(joules[read[0] : read[-1]]))
    return float(counter[read[-1]] - counter[read[0]]) / integrated if integrated > 0 else None


def _quantities(rows: pd.DataFrame, hold_s: Floats, names: Sequence[str]) -> dict[str, Stats]:
    found = {name: weighted_stats(rows[name].to_numpy(dtype=float), hold_s) for name in names}
    return {name: stats for name, stats in found.items() if stats is not None}


def _summarise_epoch(row: EpochRow, attempt: int, tracks: Sequence[Track]) -> EpochSummary:
    gpus = {track.gpu: _epoch_quantities(track, row) for track in tracks}
    util = [q["gpu_util_pct"].mean for q in gpus.values() if "gpu_util_pct" in q]
    memory = [q["memory_used_mib"].max for q in gpus.values() if "memory_used_mib" in q]
    joules = [j for track in tracks if (j := energy_j(track, row.start_t_s, row.row_t_s)[0]) is not None]
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


def _epoch_quantities(track: Track, row: EpochRow) -> dict[str, Stats]:
    first, last = np.searchsorted(track.rows["t_s"].to_numpy(dtype=float), [row.start_t_s, row.row_t_s])
    return _quantities(track.rows.iloc[first:last], track.row_hold_s[first:last], PER_EPOCH)
