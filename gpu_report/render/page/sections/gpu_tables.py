"""The tables: each GPU with its statistics, and the processes that were on them."""

from typing import Any

import numpy as np
import pandas as pd

from gpu_report.gpu_words import gpu_number
from gpu_report.model import Analysis, Gpu, GpuSummary, Run
from gpu_report.render.formatting import duration, gibibytes, known, number, quantity
from gpu_report.render.page.sections import gpu_health
from gpu_report.render.page.sections.static_charts import strip
from gpu_report.render.page.views.report import GpuView
from gpu_report.render.page.views.tables import TextTable
from gpu_report.render.quantity_labels import THROTTLE_COUNTERS, gpu_quantities, label
from gpu_report.render.run_clock import WallClock
from gpu_report.render.samples.quantity_series import QuantitySeries
from gpu_report.wording import MISSING, counted

_STATISTICS = ("mean", "min", "p5", "p50", "p95", "max")
# A mean of a bitmask, of a counter or of a state's number says nothing.
_WITHOUT_STATISTICS = frozenset({"clock_event_reasons", "energy_j", "performance_state", *THROTTLE_COUNTERS})
STAYED = "still there"
UNNAMED_PROCESS = "(not visible here)"
# Words for schema.PROCESS_OWNERS.
OWNERS = {
    "trainer": "this run",
    "other": "another's",
    "not visible": "not visible from here: another container",
}


def gpu(summary: GpuSummary, run: Run, track: QuantitySeries | None) -> GpuView:
    """Return a GPU with what is counted of it."""
    device = summary.gpu
    readings = len(run.ring_of(device.index))
    return GpuView(
        device.index,
        gpu_number(device.index),
        _name(device),
        device.uuid or "",
        counted(summary.samples, "sample") + (f", {counted(readings, 'reading')} between them" if readings else ""),
        _throttled(run.samples_of(device.index)),
        gpu_health.alarms(device),
        gpu_health.health_counters(device),
        readings > 0,
        quantity(_mean_util(summary), "%"),
        strip(track, run.duration_s),
    )


def statistics(analysis: Analysis) -> TextTable:
    """Return mean, extremes and percentiles of every quantity of every GPU."""
    columns = ("GPU", "Quantity", "Unit", "Mean", "Lowest", "p5", "Median", "p95", "Highest")
    numeric = (False, False, False, *[True] * 6)
    rows = tuple(row for summary in analysis.gpus for row in _statistics_rows(summary))
    first = 0 if len(analysis.gpus) > 1 else 1  # a column of zeros tells nothing
    return TextTable(columns[first:], numeric[first:], tuple(row[first:] for row in rows))


def processes(frame: pd.DataFrame, clock: WallClock) -> TextTable:
    """Return every process seen on a GPU: when, whose, and what it used at most; the largest first."""
    columns = ("GPU", "Process id", "Name", "First seen", "Gone", "Memory, peak", "Utilisation, peak", "Whose")
    numeric = (False, True, False, True, True, True, True, False)
    if frame.empty:
        return TextTable(columns, numeric, ())
    frame = frame.astype({"gpu": float, "pid": float, "memory_used_mib": float, "gpu_util_pct": float})
    grouped = frame.groupby(["gpu", "pid"], dropna=False, sort=False)
    seen = grouped.agg(
        name=("name", "last"),
        first=("t_s", "min"),
        last=("t_s", "max"),
        change=("change", "last"),
        peak=("memory_used_mib", "max"),
        util=("gpu_util_pct", "max"),
        owner=("owner", "last"),
    )
    ordered = seen.reset_index().sort_values("peak", ascending=False, na_position="last")
    return TextTable(
        columns, numeric, tuple(_process(row, clock) for row in ordered.itertuples(index=False, name=None))
    )


def _mean_util(summary: GpuSummary) -> float | None:
    stats = summary.quantities.get("gpu_util_pct")
    return None if stats is None else stats.mean


def _name(device: Gpu) -> str:
    name = device.name or "GPU"
    return (
        name if device.parent_index is None else f"{name}, MIG device {device.mig_index} of GPU {device.parent_index}"
    )


def _throttled(samples: pd.DataFrame) -> str:
    """Return for how long clocks were held down, by reason; empty where no counter was read twice."""
    counts = {name: samples[name].dropna().to_numpy(dtype=float) for name in THROTTLE_COUNTERS}
    # a counter begins again when the driver is loaded again
    grown = {name: float(np.clip(np.diff(count), 0, None).sum()) for name, count in counts.items() if len(count) > 1}
    if not grown:
        return ""
    held = ", ".join(f"{label(name)} {duration(seconds)}" for name, seconds in grown.items() if seconds > 0)
    never = ", ".join(label(name) for name, seconds in grown.items() if seconds <= 0)
    if not held:
        return f"Not throttled during the run ({never})."
    return f"Throttled during the run: {held}{f' (not: {never})' if never else ''}."


def _process(row: tuple[Any, ...], clock: WallClock) -> tuple[str, ...]:
    gpu, pid, name, first, last, change, peak, util, owner = row
    return (
        MISSING if known(gpu) is None else gpu_number(int(gpu)),
        _whole(pid),
        name if isinstance(name, str) and name else UNNAMED_PROCESS,
        clock.moment(first).elapsed,
        clock.moment(last).elapsed if change == "gone" else STAYED,
        gibibytes(peak),
        quantity(util, "%"),
        OWNERS.get(owner, MISSING),
    )


def _whole(value: float) -> str:
    return MISSING if known(value) is None else str(int(value))


def _statistics_rows(summary: GpuSummary) -> tuple[tuple[str, ...], ...]:
    return tuple(
        (
            gpu_number(summary.gpu.index),
            quantity.label,
            quantity.unit,
            *(number(getattr(summary.quantities[quantity.name], which), quantity.decimals) for which in _STATISTICS),
        )
        for quantity in gpu_quantities()
        if quantity.name in summary.quantities and quantity.name not in _WITHOUT_STATISTICS
    )
