"""One GPU over the whole run: the statistics of all that was recorded of it, and its energy."""

from gpu_report import schema
from gpu_report.analyse.timeseries.energy import energy
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.weighted_stats import weighted_stats
from gpu_report.model import WELL_COVERED, Gpu, GpuSummary

# Counters and codes have no mean.
NOT_AVERAGED = frozenset({"energy_j", "performance_state", "clock_event_reasons", "memory_reserved_mib"})
COUNTERS = frozenset({"power_cap_s", "sw_thermal_slowdown_s", "hw_thermal_slowdown_s", "power_brake_s"})
AVERAGED = tuple(c.name for c in schema.GPU_QUANTITIES if c.name not in NOT_AVERAGED | COUNTERS)


def summarise_gpu(gpu: Gpu, series: GpuSeries | None, duration_s: float, *, used: bool) -> GpuSummary:
    """Return one GPU over the whole run; a GPU without rows has no quantities.

    Its energy is a sum, which would be low by all that was not measured: below WELL_COVERED it is not known.
    Utilisation is by its finest readings, which the rows of the samples table are not.
    """
    if series is None:
        return GpuSummary(gpu, 0, {}, None, "none", used=False)
    # as they are kept: of float32 few readings differ, as they were written, which is what makes them quick to rank
    found = {name: weighted_stats(series.samples[name].to_numpy(), series.sample_weight_s) for name in AVERAGED}
    found["gpu_util_pct"] = weighted_stats(series.util_pct, series.weight_s[:]) or found["gpu_util_pct"]
    quantities = {name: stats for name, stats in found.items() if stats is not None}
    curve = energy(series)
    is_known = curve.total_s > 0 and curve.total_s >= WELL_COVERED * duration_s
    joules = curve.total_j if is_known else None  # `source` stays: it was read from there, if not enough of it
    return GpuSummary(gpu, len(series.samples), quantities, joules, curve.source, used=used)
