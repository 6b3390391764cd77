"""A thread beside the main one that computes in Python: it keeps the interpreter's lock, and the training waits."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpu_report.analyse.signals.stack_notes import kind_of, location_of
from gpu_report.analyse.timeseries.distinct import distinct
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Frame, ProcessStacks, ThreadStacks


@dataclass(frozen=True)
class BusyThread:
    """A thread that computed in a line of the user's code, and the share (0 to 1) of an interval that it did."""

    name: str
    line: Frame
    share: float


class BusyThreads:
    """Says of any interval which thread of the main processes computed in Python for most of it."""

    def __init__(self, processes: Iterable[ProcessStacks]) -> None:
        """Take the notes of a run; workers have no training to keep waiting."""
        self._mains = [process for process in processes if not process.is_worker]

    def within(self, spans: Sequence[Span]) -> BusyThread | None:
        """Return the thread that computed for longest, None where none did."""
        total = sum(end - start for start, end in spans)
        found = (
            BusyThread(name, line, _seconds(starts, ends, spans) / total)
            for name, line, starts, ends in self._computing
            if total
        )
        return max(found, key=lambda each: each.share, default=None)

    @cached_property
    def _computing(self) -> list[tuple[str, Frame, Floats, Floats]]:
        """Return each thread and line in which it computed, with when; a healthy training has none."""
        return [one for main in self._mains for thread in main.threads for one in _lines(main, thread)]


def _seconds(starts: Floats, ends: Floats, spans: Sequence[Span]) -> float:
    return sum(float(np.clip(np.minimum(ends, b) - np.maximum(starts, a), 0.0, None).sum()) for a, b in spans)


def _lines(main: ProcessStacks, thread: ThreadStacks) -> list[tuple[str, Frame, Floats, Floats]]:
    """Return the functions in which a thread computed, each at the line in which it did for longest."""
    lines, of = distinct(thread.number, lambda number: _computed(main, number))
    seconds = np.bincount(of, thread.end_s - thread.start_s, minlength=len(lines))
    functions: dict[tuple[str, str], list[int]] = {}
    for at in np.argsort(-seconds, kind="stable").tolist():
        line = lines[at]
        if line is not None:
            functions.setdefault((line.file, line.function), []).append(at)
    found = []
    for places in functions.values():
        worst, mine = lines[places[0]], np.isin(of, places)
        if worst is not None:
            found.append((thread.name, worst, thread.start_s[mine], thread.end_s[mine]))
    return found


def _computed(main: ProcessStacks, number: int) -> Frame | None:
    """Return the line of the user's own code that ran, None where a thread waited or was in somebody else's code."""
    stack = main.stacks.get(number, ())
    runs = bool(stack) and kind_of(stack[0]) == "own" and not stack[0].called
    return location_of(stack) if runs else None
