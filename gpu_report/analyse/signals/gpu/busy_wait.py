"""Where a GPU is at full utilisation and does no work: the kernel that runs only waits for another GPU's."""

from collections.abc import Collection, Sequence
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import mask_in_any, rows_before
from gpu_report.analyse.timeseries.low_stretches import low_stretches
from gpu_report.analyse.timeseries.thresholds import READING_SLACK
from gpu_report.median import enough_of, median_of
from gpu_report.model import Interval


def busy_waits_of(
    series: Sequence[GpuSeries], usable: Sequence[Bools], used_gpus: Collection[int], *, on_other_nodes: bool = False
) -> tuple[Interval, ...]:
    """Return where GPUs of a training on several are busy only waiting for another, in order of time.

    The others may all be `on_other_nodes` of a job.
    """
    pairs = [(each, use) for each, use in zip(series, usable, strict=True) if each.gpu in used_gpus]
    if len(pairs) <= 1 and not on_other_nodes:
        return ()
    waits = [wait for each, use in pairs for wait in busy_waits(each, use, on_other_nodes=on_other_nodes)]
    return tuple(sorted(waits, key=lambda wait: (wait.start_t_s, wait.gpu)))


def busy_waits(series: GpuSeries, usable: Bools, *, on_other_nodes: bool = False) -> list[Interval]:
    """Return where utilisation is full and power, at its typical work far higher, is not: a kernel that only waits.

    So is one that draws what the GPU draws when it does nothing: where waiting takes most of the time, as of a training
    that hangs, what is typical is waiting. Where other ranks are `on_other_nodes`, no GPU of this recording shows whom
    it waits for: what hardly uses the GPU waits. Where it does so most of the time, shorter stretches count.
    """
    if (power := _of_typical(series, usable, "power_w")) is None:
        return []
    no_work = _idles(series) | (power <= th.BUSY_WAIT_POWER_SHARE * _of_clock(series, usable))
    if (tensor := _of_typical(series, usable, "tensor_active_pct")) is not None:
        no_work |= (tensor <= th.BUSY_WAIT_TENSOR_SHARE) & (power <= th.BUSY_WAIT_POWER_SHARE_WITHOUT_TENSOR)
    if on_other_nodes:
        no_work |= _hardly_works(series)
    is_full = series.util_pct >= th.BUSY_WAIT_UTIL_PCT
    found = _stretches(series, usable & is_full & _in_next_row(series, no_work), usable)
    longest = [wait for wait in found if _lasts(series, wait, th.LOW_AT_LEAST_S)]
    if not on_other_nodes or not _is_habit(series, usable, found):
        return longest
    return [wait for wait in found if _lasts(series, wait, 0.0)]


def work_in_waits(series: GpuSeries, waits: Sequence[Interval]) -> Floats:
    """Return the share (0 to 1) of each reading in waits for other nodes in which the GPU surely did work, else 0.

    A step shorter than a reading lies in one row with the wait beside it (`_hardly_works`). What waits keeps a few SMs
    busy, always the same, which are all that the least active rows show. SMs that are busy beyond these run the step.
    A kernel seldom fills all SMs, so that this is the least that the step took. Where SM activity is not recorded,
    nothing is known of it.
    """
    waiting = mask_in_any(series.t_s, [wait.span for wait in waits if wait.gpu == series.gpu])
    sm_pct = series.samples["sm_active_pct"].to_numpy(dtype=float)
    if not waiting.any() or not np.isfinite(sm_pct).any():
        return np.zeros(len(series.t_s))
    seen_pct = _in_next_row(series, sm_pct)
    known = waiting & np.isfinite(seen_pct)
    exchange_pct = float(np.percentile(seen_pct[known], th.EXCHANGE_SM_PERCENTILE)) if known.any() else 0.0
    return np.where(known, np.clip(np.nan_to_num(seen_pct) - exchange_pct, 0.0, series.util_pct), 0.0) / 100


def _stretches(series: GpuSeries, waits: Bools, usable: Bools) -> list[Interval]:
    """Return the stretches of waits that are fully busy as a whole.

    Bursts of batches between waits for data read as full in turn, too, and power is a mean over them.
    """
    spans = [(float(series.t_s[a]), series.end_of(b - 1)) for a, b in low_stretches(series, waits, usable)]
    found = [Interval(series.gpu, start, end, series.mean_util_pct(start, end)) for start, end in spans]
    return [wait for wait in found if wait.mean_pct >= th.BUSY_WAIT_UTIL_PCT]


def _lasts(series: GpuSeries, wait: Interval, at_least_s: float) -> bool:
    """Tell whether a stretch lasts so long, and has readings enough to be evidence."""
    return wait.duration_s >= max(at_least_s, th.LOW_READINGS * series.tick_s) - READING_SLACK * series.tick_s


