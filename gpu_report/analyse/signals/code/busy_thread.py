"""Which other thread of a main process kept Python's lock (GIL), so that the main thread had to wait for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.code.stack_kinds import WAITING_CALLS, in_interpreter, kind_of, location_of
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Indices, Span, length_s, union
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import BusyThreads, Frame, ProcessStacks, Stack


@dataclass(frozen=True)
class BusyThread:
    """A thread beside the main one, the line that it was in most, and the share (0 to 1) of the time it kept busy.

    `main_share` is the main thread's share of a core meanwhile, None where CPU was not noted: then `share` is that of
    the looks at which it stood in Python and called nothing.
    """

    line: Frame
    share: float
    main_share: float | None


class ThreadProfile:
    """Says of any interval which thread of one main process kept Python busy beside the main one."""

    def __init__(self, process: ProcessStacks) -> None:
        """Take the CPU of its threads, else of old recordings where they stood."""
        self._process = process
        looks = _in_python(process) if process.busy_threads is None else process.busy_threads
        self._looks = _rows(looks, np.argsort(looks.start_s, kind="stable"))
        self._latest_s = np.maximum.accumulate(self._looks.end_s)

    def within(self, spans: Sequence[Span]) -> BusyThread | None:
        """Return the thread that kept Python busy for most of some spans while the main one hardly ran, None without.

        One that waits uses no CPU. One that computes without the lock leaves the main thread a core of its own. Only a
        line of the user's counts: a library's, such as torch's for pinned memory, lets go of the lock in C.
        """
        looks, total_s = self._between(spans), length_s(union(spans))
        if not len(looks.start_s) or not total_s:
            return None
        stacks = [self._process.stacks.get(number, ()) for number in looks.number.tolist()]
        lengths = looks.end_s - looks.start_s
        inside_s = interval_cover(spans).seconds_in_each(np.column_stack([looks.start_s, looks.end_s]))
        share = np.divide(inside_s, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
        cpu_s = looks.cpu_s * share
        mine = _longest(stacks, cpu_s)
        if float(cpu_s[mine].sum()) < th.MOSTLY_SHARE * total_s:
            return None
        main_share = float((looks.main_cpu_s * share)[mine].sum() / inside_s[mine].sum())
        line = _line(stacks, mine, cpu_s)
        if line is None or kind_of(line) != "own" or main_share >= th.COMPUTES_CPU_PCT / 100:
            return None
        share_of_all = min(float(cpu_s[mine].sum()) / total_s, 1.0)
        return BusyThread(line, share_of_all, None if math.isnan(main_share) else main_share)

    def _between(self, spans: Sequence[Span]) -> BusyThreads:
        """Return the looks from the first to the last that some spans may hold: a month has a million."""
        start_s, end_s = min((span[0] for span in spans), default=0.0), max((span[1] for span in spans), default=0.0)
        first, last = np.searchsorted(self._latest_s, start_s), np.searchsorted(self._looks.start_s, end_s)
        return _rows(self._looks, slice(int(first), int(last)))


def _longest(stacks: Sequence[Stack], cpu_s: Floats) -> Indices:
    """Return the looks at the thread that used most: threads that began in the same function are one."""
    of: dict[tuple[str, str], list[int]] = {}
    for row in np.flatnonzero(cpu_s > 0).tolist():
        of.setdefault(_entry(stacks[row]), []).append(row)
    return np.array(max(of.values(), key=lambda rows: float(cpu_s[rows].sum()), default=[]), dtype=np.int64)


def _line(stacks: Sequence[Stack], rows: Indices, cpu_s: Floats) -> Frame | None:
    """Return the line in which most of the CPU of some looks was used.

    A look needs the lock, so that it meets the thread most often where it lets go of it: there it used no CPU.
    """
    ran = [row for row in rows.tolist() if not (stacks[row] and stacks[row][0].called in WAITING_CALLS)]
    of_rows = ((location_of(stacks[row]), float(cpu_s[row])) for row in ran or rows.tolist())
    lines = sums_by_key((line, seconds) for line, seconds in of_rows if line is not None)
    return max(lines, key=lambda line: lines[line], default=None)


def _rows(looks: BusyThreads, which: slice | Indices) -> BusyThreads:
    start_s, end_s, number = looks.start_s[which], looks.end_s[which], looks.number[which]
    return BusyThreads(start_s, end_s, looks.cpu_s[which], looks.main_cpu_s[which], number)


def _in_python(process: ProcessStacks) -> BusyThreads:
    """Return likewise when threads stood in code of the user's and called nothing, their CPU not known.

    Where no stack says what it calls, as before Python 3.11, nobody knows.
    """
    stacks = process.stacks if any(stack and stack[0].called for stack in process.stacks.values()) else {}
    python = [
        number for number, stack in stacks.items() if stack and not stack[0].called and kind_of(stack[0]) == "own"
    ]
    start, end, number = [np.empty(0)], [np.empty(0)], [np.empty(0, dtype=np.int32)]
    for thread in process.threads if python else ():
        rows = np.isin(thread.number, python)
        start, end, number = [*start, thread.start_s[rows]], [*end, thread.end_s[rows]], [*number, thread.number[rows]]
    start_s, end_s = np.concatenate(start), np.concatenate(end)
    return BusyThreads(start_s, end_s, end_s - start_s, np.full(len(start_s), np.nan), np.concatenate(number))


def _entry(stack: Stack) -> tuple[str, str]:
    """Return the file and the function that a thread began in: the outermost that is not the interpreter's."""
    entry = next((frame for frame in reversed(stack) if not in_interpreter(frame)), Frame("", 0, ""))
    return entry.file, entry.function
