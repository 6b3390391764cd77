"""Where a GPU is at full utilisation and does no work: the kernel that runs only waits for another GPU's."""

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.drops import stretches
from gpu_report.analyse.track import Bools, Floats, Track
from gpu_report.model import Interval


def spinning(track: Track, usable: Bools) -> list[Interval]:
    """Return where utilisation is full and power, at its usual work far higher, is not: a kernel that only waits."""
    power, power_t = _known(track, "power_w")
    if not len(power):
        return []
    working = np.interp(track.t_s[usable], power_t, power) if usable.any() else power
    usual = float(np.median(working))
    at_power = power[np.clip(np.searchsorted(power_t, track.t_s), 0, len(power) - 1)]
    idle = usable & (track.util_pct >= th.SPINNING_UTIL_PCT) & (at_power <= th.SPINNING_POWER_SHARE * usual)
    found = [(track.t_s[a], track.ends_s[b - 1]) for a, b in stretches(track, idle, usable)]
    return [
        Interval(track.gpu, float(start), float(end), track.mean_pct(float(start), float(end)))
        for start, end in found
        if end - start >= th.LOW_AT_LEAST_S - th.READING_SLACK * track.tick_s
    ]


def _known(track: Track, name: str) -> tuple[Floats, Floats]:
    values, t_s = track.rows[name].to_numpy(dtype=float), track.rows["t_s"].to_numpy(dtype=float)
    known = np.isfinite(values)
    return values[known], t_s[known]
