"""Where a GPU is at full utilisation and does no work: the kernel that runs only waits for another GPU's."""

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, Track
from gpu_report.analyse.timeseries.intervals import rows_before
from gpu_report.analyse.timeseries.low_stretches import low_stretches
from gpu_report.model import Interval


def spinning(track: Track, usable: Bools) -> list[Interval]:
    """Return where utilisation is full and power, at its usual work far higher, is not: a kernel that only waits."""
    power, tensor = _of_usual(track, usable, "power_w"), _of_usual(track, usable, "tensor_active_pct")
    if power is None:
        return []
    no_work = power <= th.SPINNING_POWER_SHARE
    if tensor is not None:
        no_work |= (tensor <= th.SPINNING_TENSOR_SHARE) & (power <= th.SPINNING_POWER_SHARE_WITHOUT_TENSOR)
    idle = usable & (track.util_pct >= th.SPINNING_UTIL_PCT) & no_work
    ends_s = track.ends_s
    found = [(track.t_s[a], ends_s[b - 1]) for a, b in low_stretches(track, idle, usable)]
    return [
        Interval(track.gpu, float(start), float(end), track.mean_pct(float(start), float(end)))
        for start, end in found
        if end - start >= th.LOW_AT_LEAST_S - th.READING_SLACK * track.tick_s
    ]


def _of_usual(track: Track, usable: Bools, name: str) -> Floats | None:
    """Return a column at each reading of utilisation, as a share of what it usually is; None where it is not known."""
    values, t_s = track.rows[name].to_numpy(dtype=float), track.rows["t_s"].to_numpy(dtype=float)
    known = np.isfinite(values)
    if not known.any():
        return None
    values, t_s = values[known], t_s[known]
    usual = float(np.median(np.interp(track.t_s[usable], t_s, values) if usable.any() else values))
    next_row = np.minimum(rows_before(t_s, track.t_s), len(values) - 1)
    return values[next_row] / usual if usual > 0 else None
