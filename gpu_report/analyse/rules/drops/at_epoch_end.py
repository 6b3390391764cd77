"""What of a drop is its own: without the validations and checkpoints at its edges, and apart from what follows one."""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.signals.thresholds import PHASE_EDGE_S, THROTTLED_JOIN_S
from gpu_report.analyse.timeline.thresholds import FIRST_EPOCH_END_EXTRA_S
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, minus, union
from gpu_report.model import FROM_CALLBACKS, Phase

CLOSING = "close mosaic"  # the part of training in which the loader is made anew
AT_THE_END = ("validation", "checkpoint")  # the phases at the end of an epoch


@dataclass(frozen=True)
class DropPart:
    """A drop without the epoch-end pauses at its edges, and whether what YOLO does at the end of an epoch explains it.

    `whole_s` is how long it was with them.
    """

    drop: Drop
    explained: bool
    whole_s: float


def drop_parts(context: Context, drops: Sequence[Drop], line_share: float, least_s: float) -> list[DropPart]:
    """Return drops without the validations and checkpoints at their edges, where they alone do not explain them.

    Two that only such a pause joins are two, unless utilisation was low right up to it and right after it. One whose
    remains are all shorter than `least_s` is explained by its pauses. `line_share` of the level is the line that they
    fell under.
    """
    pauses = context.cached(_reported_pauses)
    found = [part for drop in drops for part in _parts(context, drop, pauses, line_share, least_s)]
    return sorted(found, key=lambda part: (part.drop.start_t_s, part.drop.gpu))


def _parts(
    context: Context, drop: Drop, pauses: IntervalIndex[Span], line_share: float, least_s: float
) -> list[DropPart]:
    near = [pause for pause in pauses(*drop.span) if pause[0] < drop.end_t_s and pause[1] > drop.start_t_s]
    slow = context.cached(slow_pauses)
    inner = [pause for pause in near if pause not in slow or not reaches_into_training(drop, pause)]
    inner = inner or _chained(context, drop)
    explained = context.epoch_ends.explains(*drop.span) or _is_of_clock(context, drop)
    if explained or not inner:
        return [DropPart(drop, explained, whole_s=drop.duration_s)]
    series = context.series_of(drop.gpu)
    low = _LowReadings(series, line_share * drop.level_pct)
    # the reading right after a pause is still of it, so that it tells nothing of what follows
    pieces = minus([drop.span], [(start, end + PHASE_EDGE_S) for start, end in inner])
    parts = [low.from_pause(part, inner) for piece in pieces if (part := low.within(piece)) is not None]
    spans = [span for span in _joined(parts, inner) if span[1] - span[0] >= least_s]
    found = [replace(drop, start_t_s=a, end_t_s=b, mean_pct=series.mean_util_pct(a, b)) for a, b in spans]
    parted = [DropPart(part, explained=False, whole_s=drop.duration_s) for part in found]
    return parted or [DropPart(drop, explained=True, whole_s=drop.duration_s)]


def _is_of_clock(context: Context, drop: Drop) -> bool:
    """Tell whether a drop is of a validation seen from outside that a lower clock, which is told, makes longer.

    It may lie before what others let one expect of it.
    """
    ends = context.epoch_ends
    at = bisect_left(ends.all, drop.start_t_s, key=lambda end: end.row.row_t_s)
    if at == len(ends.all) or (touched := ends.all[at]).from_callbacks:
        return False
    validation, checkpoint = ends.usual_validation(touched), ends.usual_checkpoint(touched)
    slower = slower_by_clock(context, drop.gpu, drop.span)
    if validation is None or checkpoint is None or slower <= 1:
        return False
    before_s, after_s = touched.row.row_t_s - drop.start_t_s, drop.end_t_s - touched.row.row_t_s
    return before_s <= slower * validation.longest_s + ends.edge_s and after_s <= checkpoint.longest_s + ends.edge_s


def slower_by_clock(context: Context, gpu: int, span: Span) -> float:
    """Return how many times longer a lower clock, which is told, makes what the GPU does in a span; 1 without one."""
    for throttle in context.throttles:
        first, last = min(start for start, _ in throttle.spans), max(end for _, end in throttle.spans)
        beside = first - THROTTLED_JOIN_S <= span[1] and span[0] <= last + THROTTLED_JOIN_S
        clock_mhz = column_mean(context.series_of(gpu).samples, "sm_clock_mhz", [span])
        if throttle.gpu == gpu and clock_mhz and beside:
            return max(throttle.typical_mhz / clock_mhz, 1.0)
    return 1.0


