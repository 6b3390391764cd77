"""Rule: what the end of every epoch waits for, though they are all alike: a callback, a slow disk, a slow loader.

Only lines of code and the kernel tell of it: how long a validation or a checkpoint should take nobody knows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from gpu_report.analyse.causes import Explanation, explain
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.drops.at_epoch_end import AT_THE_END
from gpu_report.analyse.signals.idle_stacks import IdleStacks
from gpu_report.analyse.signals.stack_habits import Stood
from gpu_report.analyse.timeline.callbacks import FROM_CALLBACKS
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, length_s, union
from gpu_report.catalogue import CAUSES
from gpu_report.model import Advice, Finding, Frame, ProcessWait

SEVERAL = 2
LOADER = "loader"
WRITES = frozenset({"write", "pwrite64", "writev", "fsync", "fdatasync", "close", "openat", "rename", "ftruncate"})


@dataclass(frozen=True)
class _Held:
    """What the end of one epoch waited for: from when to when, and for how many seconds of that.

    `by` is the same in all epochs. `call` is the function of the user's that YOLO called, `wait` the longest one for a
    file, where it was one of these.
    """

    by: object
    span: Span
    seconds: float
    call: Frame | None = None
    wait: ProcessWait | None = None


def held_epoch_ends(context: Context) -> list[Finding]:
    """Report what took HELD_SHARE of all epochs at the ends of most, one finding an epoch."""
    return [finding for training in context.trainings for finding in _of_training(context, training)]


def _of_training(context: Context, training: Training) -> Iterator[Finding]:
    gpu, ends = min(training.gpus, default=None), _ends(context, training)
    if gpu is None or not ends:
        return
    least_s = th.HELD_SHARE * (length_s(training.train_spans) + length_s(ends))
    mains = [wait for wait in context.run.waits if wait.role == "main" and wait.file]
    waits = IntervalIndex(mains, lambda wait: wait.span)
    held = [each for end in ends for each in (*_by_stacks(context, gpu, end), *_by_files(waits, end))]
    told: list[Span] = []
    for by in dict.fromkeys(each.by for each in held):  # code first: a callback that waits for a file is a callback
        mine = [each for each in held if each.by == by and not _lies_in(each.span, told)]
        recurs = len(mine) >= max(th.HELD_OF_ENDS * len(ends), SEVERAL)
        is_much = recurs and sum(each.seconds for each in mine) >= least_s
        explained = _explained(context, gpu, mine) if is_much else None
        if explained is not None:
            told += [each.span for each in mine]
            yield from (_finding(context, gpu, each, explained) for each in mine)


def _ends(context: Context, training: Training) -> list[Span]:
    """Return what lies between the training parts of epochs, as callbacks reported it."""
    first, last = training.span
    reported = (phase for phase in context.phases if phase.source == FROM_CALLBACKS and phase.name in AT_THE_END)
    return union([phase.span for phase in reported if first <= phase.start_t_s < last])


def _by_stacks(context: Context, gpu: int, end: Span) -> Iterator[_Held]:
    for stacks in context.signals.idle_stacks:
        if not stacks.process.is_worker and gpu in stacks.gpus:
            yield from _by_code(stacks, end)


def _by_code(stacks: IdleStacks, end: Span) -> Iterator[_Held]:
    """Yield the user's functions that YOLO called, and the wait for the loader, by their idle time."""
    rows, share = stacks.within([end])
    calls, of = stacks.calls
    for number in np.unique(of[rows]).tolist():
        call = calls[number]
        mine = (of[rows] == number) & (stacks.waits[rows] if call is None else True)
        if not mine.any():
            continue
        first, last = rows[mine][0], rows[mine][-1]
        span = max(float(stacks.start_s[first]), end[0]), min(float(stacks.end_s[last]), end[1])
        seconds = float((stacks.idle_s[rows] * share)[mine].sum()) / max(len(stacks.gpus), 1)
        loads_s = max(th.LOADING_AT_LEAST_S, th.LOADING_SHARE * (end[1] - end[0]))
        if seconds >= (loads_s if call is None else th.HELD_AT_LEAST_S):
            yield _Held(LOADER if call is None else call, span, seconds, call)


def _by_files(waits: IntervalIndex[ProcessWait], end: Span) -> Iterator[_Held]:
    """Yield the waits of a main process for a file, by system call and filesystem."""
    mine = [wait for wait in waits(*end) if wait.start_t_s < end[1] and wait.end_t_s > end[0]]
    for kind, group in groupby(sorted(mine, key=_kind), key=_kind):
        alike = list(group)
        spans = union([(max(wait.start_t_s, end[0]), min(wait.end_t_s, end[1])) for wait in alike])
        if length_s(spans) >= th.HELD_AT_LEAST_S:
            longest = max(alike, key=lambda wait: wait.duration_s)
            yield _Held(kind, (spans[0][0], spans[-1][1]), length_s(spans), wait=longest)


def _kind(wait: ProcessWait) -> tuple[str, str]:
    return wait.call, wait.filesystem


def _lies_in(span: Span, told: Sequence[Span]) -> bool:
    """Tell whether something else has been told of the most of a span."""
    shared = sum(max(min(span[1], end) - max(span[0], start), 0.0) for start, end in told)
    return shared > (span[1] - span[0]) / 2


def _explained(context: Context, gpu: int, held: Sequence[_Held]) -> Explanation | None:
    """Return the cause in the longest of them, None where that is what the end of an epoch is made of."""
    longest = max(held, key=lambda each: each.seconds)
    signals = context.signals.of(gpu, *longest.span)
    if longest.by == LOADER:  # callbacks tell of the wait for training's loader alone; it is as long in all epochs
        signals = replace(signals, is_lasting=True, data_wait_share=None)
    if longest.call is not None:  # whatever YOLO's own share of an epoch's end is, a callback is none of it
        signals = replace(signals, stood=Stood(0.0, longest.call, 1.0, 0.0))
    explained = explain(signals, kernel_was_read=context.run.kernel.status == "read")
    row = CAUSES[explained.cause.name]
    if not explained.cause.confidence or row.phase or (longest.by == LOADER and not row.is_input):
        return None
    return explained


def _advice(held: _Held) -> tuple[Advice, ...]:
    """Return where to write to, of YOLO's own files."""
    if held.call is not None or held.wait is None or held.wait.call not in WRITES:
        return ()
    on = f" ({held.wait.filesystem})" if held.wait.filesystem else ""
    short = "Set `project` to a folder on a faster disk"
    return (Advice(f"{short}: the training waited while it wrote {held.wait.file}{on}", "project", short=short),)


def _finding(context: Context, gpu: int, held: _Held, explained: Explanation) -> Finding:
    epoch, _ = context.place_at(held.span[0])
    by = f" for `{held.call.function}`" if held.call is not None else ""
    return context.finding(
        "held-epoch-end",
        "warning",
        held.span,
        f"The end of an epoch waited {held.seconds:.1f} s{by}",
        gpu=gpu,
        epoch=epoch,
        at_boundary=True,
        evidence=(*evidence(("the GPU was idle", held.seconds, "s")), *explained.evidence),
        cause=explained.cause,
        advice=explained.advice or _advice(held),
    )
