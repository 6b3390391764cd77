"""Small charts that need no script and stand on paper: the surroundings of a finding, and each GPU's run as a strip."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpu_report.model import Analysis, Finding, Run
from gpu_report.render.moments import Clock
from gpu_report.render.view import ChartLine, ChartView, HeatCell

Floats = NDArray[np.float64]

WIDTH = 1000  # of a chart, in its own units
CONTEXT_LENGTHS = 1.5  # how many lengths of a finding are shown on either side of it, as by the timeline
LEAST_CONTEXT_S = 15.0
MOST_POINTS = 1200  # of a line up to which every sample is drawn; beyond, the lowest and highest of each bucket
GAP_TICKS = 3.5  # readings further apart than this many ticks or median steps are not joined
MOST_LINES = 8  # more lines than GPUs of one machine tell nothing
STRIP_CELLS = 200
HEAT_LEVELS = 5


@dataclass(frozen=True, eq=False)
class Track:
    """One GPU's utilisation in order of time, as fine as the driver gave it; `tick_s` is the step of the samples."""

    t_s: Floats
    util_pct: Floats
    tick_s: float = 1.0


def tracks(run: Run) -> dict[int, Track]:
    """Return each GPU's utilisation, by index."""
    ticks, rings = _by_gpu(run.samples), _by_gpu(run.ring.dropna(subset="gpu_util_pct"))
    return {index: _track(track, rings.get(index)) for index, track in ticks.items()}


def _by_gpu(frame: pd.DataFrame) -> dict[int, Track]:
    times, gpus, util = (frame[name].to_numpy(dtype=float) for name in ("t_s", "gpu", "gpu_util_pct"))
    indexes = np.unique(gpus[np.isfinite(gpus)])
    return {int(index): Track(times[gpus == index], util[gpus == index]) for index in indexes}


def _track(ticks: Track, ring: Track | None) -> Track:
    """Return the driver's own readings, with the ticks where it kept none, as the timeline does (js/lines.js)."""
    tick_s = float(np.median(np.diff(ticks.t_s))) if len(ticks.t_s) > 1 else 1.0
    if ring is None:
        return Track(ticks.t_s, ticks.util_pct, tick_s)
    after = np.searchsorted(ring.t_s, ticks.t_s)
    padded = np.concatenate([[-np.inf], ring.t_s, [np.inf]])
    alone = np.minimum(ticks.t_s - padded[after], padded[after + 1] - ticks.t_s) > tick_s / 2
    t_s = np.concatenate([ring.t_s, ticks.t_s[alone]])
    util_pct = np.concatenate([ring.util_pct, ticks.util_pct[alone]])
    order = np.argsort(t_s, kind="stable")
    return Track(t_s[order], util_pct[order], tick_s)


def surroundings(finding: Finding, analysis: Analysis, by_gpu: Mapping[int, Track], clock: Clock) -> ChartView | None:
    """Return utilisation in and around a finding, its own GPU's line last and thus on top; None without samples."""
    around = max(finding.duration_s * CONTEXT_LENGTHS, LEAST_CONTEXT_S)
    start = max(finding.start_t_s - around, 0.0)
    end = max(min(finding.end_t_s + around, analysis.run.duration_s), start + 1.0)
    scale = WIDTH / (end - start)
    own = [index for index in by_gpu if finding.gpu in (index, None)]
    shown = ([index for index in by_gpu if index not in own] + own)[-MOST_LINES:]
    lines = (
        ChartLine(f"gpu-{list(by_gpu).index(index) % 8}", index in own, _path(by_gpu[index], start, end))
        for index in shown
    )
    drawn = tuple(line for line in lines if line.path)
    if not drawn:
        return None
    events = (nearby.event.t_s for nearby in finding.kernel_events)
    ends = (epoch.end_t_s for epoch in analysis.epochs)
    return ChartView(
        lines=drawn,
        band_x=round((finding.start_t_s - start) * scale, 1),
        band_width=round(max(finding.duration_s * scale, 2.0), 1),
        epochs=tuple(round((t - start) * scale, 1) for t in ends if start <= t <= end),
        kernel=tuple(round((t - start) * scale, 1) for t in events if start <= t <= end),
        start=clock.moment(start),
        end=clock.moment(end),
    )


def strip(track: Track | None, duration_s: float) -> tuple[HeatCell, ...]:
    """Return mean utilisation over the run as a few levels; equal neighbours are one cell, missing time is none."""
    if track is None or duration_s <= 0:
        return ()
    present = np.isfinite(track.util_pct) & (track.t_s >= 0) & (track.t_s <= duration_s)
    cells = min(STRIP_CELLS, max(len(track.t_s) // 2, 1))  # two samples a cell, so that a late one leaves no hole
    place = np.minimum((track.t_s[present] / duration_s * cells).astype(int), cells - 1)
    count = np.bincount(place, minlength=cells)
    mean = np.bincount(place, track.util_pct[present], minlength=cells) / np.maximum(count, 1)
    level = np.where(count > 0, np.clip(mean * HEAT_LEVELS // 100, 0, HEAT_LEVELS - 1), -1).astype(int)
    edges = np.concatenate([[0], np.flatnonzero(np.diff(level)) + 1, [cells]])
    step = WIDTH / cells
    return tuple(
        HeatCell(round(float(a * step), 1), round(float((b - a) * step), 1), int(level[a]))
        for a, b in pairwise(edges)
        if level[a] >= 0
    )


def _path(track: Track, start: float, end: float) -> str:
    """Return a line's samples between two moments as an SVG path, with one beyond either end where there is one."""
    first, last = np.searchsorted(track.t_s, [start, end])
    window = slice(max(int(first) - 1, 0), int(last) + 1)
    t_s, util = track.t_s[window], track.util_pct[window]
    if len(t_s) > MOST_POINTS:
        kept = _extremes(util, MOST_POINTS // 2)
        t_s, util = t_s[kept], util[kept]
    if not np.isfinite(util).any():
        return ""
    steps = np.diff(t_s, prepend=t_s[:1])
    apart = steps > GAP_TICKS * max(float(np.median(steps[1:])) if len(steps) > 1 else 0.0, track.tick_s)
    x = (t_s - start) * WIDTH / (end - start)
    parts, joined = [], False
    for at, value, is_apart in zip(x.tolist(), util.tolist(), apart.tolist(), strict=True):
        is_known = bool(np.isfinite(value))
        if is_known:
            parts.append(f"{'L' if joined and not is_apart else 'M'}{at:.1f},{100 - value:g}")
        joined = is_known
    return "".join(parts)


def _extremes(values: Floats, buckets: int) -> NDArray[np.intp]:
    """Return the places of the lowest and the highest of each bucket, in order: no single dip is lost."""
    edges = np.linspace(0, len(values), buckets + 1).astype(int)
    low, high = np.nan_to_num(values, nan=np.inf), np.nan_to_num(values, nan=-np.inf)
    pairs = ((a + np.argmin(low[a:b]), a + np.argmax(high[a:b])) for a, b in pairwise(edges))
    return np.unique(np.fromiter((place for pair in pairs for place in pair), dtype=np.intp))