def _chained(context: Context, drop: Drop) -> list[Span]:
    """Return the pauses that were fitted and are as long as others, where a drop holds several.

    The training between them may be too short for it to end a drop.
    """
    fitted = context.cached(_fitted_pauses)(*drop.span)
    held = [pause for pause in fitted if pause[0] < drop.end_t_s and pause[1] > drop.start_t_s]
    return held if len(held) > 1 else []


def _fitted_pauses(context: Context) -> IntervalIndex[Span]:
    ends = context.epoch_ends
    return IntervalIndex([e.pause for e in ends.all if e.fitted and e.pause and not ends.is_slow(e)], lambda span: span)


@dataclass(frozen=True)
class _LowReadings:
    """The readings of a GPU under a drop's line."""

    series: GpuSeries
    line_pct: float

    def within(self, span: Span) -> Span | None:
        """Return the stretch from the first to the last low reading within a span, None without any."""
        part = self.series.between(*span)
        low = np.flatnonzero(self.series.util_pct[part] < self.line_pct)
        if not len(low):
            return None
        first, last = part.start + int(low[0]), part.start + int(low[-1])
        return float(self.series.t_s[first]), min(self.series.end_of(last), span[1])

    def from_pause(self, part: Span, pauses: Sequence[Span]) -> Span:
        """Return a low stretch with what lies between it and the end of a pause that it touches."""
        ends = [end for _, end in pauses if 0 <= part[0] - end <= PHASE_EDGE_S + self.series.interval_s]
        whole = self.within((ends[-1], part[1])) if ends else None
        return whole or part


def _joined(parts: Sequence[Span], pauses: Sequence[Span]) -> list[Span]:
    """Return the low parts, joined across each pause that utilisation was low right before and right after."""
    joined: list[Span] = []
    for part in parts:
        last_s = joined[-1][1] if joined else part[0]
        between = [pause for pause in pauses if last_s - th.ABUTS_S <= pause[0] and pause[1] <= part[0] + th.ABUTS_S]
        if between and between[0][0] - last_s <= th.ABUTS_S and part[0] - between[-1][1] <= th.ABUTS_S:
            joined[-1:] = [(joined[-1][0] if joined else part[0], part[1])]
        else:
            joined.append(part)
    return joined


def slow_pauses(context: Context) -> frozenset[Span]:
    """Return the pauses, as `_reported_pauses` has them, in which a validation or checkpoint took far too long."""
    ends = context.epoch_ends
    slow = [end.row.row_t_s for end in ends.all if end.from_callbacks and not end.cut and ends.is_slow(end)]
    pauses = context.cached(_reported_pauses)
    return frozenset(pause for row_s in slow for pause in pauses(row_s, row_s) if pause[0] <= row_s <= pause[1])


def reaches_into_training(drop: Drop, pause: Span) -> bool:
    """Tell whether a drop began well before a pause or went on well after it: then the pause is a part of it."""
    return pause[0] - drop.start_t_s > th.REACHES_S or drop.end_t_s - pause[1] > th.REACHES_S


def _reported_pauses(context: Context) -> IntervalIndex[Span]:
    """Return the validations and checkpoints that were reported, whatever they took: `slow_epoch_ends` judges that.

    One that is only seen from outside may be made of the very drop. Those that follow each other are one pause, with
    the loader made anew where the mosaic closes.
    """
    every = [phase for phase in context.phases if phase.source == FROM_CALLBACKS]
    allowed = [phase for phase in every if phase.name in AT_THE_END]
    anew = [p for p in every if p.detail == CLOSING and _length_s(p) <= FIRST_EPOCH_END_EXTRA_S]
    near = union([(p.start_t_s, p.end_t_s + th.ABUTS_S) for p in (*allowed, *anew)])
    return IntervalIndex([(start, end - th.ABUTS_S) for start, end in near], lambda span: span)


def _length_s(phase: Phase) -> float:
    return phase.end_t_s - phase.start_t_s
