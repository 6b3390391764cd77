"""What Python's garbage collector took of a process: nothing else of Python runs in it meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse.signals.code.stack_kinds import line_of
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.timeseries.intervals import Span, length_s, union
from gpu_report.model import CollectionCounts, Frame, LongCollections, ProcessStacks

COLLECT = "collect"  # the function of C by which a program asks for it; what calls none made one object too many


@dataclass(frozen=True)
class Garbage:
    """How often the garbage collector ran in some stretches of `of_s` in all, and for how long (s).

    `line` is the one by which most of its long runs are asked for, or began, None where none is known. `is_called` says
    that a program asks for most of their time (`gc.collect()`).
    """

    times: int
    seconds: float
    of_s: float
    line: Frame | None = None
    is_called: bool = False

    @property
    def share(self) -> float:
        """Return its share (0 to 1) of the time."""
        return min(self.seconds / self.of_s, 1.0) if self.of_s else 0.0


def most_garbage(processes: Iterable[ProcessStacks], spans: Sequence[Span]) -> Garbage | None:
    """Return what the collector did in the process of some in which it took longest; None where no run is known."""
    found = [garbage_in(process, spans) for process in processes]
    return max((each for each in found if each is not None), key=lambda each: each.seconds, default=None)


def garbage_of_all(processes: Sequence[ProcessStacks], spans: Sequence[Span]) -> Garbage | None:
    """Return what the collector did in some processes together, with the line of the one in which it took most."""
    found = [each for each in (garbage_in(process, spans) for process in processes) if each is not None]
    if not found:
        return None
    most = max(found, key=lambda each: each.seconds)
    seconds, of_s = sum(each.seconds for each in found), most.of_s * len(processes)
    return replace(most, times=sum(each.times for each in found), seconds=seconds, of_s=of_s)


def garbage_in(process: ProcessStacks, spans: Sequence[Span]) -> Garbage | None:
    """Return what the collector did in a process in some stretches, None where that was not recorded, or nothing."""
    done = process.collections
    if done is None or not done.seconds.any():
        return None
    cover = interval_cover(spans)
    long_s = cover.seconds_in_each(np.column_stack([done.long.start_s, done.long.end_s]))
    short_times, short_s = _short(done, cover)
    by_line, called_s = _lines(process, done.long, long_s)
    line = max(by_line, key=lambda each: by_line[each], default=None)
    in_long = float(long_s.sum())
    times = int(np.count_nonzero(long_s))
    # of many short runs there are thousands; where long ones take the time, they are what is counted
    times = times if in_long >= MOSTLY_SHARE * (in_long + short_s) else times + round(short_times)
    is_called = called_s >= MOSTLY_SHARE * (in_long + short_s)
    return Garbage(times, in_long + short_s, length_s(union(list(spans))), line, is_called) if times else None


def _short(done: CollectionCounts, cover: IntervalCover) -> tuple[float, float]:
    """Return how many short runs there were, and how long they took (s): within a block they are spread evenly."""
    of = np.searchsorted(done.start_s, done.long.start_s, side="right") - 1
    known, lengths, blocks = of >= 0, done.long.end_s - done.long.start_s, len(done.start_s)
    times = done.count - np.bincount(of[known], minlength=blocks)
    seconds = done.seconds - np.bincount(of[known], lengths[known], minlength=blocks)
    inside = cover.seconds_in_each(np.column_stack([done.start_s, done.end_s])) / (done.end_s - done.start_s)
    return float(np.maximum(times, 0.0) @ inside), float(np.maximum(seconds, 0.0) @ inside)


def _lines(process: ProcessStacks, long: LongCollections, seconds: Floats) -> tuple[dict[Frame, float], float]:
    """Return the seconds of long runs by the line that they began in, and those that a program asked for."""
    by: dict[Frame, float] = {}
    called_s = 0.0
    for number, spent in enumerate(np.bincount(long.number, seconds).tolist()):
        line, stack = line_of(process, number), process.stacks.get(number, ())
        if line is not None and spent > 0:
            by[line] = by.get(line, 0.0) + spent
        called_s += spent if stack and stack[0].called == COLLECT else 0.0
    return by, called_s
