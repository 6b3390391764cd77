"""Means, extremes and percentiles, each reading weighted by the time it stands for."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.analyse.energy import Energy
from gpu_report.analyse.ranking import ranking
from gpu_report.analyse.track import Floats, Track
from gpu_report.model import Gpu, GpuSummary, Stats

# Counters and codes have no mean.
NOT_AVERAGED = frozenset({"energy_j", "performance_state", "clock_event_reasons", "memory_reserved_mib"})
COUNTERS = frozenset({"power_cap_s", "sw_thermal_slowdown_s", "hw_thermal_slowdown_s", "power_brake_s"})
SHORT = 8192
AVERAGED = tuple(c.name for c in schema.GPU_QUANTITIES if c.name not in NOT_AVERAGED | COUNTERS)


def weighted_stats(values: Floats, weights: Floats) -> Stats | None:
    """Return the statistics of the known values, None where there is none.

    Percentiles are of weighted ranks, in which a value that stands for no time has no place: it would be a step.
    """
    known = np.isfinite(values)
    if not known.any():
        return None
    value, weight = values[known], weights[known]
    if weight.sum() <= 0:
        weight = np.ones(len(value))
    order = ranking(value)
    value, weight = value[order], weight[order]
    some = weight > 0
    ranks = (np.cumsum(weight[some]) - weight[some] / 2) / weight.sum()
    p5, p50, p95 = np.interp([0.05, 0.50, 0.95], ranks, value[some])
    mean = weighted_sum(value, weight) / float(weight.sum())
    return Stats(mean, float(value[0]), float(p5), float(p50), float(p95), float(value[-1]))


def weighted_sum(values: Floats, weights: Floats) -> float:
    """Return the scalar product, in pieces so short that BLAS starts no threads: on busy cores they wait for long."""
    pieces = range(0, len(values), SHORT)
    return sum(float(values[at : at + SHORT] @ weights[at : at + SHORT]) for at in pieces)


def summarise_gpu(gpu: Gpu, track: Track | None, curve: Energy | None, *, used: bool) -> GpuSummary:
    """Return one GPU over the whole run; a GPU without rows has no quantities."""
    if track is None or curve is None:
        return GpuSummary(gpu, 0, {}, None, "none", used=False)
    quantities = {**_quantities(track.rows, track.row_hold_s, AVERAGED), **utilisation(track, 0.0, float("inf"))}
    return GpuSummary(gpu, len(track.rows), quantities, curve.between(0.0, float("inf")), curve.source, used=used)


def _quantities(rows: pd.DataFrame, hold_s: Floats, names: Sequence[str]) -> dict[str, Stats]:
    found = {name: weighted_stats(rows[name].to_numpy(dtype=float), hold_s) for name in names}
    return {name: stats for name, stats in found.items() if stats is not None}


def utilisation(track: Track, start_s: float, end_s: float) -> dict[str, Stats]:
    """Return utilisation by its finest readings, which the rows of the samples table are not."""
    part = track.between(start_s, end_s)
    stats = weighted_stats(track.util_pct[part], track.hold_s[part])
    return {"gpu_util_pct": stats} if stats is not None else {}
