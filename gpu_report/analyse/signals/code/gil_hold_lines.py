"""In which line C code kept Python's lock where the recorder could not tell: in that of the holds of which it could."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpu_report.analyse.signals.code.stack_kinds import line_of
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeline.phase_index import PhaseIndex
from gpu_report.model import LockHeld, Phase, ProcessStacks, Run

# Holds of a phase whose line is known: so many, and nearly all in one line, and the others are of that line, too.
SURE_LEAST = 3
AGREE_SHARE = 0.9
LONGER = 2.0  # than each of these: such a hold is of other work


def with_gil_hold_lines(run: Run, phases: Sequence[Phase]) -> Run:
    """Return a run in which each hold of Python's lock stands in its line, as far as that is known.

    What the garbage collector said of itself comes first.

    The recorder leaves it open where another thread may have waited for the lock as well, as one that pins memory
    nearly always does: by the time that the recorder looks, the main thread may have gone on.
    """
    index = PhaseIndex(phases)
    return replace(run, stacks=tuple(_placed(_with_collections(process), index) for process in run.stacks))


Kind = tuple[int, bool]  # a phase, and whether the main thread computed


class _Hold(NamedTuple):
    """A hold, and at which of the process's notes it is."""

    held: LockHeld
    note: int


class _HoldLine(NamedTuple):
    """A stack in the line in which holds of a kind are, how many of them were seen there, of how many in all.

    `longest_s` is the longest of those seen.
    """

    number: int
    seen: int
    alike: int
    longest_s: float


def _placed(process: ProcessStacks, phases: PhaseIndex) -> ProcessStacks:
    if not process.lock_held or not len(process.start_s):
        return process
    number, told = process.number.copy(), []
    for holds in _by_kind(process, phases):
        line = _line(process, holds)
        for held, note in holds:
            inferred = line is not None and not number[note] and _may_be_of(line, process, held)
            number[note] = line.number if line and inferred else number[note]
            counts = (line.seen, line.alike) if line and inferred else (0, 0)
            told.append(LockHeld(held.start_t_s, held.end_t_s, held.cpu_s, int(number[note]), *counts))
    told.sort(key=lambda held: held.start_t_s)
    return replace(process, number=number, lock_held=tuple(told))


def _by_kind(process: ProcessStacks, phases: PhaseIndex) -> Iterable[list[_Hold]]:
    starts, middles = (np.array(each) for each in zip(*(_moments(held) for held in process.lock_held), strict=True))
    notes = np.maximum(np.searchsorted(process.start_s, middles, side="right") - 1, 0).tolist()
    by: dict[Kind, list[_Hold]] = {}
    for held, note, phase in zip(process.lock_held, notes, phases(starts).tolist(), strict=True):
        by.setdefault((phase, held.cpu_s >= MOSTLY_SHARE * held.duration_s), []).append(_Hold(held, note))
    return by.values()


def _moments(held: LockHeld) -> tuple[float, float]:
    return held.start_t_s, (held.start_t_s + held.end_t_s) / 2


def _line(process: ProcessStacks, holds: Sequence[_Hold]) -> _HoldLine | None:
    """Return in which line holds of a kind are, None where too few are known, or these are in several."""
    sure = [(each.held, int(process.number[each.note])) for each in holds if process.number[each.note]]
    lines = Counter(line_of(process, number) for _, number in sure)
    if len(sure) < SURE_LEAST or max(lines.values()) < AGREE_SHARE * len(sure):
        return None
    most = lines.most_common(1)[0][0]
    mine = [(held, number) for held, number in sure if line_of(process, number) == most]
    number = Counter(number for _, number in mine).most_common(1)[0][0]
    return _HoldLine(number, len(mine), len(holds), max(held.duration_s for held, _ in mine))


def _may_be_of(line: _HoldLine, process: ProcessStacks, held: LockHeld) -> bool:
    return held.duration_s <= LONGER * line.longest_s and not _others_computed(process, held)


def _others_computed(process: ProcessStacks, held: LockHeld) -> bool:
    """Tell whether another thread of Python used the CPU for most of a hold: that may be the one that kept the lock."""
    busy = process.busy_threads
    if busy is None:
        return False
    beside = (busy.start_s < held.end_t_s) & (busy.end_s > held.start_t_s)
    return bool((busy.cpu_s[beside] >= MOSTLY_SHARE * held.duration_s).any())


def _with_collections(process: ProcessStacks) -> ProcessStacks:
    """Return a process whose main thread stands where each long run of the collector began, for as long as it took."""
    long = None if process.collections is None else process.collections.long
    mine = np.zeros(0, dtype=np.int64) if long is None else np.flatnonzero(long.in_main & (long.number > 0))
    if long is None or not len(mine):
        return process
    begun, ended = long.start_s[mine], long.end_s[mine]
    cuts = np.unique(np.concatenate([process.start_s, process.end_s, begun, ended]))
    middles = (cuts[:-1] + cuts[1:]) / 2
    note, of = (np.searchsorted(each, middles, side="right") - 1 for each in (process.start_s, begun))
    noted, collects = (note >= 0) & (middles < process.end_s[note]), (of >= 0) & (middles < ended[of])
    number = np.where(collects, long.number[mine][of], process.number[note])
    kept = noted | collects
    return replace(process, start_s=cuts[:-1][kept], end_s=cuts[1:][kept], number=number[kept])
