"""Means, extremes and percentiles, each reading weighted by the time it stands for."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.analyse import thresholds as th
from gpu_report.analyse.timeseries.energy import Energy
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.sorting import as_whole, ranking
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
    value, weight = _where(np.isfinite(values), values, weights)
    if not len(value):
        return None
    if weight.sum() <= 0:
        weight = np.ones(len(value))
    total = float(weight.sum())
    ranks, at_ranks = _ranked(*_where(weight > 0, value, weight))
    p5, p50, p95 = np.interp([0.05, 0.50, 0.95], ranks / total, at_ranks)
    mean = weighted_sum(value, weight) / total
    return Stats(mean, float(value.min()), float(p5), float(p50), float(p95), float(value.max()))


def _where(some: Bools, *arrays: Floats) -> tuple[Floats, ...]:
    return arrays if some.all() else tuple(array[some] for array in arrays)


def _ranked(value: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return weighted ranks from the lowest value on, from 0 to the sum of weights, and the values at them.

    Of readings with the same value the first and the last are enough: nothing changes between them. So few values
    are counted, not sorted.
    """
    whole = as_whole(value)
    if whole is None or int(whole.max()) > len(whole):
        order = ranking(value)
        return np.cumsum(weight[order]) - weight[order] / 2, value[order]
    of_each, row_ranges = np.bincount(whole, weight), np.arange(len(whole))
    first, last = np.zeros_like(of_each, dtype=np.intp), np.zeros_like(of_each, dtype=np.intp)
    first[whole[::-1]], last[whole] = row_ranges[::-1], row_ranges  # the last one written stays
    so_far, there = np.cumsum(of_each), of_each > 0
    ranks = np.column_stack([so_far - of_each + weight[first] / 2, so_far - weight[last] / 2])
    return ranks[there].ravel(), np.repeat(value[last[there]], 2)


def weighted_sum(values: Floats, weights: Floats) -> float:
    """Return the scalar product, in pieces so short that BLAS starts no threads: on busy cores they wait for long."""
    pieces = range(0, len(values), SHORT)
    return sum(float(values[at : at + SHORT] @ weights[at : at + SHORT]) for at in pieces)


def summarise_gpu(gpu: Gpu, read: tuple[GpuSeries, Energy] | None, duration_s: float, *, used: bool) -> GpuSummary:
    """Return one GPU over the whole run; a GPU without rows has no quantities.

    Its energy is a sum, which would be low by all that was not measured: below WELL_COVERED it is not known.
    """
    if read is None:
        return GpuSummary(gpu, 0, {}, None, "none", used=False)
    series, curve = read
    quantities = {
        **_quantities(series.samples, series.sample_weight_s, AVERAGED),
        **utilisation(series, 0.0, float("inf")),
    }
    is_known = curve.total_s > 0 and curve.total_s >= th.WELL_COVERED * duration_s
    joules = curve.total_j if is_known else None  # `source` stays: it was read from there, if not enough of it
    return GpuSummary(gpu, len(series.samples), quantities, joules, curve.source, used=used)


def _quantities(rows: pd.DataFrame, weight_s: Floats, names: Sequence[str]) -> dict[str, Stats]:
    found = {name: weighted_stats(rows[name].to_numpy(dtype=float), weight_s) for name in names}
    return {name: stats for name, stats in found.items() if stats is not None}


def utilisation(series: GpuSeries, start_s: float, end_s: float) -> dict[str, Stats]:
    """Return utilisation by its finest readings, which the rows of the samples table are not."""
    part = series.between(start_s, end_s)
    stats = weighted_stats(series.util_pct[part].astype(float), series.weight_s[part])
    return {"gpu_util_pct": stats} if stats is not None else {}