def _is_habit(series: GpuSeries, usable: Bools, found: Sequence[Interval]) -> bool:
    """Tell whether a GPU waits for most of its training: in epochs that are shorter than LOW_AT_LEAST_S, too."""
    waited_s = sum(wait.duration_s for wait in found if _lasts(series, wait, 0.0))
    return waited_s >= max(th.LOW_AT_LEAST_S, th.BUSY_WAIT_MOST_SHARE * float(series.weight_s[usable].sum()))


def _idles(series: GpuSeries) -> Bools:
    """Tell in which rows of samples a GPU draws no more than while it does nothing, with its clocks up.

    Tensor cores are never used. Power that hardly changes tells nothing.
    """
    samples, idle_w = series.samples, _idle_power_w(series)
    power_w = samples["power_w"].to_numpy(dtype=float)
    if idle_w is None or float(np.nanmax(power_w)) < th.IDLE_POWER_RANGE * idle_w:
        return np.zeros(len(samples), dtype=np.bool_)
    tensor_pct = np.nan_to_num(samples["tensor_active_pct"].to_numpy(dtype=float))
    idles: Bools = (power_w <= th.IDLE_POWER_FACTOR * idle_w) & (tensor_pct < th.IDLE_TENSOR_PCT)
    return idles


def _hardly_works(series: GpuSeries) -> Bools:
    """Tell in which rows of samples SMs and tensor cores are hardly used, at a power near that of no work.

    A short step may lie between two waits, in one row with them. Where SM activity is not recorded, nothing is said.
    """
    samples, idle_w = series.samples, _idle_power_w(series)
    if idle_w is None:
        return np.zeros(len(samples), dtype=np.bool_)
    power_w, sm_pct = (samples[name].to_numpy(dtype=float) for name in ("power_w", "sm_active_pct"))
    tensor_pct = np.nan_to_num(samples["tensor_active_pct"].to_numpy(dtype=float))
    spins: Bools = (power_w <= th.SPIN_POWER_FACTOR * idle_w) & (tensor_pct <= th.SPIN_TENSOR_PCT)
    spins &= sm_pct <= th.SPIN_SM_PCT
    return spins


def _idle_power_w(series: GpuSeries) -> float | None:
    """Return what a GPU draws while it does nothing, with its clocks up; None where it never did, or none was read.

    Power is a mean over the last second or so (POWER_MEAN_S): what comes that soon after work is left out. Before a
    process opens the GPU its clocks are down, so that the upper end of the rest counts.
    """
    power_w, util_pct = (series.samples[name].to_numpy(dtype=float) for name in ("power_w", "gpu_util_pct"))
    readings = max(th.LOW_READINGS, ceil(th.POWER_MEAN_S / series.tick_s) + 1)
    rests = np.convolve(util_pct == 0, np.ones(readings), "full")[: len(util_pct)] >= readings
    rest_w = power_w[rests & np.isfinite(power_w)]
    return float(np.percentile(rest_w, th.IDLE_POWER_PERCENTILE)) if len(rest_w) else None


def _in_next_row(series: GpuSeries, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return what each reading's next sample is: its means are of the time before it."""
    next_row = np.minimum(rows_before(series.samples["t_s"].to_numpy(dtype=float), series.t_s), len(rows) - 1)
    found: npt.NDArray[Any] = rows[next_row]
    return found


def _of_clock(series: GpuSeries, usable: Bools) -> Floats | float:
    """Return the least share of its typical power (0 to 1) that a GPU draws at its clock, for the work that it does.

    Heat or a power limit lowers the clock, and with it the power of any work. That of transistors goes with frequency
    and the square of voltage, which falls with it, and what a GPU draws at rest stays. One that waits keeps its clock.
    """
    clock = _of_typical(series, usable, "sm_clock_mhz")
    return 1.0 if clock is None else np.minimum(clock, 1.0) ** 3


def _of_typical(series: GpuSeries, usable: Bools, name: str) -> Floats | None:
    """Return a column, its next value where it is missing, as a share of what is usual; None where none is known."""
    values, t_s = series.samples[name].to_numpy(dtype=float), series.samples["t_s"].to_numpy(dtype=float)
    known = np.isfinite(values)
    if not known.any():
        return None
    values, t_s = values[known], t_s[known]
    some_t_s = enough_of(series.t_s[usable])
    typical = median_of(np.interp(some_t_s, t_s, values) if len(some_t_s) else values)
    next_known = np.minimum(np.cumsum(known) - known, len(values) - 1)
    return values[next_known] / typical if typical > 0 else None
