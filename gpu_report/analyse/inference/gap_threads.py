"""What threads beside the main one did between calls: those that make the calls, or those that calls waited for.

They are seen once a second. A note stands until the next one that differs.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.gap_kinds import (
    is_in_call,
    is_loader,
    kind_between_calls,
    lines_of,
    part_of,
)
from gpu_report.analyse.inference.locks import in_locks
from gpu_report.analyse.inference.thread_seconds import Seconds, added, seconds_in
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.signals.code.stack_kinds import MAIN, THREAD, kind_of, location_of
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import CodeLocation, GapPart, ProcessStacks, Stack

WAITING: Final = "waiting for calls"
NOTHING_S = 1e-6  # what differences of sums leave of no time at all


def made_by_threads(stacks: IdleStacks, called: Floats, span: Span, gap_s: float) -> tuple[GapPart, ...]:
    """Return what a process did between calls that its main thread does not make.

    That is what the threads that make them did besides, and the main one while no call went on (`called`: rows of start
    and end, as of an event loop). Where nobody was seen in a call, it may be any of its threads.
    """
    process = stacks.process
    if not process.threads:
        return ()
    locked = in_locks(process, span)
    noted = [_without(seconds_in(thread, span), locked) for thread in process.threads]
    makers = [each for each in noted if any(is_in_call(_stack(process, number)) for number in each)]
    busy = [_busy(process, each) for each in (makers or noted)]
    outside = _outside_calls(stacks, called, span)
    main = _busy(process, outside)
    total = sum(sum(each.values()) for each in (*busy, main))
    if total < th.GAP_NOTES_S:
        return _all_waited(process, (added(makers or noted), outside), gap_s)
    scale = min(1.0, gap_s / total)
    parts = [*_parts(process, added(busy), scale, THREAD), *_parts(process, main, scale, process.role)]
    rest_s = gap_s - sum(part.seconds for part in parts)
    waits = (GapPart(WAITING, rest_s),) if rest_s >= NOTHING_S else ()
    return (*parts, *waits)


def _all_waited(process: ProcessStacks, noted: tuple[Seconds, Seconds], gap_s: float) -> tuple[GapPart, ...]:
    """Return the time between calls of threads, and of a main one, that were noted to wait in it and no more."""
    waited = [{n: s for n, s in each.items() if kind_between_calls(_stack(process, n)) == WAITING} for each in noted]
    if min(sum(each.values()) for each in waited) < th.GAP_NOTES_S:
        return ()
    lines = [
        (location_of(_stack(process, n)), role)
        for each, role in zip(waited, (THREAD, MAIN), strict=True)
        for n in _longest_first(each)
    ]
    own = next(((line, role) for line, role in lines if line and kind_of(line) == "own"), None)
    if own is None:
        return (GapPart(WAITING, gap_s),)
    line, role = own
    return (GapPart(WAITING, gap_s, CodeLocation(role, line.function, line.file, line.line, 1.0)),)


def _longest_first(seconds: Seconds) -> list[int]:
    return sorted(seconds, key=lambda number: -seconds[number])


def waited_for(stacks: IdleStacks, waiting: GapPart, most_s: float, span: Span) -> tuple[GapPart, ...]:
    """Return the time in which a thread waited for calls, and what another thread did meanwhile that it waited for.

    It waited for threads for W = `most_s` of L seconds. One that is busy for B of them is so in W + B - L of them at
    least while it is waited for: one that prepares images in time has nothing to do then.
    """
    length_s, process = span[1] - span[0], stacks.process
    locked = in_locks(process, span)
    busy = [_busy(process, _without(seconds_in(thread, span), locked)) for thread in process.threads]
    longest = max(busy, key=lambda each: sum(each.values()), default={})
    together_s = most_s + min(sum(longest.values()), length_s) - length_s
    if length_s < th.THREAD_NOTES_S or together_s < th.GAP_NOTES_S:
        return (waiting,)
    scale = together_s / sum(longest.values())
    found = [replace(part, waited_for=True) for part in _parts(process, longest, scale, THREAD)]
    rest_s = waiting.seconds - together_s
    return (*found, *((GapPart(WAITING, rest_s, waiting.where),) if rest_s >= NOTHING_S else ()))


def _stack(process: ProcessStacks, number: int) -> Stack:
    return process.stacks.get(number, ())


def images_read(process: ProcessStacks, span: Span) -> CodeLocation | None:
    """Return the line of ultralytics in which a thread of its read images meanwhile, None where none was noted."""
    spent = added(seconds_in(thread, span) for thread in process.threads)
    loading = {number: s for number, s in spent.items() if is_loader(_stack(process, number))}
    return next((part.where for part in _parts(process, loading, 1.0, THREAD)), None)


def _without(seconds: Seconds, stacks: frozenset[int]) -> dict[int, float]:
    return {number: spent for number, spent in seconds.items() if number not in stacks}


def _outside_calls(stacks: IdleStacks, called: Floats, span: Span) -> dict[int, float]:
    """Return how many seconds of a span the main thread stood in each stack while no call went on."""
    rows, share = stacks.within([span])
    spans = stacks.spans(rows)
    lengths = spans[:, 1] - spans[:, 0]
    in_calls = interval_cover(called).seconds_in_each(spans)
    outside = np.divide(lengths - in_calls, lengths, out=np.zeros(len(lengths)), where=lengths > 0)
    seconds = np.bincount(stacks.number[rows], stacks.seconds(rows) * np.minimum(share, outside)).tolist()
    return {number: spent for number, spent in enumerate(seconds) if spent > 0}


def _busy(process: ProcessStacks, seconds: Seconds) -> dict[int, float]:
    """Return those seconds in which a thread did what calls may wait for."""
    kinds = {number: kind_between_calls(_stack(process, number)) for number in seconds}
    return {number: spent for number, spent in seconds.items() if kinds[number] not in {None, WAITING}}


def _parts(process: ProcessStacks, seconds: Seconds, scale: float, role: str) -> list[GapPart]:
    return [part_of(kind, of, scale, role) for kind, of in lines_of(process, seconds).items()]
