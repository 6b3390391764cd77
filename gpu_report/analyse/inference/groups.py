"""Calls that have something in common: their batch, their shape, the pause before them, the GPU's clock."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.call_time import MS
from gpu_report.analyse.inference.percentiles import latency
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import rows_before
from gpu_report.model import CallGroup, GroupKind, ModelCalls
from gpu_report.wording import counted

SHAPE = 1e6  # pixels: height and width as one number

Masks = list[tuple[str, Bools]]  # of groups: what they are, and which calls are theirs


def groups_of(calls: ModelCalls, rows: slice, series: GpuSeries | None, highest_mhz: float | None) -> list[CallGroup]:
    """Return the groups of some calls, of each kind that has several.

    Those by shape, pause and clock are of the commonest batch alone: otherwise they would tell batches apart. `series`
    and `highest_mhz` are the GPU's, None where it is not known.
    """
    images, total_ms = calls.images[rows], calls.total_ms[rows]
    usual = images == commonest(images)
    shape = np.where(usual, calls.height[rows] * SHAPE + calls.width[rows], np.nan)
    gap_ms = np.where(usual, calls.gap_ms[rows], np.nan)
    masks: dict[GroupKind, Masks] = {
        "batch": _distinct(images, lambda value: counted(int(value), "image")),
        "shape": _distinct(shape, _shape_words),
        "gap": _classes(gap_ms, th.GAP_EDGES_MS, _gap_words),
    }
    if series is not None and highest_mhz:
        clock = np.where(usual, _clock_at(series, calls.start_s[rows]), np.nan)
        masks["sm-clock"] = _classes(clock, [share * highest_mhz for share in th.CLOCK_EDGES], _clock_words)
    return [group for kind, of in masks.items() for group in _groups(kind, of, images, total_ms)]


def commonest(values: Floats) -> float:
    """Return the value that most have, the least of several."""
    kinds, counts = np.unique(values, return_counts=True)
    return float(kinds[int(counts.argmax())])


def _distinct(values: Floats, words: Callable[[float], str]) -> Masks:
    """Return which calls have each of the commonest values, in order of these."""
    kinds, counts = np.unique(values[np.isfinite(values)], return_counts=True)
    most = sorted(kinds[np.argsort(-counts)][: th.MOST_GROUPS].tolist())
    return [(words(value), values == value) for value in most]


def _classes(values: Floats, edges: Sequence[float], words: Callable[[float, float], str]) -> Masks:
    """Return which calls lie in each class between edges."""
    bounds = pairwise([0.0, *edges, np.inf])
    return [(words(low, high), (values >= low) & (values < high)) for low, high in bounds]


def _groups(kind: GroupKind, masks: Masks, images: Floats, total_ms: Floats) -> list[CallGroup]:
    """Return the groups that have calls enough, where that are several."""
    enough = [(label, mine) for label, mine in masks if int(mine.sum()) >= th.GROUP_CALLS]
    groups = [CallGroup(kind, label, int(images[mine].sum()), latency(total_ms[mine])) for label, mine in enough]
    return groups if len(groups) > 1 else []


def _clock_at(series: GpuSeries, t_s: Floats) -> Floats:
    """Return the SM clock (MHz) at some moments: that of the tick before, which stands for a tick's length."""
    times = series.samples["t_s"].to_numpy(dtype=float)
    clock = series.samples["sm_clock_mhz"].to_numpy(dtype=float)
    row = rows_before(times, t_s, "right") - 1
    known = (row >= 0) & (t_s - times[np.maximum(row, 0)] <= 2 * series.tick_s)
    return np.where(known, clock[np.maximum(row, 0)], np.nan)


def _shape_words(value: float) -> str:
    return f"{int(value // SHAPE)} x {int(value % SHAPE)}"


def _gap_words(low_ms: float, high_ms: float) -> str:
    if not low_ms:
        return f"under {_pause(high_ms)}"
    return f"over {_pause(low_ms)}" if np.isinf(high_ms) else f"{_pause(low_ms)} to {_pause(high_ms)}"


def _pause(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < MS else f"{ms / MS:.0f} s"


def _clock_words(low: float, high: float) -> str:
    if not low:
        return f"under {high:,.0f} MHz"
    return f"{low:,.0f} MHz or more" if np.isinf(high) else f"{low:,.0f} to {high:,.0f} MHz"
