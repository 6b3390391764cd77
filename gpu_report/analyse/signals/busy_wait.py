"""Where a GPU is at full utilisation and does no work: the kernel that runs only waits for another GPU's."""

from collections.abc import Collection, Sequence
from math import ceil

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import rows_before
from gpu_report.analyse.timeseries.low_stretches import low_stretches
from gpu_report.analyse.timeseries.thresholds import READING_SLACK
from gpu_report.model import Interval


def busy_waits_of(
    series: Sequence[GpuSeries], usable: Sequence[Bools], used_gpus: Collection[int], *, on_other_nodes: bool = False
) -> tuple[Interval, ...]:
    """Return where GPUs of a training on several are busy only waiting for another, in order of time.

    The others may all be `on_other_nodes` of a job.
    """
    pairs = [(each, use) for each, use in zip(series, usable, strict=True) if each.gpu in used_gpus]
    waits = [wait for each, use in pairs for wait in busy_waits(each, use)] if len(pairs) > 1 or on_other_nodes else []
    return tuple(sorted(waits, key=lambda wait: (wait.start_t_s, wait.gpu)))


def busy_waits(series: GpuSeries, usable: Bools) -> list[Interval]:
    """Return where utilisation is full and power, at its typical work far higher, is not: a kernel that only waits.

    So is one that draws what the GPU draws when it does nothing: where waiting takes most of the time, as of a training
    that hangs, what is typical is waiting.
    """
    power, tensor = _of_typical(series, usable, "power_w"), _of_typical(series, usable, "tensor_active_pct")
    if power is None:
        return []
    no_work = power <= th.BUSY_WAIT_POWER_SHARE
    if tensor is not None:
        no_work |= (tensor <= th.BUSY_WAIT_TENSOR_SHARE) & (power <= th.BUSY_WAIT_POWER_SHARE_WITHOUT_TENSOR)
    no_work |= _idles(series)
    idle = usable & (series.util_pct >= th.BUSY_WAIT_UTIL_PCT) & no_work
    found = [(series.t_s[a], series.end_of(b - 1)) for a, b in low_stretches(series, idle, usable)]
    return [
        Interval(series.gpu, float(start), float(end), series.mean_util_pct(float(start), float(end)))
        for start, end in found
        if end - start >= max(th.LOW_AT_LEAST_S, th.LOW_READINGS * series.tick_s) - READING_SLACK * series.tick_s
    ]


def _idles(series: GpuSeries) -> Bools:
    """Tell at which readings of utilisation a GPU draws no more than while it does nothing, with its clocks up.

    Power is a mean over the last second or so (POWER_MEAN_S): what comes that soon after work is left out. Before a
    process opens the GPU its clocks are down, so that the upper end of the rest counts. Tensor cores are never used.
    """
    samples = series.samples
    power_w, util_pct = samples["power_w"].to_numpy(dtype=float), samples["gpu_util_pct"].to_numpy(dtype=float)
    readings = max(th.LOW_READINGS, ceil(th.POWER_MEAN_S / series.tick_s) + 1)
    rests = np.convolve(util_pct == 0, np.ones(readings), "full")[: len(util_pct)] >= readings
    rest_w = power_w[rests & np.isfinite(power_w)]
    idle_w = float(np.percentile(rest_w, th.IDLE_POWER_PERCENTILE)) if len(rest_w) else np.inf
    if not np.isfinite(idle_w) or float(np.nanmax(power_w)) < th.IDLE_POWER_RANGE * idle_w:
        return np.zeros(len(series.t_s), dtype=np.bool_)
    tensor_pct = np.nan_to_num(samples["tensor_active_pct"].to_numpy(dtype=float))
    no_work = (power_w <= th.IDLE_POWER_FACTOR * idle_w) & (tensor_pct < th.IDLE_TENSOR_PCT)
    next_row = np.minimum(rows_before(samples["t_s"].to_numpy(dtype=float), series.t_s), len(power_w) - 1)
    idles: Bools = no_work[next_row]
    return idles


def _of_typical(series: GpuSeries, usable: Bools, name: str) -> Floats | None:
    """Return a column at each reading of utilisation, as a share of what it usually is; None where it is not known."""
    values, t_s = series.samples[name].to_numpy(dtype=float), series.samples["t_s"].to_numpy(dtype=float)
    known = np.isfinite(values)
    if not known.any():
        return None
    values, t_s = values[known], t_s[known]
    typical = float(np.median(np.interp(series.t_s[usable], t_s, values) if usable.any() else values))
    next_row = np.minimum(rows_before(t_s, series.t_s), len(values) - 1)
    return values[next_row] / typical if typical > 0 else None
