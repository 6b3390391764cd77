"""Corrections where another process worked on the GPU at the end of an epoch: there readings tell little."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import runs_of
from gpu_report.model import EpochRow

# Power this far over that of the training, for this long, is of another process beside it: 1.5 in `faulted`, where
# training itself never exceeds 1.15 for longer than two readings.
OTHER_PROCESS_POWER = 1.25
OTHER_PROCESS_POWER_S = 5.0
POWER_MEAN_S = 0.9  # power is the mean of the last second, and ticks are a little early or late


@dataclass(frozen=True)
class OtherWork:
    """A stretch in which another process worked on the GPU, too, and whether the GPU rested right after it."""

    start_s: float
    end_s: float
    pause_follows: bool


def other_work(series: GpuSeries, usable: Bools) -> list[OtherWork]:
    """Return when the GPU drew more power than this training ever does for long: another process worked on it, too."""
    t_s = series.samples["t_s"].to_numpy(dtype=float)
    power = series.samples["power_w"].to_numpy(dtype=float)
    known = power[np.isfinite(power) & _working(series, t_s, usable)]
    if not len(known):
        return []
    level, least = float(np.median(known)), float(np.nanmin(power))
    above = runs_of(power >= OTHER_PROCESS_POWER * level)
    ends = t_s + series.sample_weight_s
    settled = np.searchsorted(t_s, t_s + POWER_MEAN_S)  # the first reading that has nothing of that moment in it
    rests = np.append(power < (least + level) / 2, False)[settled]
    spans = [OtherWork(float(t_s[a]), float(ends[b - 1]), bool(rests[b - 1])) for a, b in zip(*above, strict=True)]
    return [span for span in spans if span.end_s - span.start_s >= OTHER_PROCESS_POWER_S]


def checkpoints_beside(at: Floats, after: Floats, foreign: Sequence[OtherWork]) -> Floats:
    """Return the checkpoints, those in which another process kept the GPU at work corrected.

    If the GPU rests once that one is gone, training has not resumed before.
    """
    for span in foreign:
        covered = (at >= span.start_s) & (at + after < span.end_s) & (at < span.end_s)
        if span.pause_follows and covered.any():
            last = int(np.flatnonzero(covered)[-1])  # training resumed after the rows before it
            after[last] = span.end_s - at[last]
    return after


def validations_beside(rows: Sequence[EpochRow], before: Floats, after: Floats, foreign: Sequence[OtherWork]) -> Floats:
    """Return the validations, those that began while another process kept the GPU at work corrected.

    There readings tell nothing: training is taken to have lasted as long as in the other epochs.
    """
    ends = np.array([row.row_t_s for row in rows])
    begins = np.array([row.start_t_s for row in rows])
    follows = np.concatenate([[False], begins[1:] == ends[:-1]])
    begins = begins + np.where(follows, np.concatenate([[0.0], after[:-1]]), 0.0)
    typical = float(np.median(ends - before - begins))
    for span in foreign:
        for number in np.flatnonzero((ends - before > span.start_s) & (ends - before <= span.end_s)).tolist():
            begun = max(span.start_s, begins[number] + typical)
            before[number] = max(before[number], ends[number] - begun)
    return before


def _working(series: GpuSeries, t_s: Floats, usable: Bools) -> Bools:
    """Return at which of its ticks a GPU worked, by the reading of utilisation at or next after it."""
    nearest = np.clip(np.searchsorted(series.t_s, t_s), 0, len(series.t_s) - 1)
    working: Bools = usable[nearest] & (series.util_pct[nearest] >= th.LOW_PCT)
    return working
