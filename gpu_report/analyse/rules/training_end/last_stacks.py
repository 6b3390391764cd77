"""Where the processes of a training were last seen before it hung or was killed, by their stacks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.code.stack_kinds import location_of
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import CodeLocation, Evidence, Finding, Frame, ProcessStacks, Stack
from gpu_report.wording import where_it_is


@dataclass(frozen=True)
class LastSeen:
    """A process's last stack, for how long it had stood in it, and for how long nothing was noted after that.

    `dumps` is in how many dumps by py-spy it was seen there, None where our own hook noted it.
    """

    role: str
    stack: Stack
    stood_s: float
    silent_s: float
    dumps: int | None = None

    @property
    def location(self) -> Frame:
        """Return its line in the user's code, or ultralytics'; a stack has a frame at least."""
        return location_of(self.stack) or self.stack[0]

    @property
    def words(self) -> str:
        """Return where it stood: all_reduce (distributed_c10d.py:2501), called from step (train.py:41)."""
        called = (
            "" if self.stack[0]._replace(called="") == self.location else f", called from {where_it_is(self.location)}"
        )
        return f"{where_it_is(self.stack[0])}{called}"

    def evidence(self, count: int) -> tuple[Evidence, ...]:
        """Return where it stood and for how long; `count` processes are told of."""
        who = "the main process" if count == 1 else self.role
        silent = self.silent_s if self.silent_s >= th.UNNOTED_S else None
        held = f"{who} gave no more stack samples (C code held the GIL, or a signal stopped it)"
        return evidence((f"{who} was last seen in {self.words}", self.stood_s, "s"), (held, silent, "s"))


def with_last_stacks(context: Context, finding: Finding, pids: frozenset[int], since_s: float | None = None) -> Finding:
    """Return the finding of an end with where the processes were last seen.

    `pids` are the training's, empty where not known. Of one that hung since `since_s` that is where it mostly stood
    then: what follows, such as a timeout's exception, is not what it hung in.
    """
    end_s = finding.end_t_s
    span = (max(since_s, end_s - th.LAST_SEEN_S) if since_s is not None else end_s, end_s)
    seen = list(_last_seen(context, pids, span))[: th.PROCESSES_TOLD]
    if not seen:
        return finding
    where = tuple(_location(each) for each in seen)
    numbers = [number for each in seen for number in each.evidence(len(seen))]
    last = f"{finding.summary}; it was last seen in {seen[0].words}" if len(seen) == 1 else finding.summary
    return replace(finding, summary=last, where=where, evidence=(*finding.evidence, *numbers))


def _last_seen(context: Context, pids: frozenset[int], span: Span) -> Iterator[LastSeen]:
    mains = [process for process in context.run.stacks if not process.is_worker]
    if not mains:
        yield from _last_dumped(context, pids, span[1])
    for process in [process for process in mains if process.pid in pids] or mains:
        seen = _last_of(process, span)
        if seen is not None:
            yield seen


def _last_dumped(context: Context, pids: frozenset[int], end_s: float) -> Iterator[LastSeen]:
    """Yield the stack of each process's last dumps, which are made while a GPU is idle: older ones say nothing."""
    for process in context.run.dumps:
        if pids and process.pid not in pids:
            continue
        until = int(np.searchsorted(process.at_s, end_s))
        since = int(np.searchsorted(process.at_s, end_s - th.LAST_SEEN_S))
        mine = process.stacks[since:until]
        if process.is_worker or not mine or not mine[-1]:
            continue
        count = next((at for at, stack in enumerate(reversed(mine)) if stack != mine[-1]), len(mine))
        stood_s = float(process.at_s[until - 1] - process.at_s[until - count])
        yield LastSeen(process.role, mine[-1], stood_s, 0.0, count)


def _last_of(process: ProcessStacks, span: Span) -> LastSeen | None:
    """Return the stack that a process stood in for most of a span, or at its end; None where it had ended long before.

    A process that hangs in C code may note nothing any more, however long that takes: so what is old counts as well.
    """
    until = int(np.searchsorted(process.start_s, span[1]))
    within = np.minimum(process.end_s[:until], span[1]) - np.maximum(process.start_s[:until], span[0])
    numbers = process.number[:until]
    if not until:
        return None
    inside = within > 0
    number = int(numbers[-1])
    if inside.any() and span[1] > span[0]:
        number = int(np.bincount(numbers[inside], within[inside]).argmax())
    stack = process.stacks.get(number, ())
    if not stack:
        return None
    last = until - 1 - int(np.argmax(numbers[::-1] == number))
    other = np.flatnonzero(numbers[: last + 1] != number)
    first = int(other[-1]) + 1 if len(other) else 0
    stood_s = float(min(process.end_s[last], span[1]) - process.start_s[first])
    return LastSeen(process.role, stack, stood_s, max(span[1] - float(process.end_s[until - 1]), 0.0))


def _location(seen: LastSeen) -> CodeLocation:
    frame = seen.location
    return CodeLocation(seen.role, frame.function, frame.file, frame.line, 1.0, seen.dumps)
