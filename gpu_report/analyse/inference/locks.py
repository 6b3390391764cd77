"""Where threads wait for one another: at a lock that calls, or what is done between them, are made under."""

from typing import NamedTuple

import numpy as np

from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.gap_kinds import is_in_call, kind_between_calls
from gpu_report.analyse.inference.thread_seconds import added, seconds_in
from gpu_report.analyse.signals.code.stack_kinds import ENTERS, THREAD, kind_of, location_of
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import CodeLocation, ProcessStacks, Stack


class Queue(NamedTuple):
    """A line in which threads wait for one another, as for a lock, and how many do so on average."""

    where: CodeLocation
    threads: float


def queue_of(process: ProcessStacks, span: Span) -> Queue | None:
    """Return the line in which most threads waited for one another, None where less than one did on average."""
    length_s, locked = span[1] - span[0], in_locks(process, span)
    noted = added(seconds_in(thread, span) for thread in process.threads)
    lines = ((location_of(process.stacks.get(number, ())), s) for number, s in noted.items() if number in locked)
    stood = sums_by_key((line, seconds) for line, seconds in lines if line is not None)
    line = max(stood, key=lambda each: stood[each], default=None)
    if line is None or stood[line] < th.QUEUE_LEAST * length_s or length_s < th.THREAD_NOTES_S:
        return None
    return Queue(CodeLocation(THREAD, line.function, line.file, line.line, 1.0), stood[line] / length_s)


def in_locks(process: ProcessStacks, span: Span) -> frozenset[int]:
    """Return the stacks in which threads waited for a lock: in Python, calling nothing, as `with lock:` does.

    They used no CPU there. Or several stood in one at a time, while others were at work: Python runs one at a time.
    """
    enters = {n for n, stack in process.stacks.items() if stack and stack[0].called == ENTERS}
    python = {n for n, stack in process.stacks.items() if stack and not stack[0].called and kind_of(stack[0]) == "own"}
    return frozenset(enters | _without_cpu(process, python) | _many_at_once(process, python, span))


def _without_cpu(process: ProcessStacks, python: set[int]) -> set[int]:
    looks = process.busy_threads
    if looks is None:
        return set()
    stood = added(seconds_in(thread, (-np.inf, np.inf)) for thread in process.threads)
    used = np.bincount(looks.number, looks.cpu_s, minlength=max(python, default=0) + 1)
    return {n for n in python & stood.keys() if used[n] < th.LOCKED_CPU_SHARE * stood[n]}


def _many_at_once(process: ProcessStacks, python: set[int], span: Span) -> set[int]:
    """Return the stacks in which several threads stood at once, on average, while always one of them was at work.

    Where they computed, several would be at work now and then, and none. A thread's CPU time does not tell: it is that
    of the second before, in which it had its turn.
    """
    length_s = span[1] - span[0]
    stood = added(seconds_in(thread, span) for thread in process.threads)
    many = {n for n in python & stood.keys() if stood[n] >= th.MANY_AT_ONCE * length_s}
    return many if many and _one_at_work_s(process, python, span) >= th.ONE_AT_WORK * length_s else set()


def _one_at_work_s(process: ProcessStacks, python: set[int], span: Span) -> float:
    """Return for how long of a span one thread, and no more, was in a call or at other work than in some stacks."""
    work = [n for n, stack in process.stacks.items() if n not in python and _is_work(stack)]
    rows = [np.isin(thread.number, work) for thread in process.threads]
    pairs = list(zip(process.threads, rows, strict=True))
    starts = np.sort(np.concatenate([np.clip(thread.start_s[mine], *span) for thread, mine in pairs]))
    ends = np.sort(np.concatenate([np.clip(thread.end_s[mine], *span) for thread, mine in pairs]))
    edges = np.unique(np.concatenate([starts, ends, span]))
    begun, ended = (np.searchsorted(each, edges[:-1], side="right") for each in (starts, ends))
    return float(np.diff(edges)[begun - ended == 1].sum())


def _is_work(stack: Stack) -> bool:
    return is_in_call(stack) or kind_between_calls(stack) not in {None, "waiting for calls"}
