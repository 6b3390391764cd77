"""Joules of any span of one GPU's time, from the energy counter where there is one, else from power."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from gpu_report.analyse.spans import rows_before
from gpu_report.analyse.track import Floats, Track

Source = Literal["counter", "power", "none"]


@dataclass(frozen=True, eq=False)
class Energy:
    """A running total: `joules[i]` have been used by `t_s[i]`. Empty where neither counter nor power is known."""

    t_s: Floats
    joules: Floats
    source: Source

    def between(self, start_s: float, end_s: float) -> float | None:
        """Return the joules of a span, None where nothing is known."""
        if self.source == "none":
            return None
        return float(np.interp(end_s, self.t_s, self.joules) - np.interp(start_s, self.t_s, self.joules))

    def of_each(self, starts: Floats, ends: Floats) -> Floats:
        """Return the joules of many spans, NaN where nothing is known."""
        if self.source == "none":
            return np.full(len(starts), np.nan)
        used: Floats = np.interp(ends, self.t_s, self.joules) - np.interp(starts, self.t_s, self.joules)
        return used


def energy(track: Track) -> Energy:
    """Return the running total of a GPU's energy.

    Power is integrated over its readings. The counter is read seldom, because a read takes 3 ms
    (nvmlDeviceGetTotalEnergyConsumption); between two of its readings the integral is scaled to their difference, and
    what was used in a gap counts at the mean power beside it. A counter that went back (driver reload) is not believed.
    """
    times = track.rows["t_s"].to_numpy(dtype=float)
    power = track.rows["power_w"].to_numpy(dtype=float)
    known = np.isfinite(power)
    if not known.any():
        return Energy(times, times, "none")
    joules, seconds = np.where(known, power, 0.0) * track.row_hold_s, known * track.row_hold_s
    gaps = np.append(np.diff(times), track.row_hold_s[-1]) - seconds
    in_gap = np.zeros(len(times))
    counted = _scale_to_counter(track, times, joules, seconds, gaps, in_gap)
    before = np.concatenate([[0.0], np.cumsum(joules + in_gap)[:-1]])
    t = np.column_stack([times, times + track.row_hold_s]).ravel()
    total = np.column_stack([before, before + joules]).ravel()
    return Energy(t, total, "counter" if counted else "power")


def _scale_to_counter(  # noqa: PLR0913, PLR0917 - six arrays of one table
    track: Track, times: Floats, joules: Floats, seconds: Floats, gaps: Floats, in_gap: Floats
) -> bool:
    """Scale `joules` in place between the counter's readings and fill `in_gap`; False where there is no counter."""
    counter = track.rows["energy_j"].to_numpy(dtype=float)
    read = np.flatnonzero(np.isfinite(counter))
    if len(read) < 2 or (np.diff(counter[read]) < 0).any():
        return False
    used, length = np.diff(counter[read]), np.diff(times[read])
    measured_j = np.add.reduceat(joules, read)[:-1]
    measured_s = np.add.reduceat(seconds, read)[:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_w = np.where(measured_s > 0, measured_j / measured_s, np.nan)
        scale = np.where(measured_j > 0, used / (mean_w * length), 1.0)
    interval = np.clip(rows_before(read, np.arange(len(times)), "right") - 1, 0, len(used) - 1)
    joules *= scale[interval]  # before the first and after the last reading as beside it
    inside = slice(read[0], read[-1])
    in_gap[inside] = np.nan_to_num(gaps * mean_w[interval] * scale[interval])[inside]
    return True
