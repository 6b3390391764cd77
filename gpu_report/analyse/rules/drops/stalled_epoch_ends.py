"""Rule: what the end of every epoch waits for, though they are all alike: a callback, a slow disk, a slow loader.

Only lines of code and the kernel tell of it: how long a validation or a checkpoint should take nobody knows.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from gpu_report.analyse.causes import Explanation, explain
from gpu_report.analyse.causes.main_process import in_validations
from gpu_report.analyse.causes.weights_storage import WRITES, fewer_files, save_elsewhere
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.drops.at_epoch_end import AT_THE_END
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.signals.code.stack_kinds import serves_validation
from gpu_report.analyse.signals.code.stack_profile import IdleLocation
from gpu_report.analyse.signals.host.process_waits import is_named
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, length_s, union
from gpu_report.catalogue import CAUSES, LOADER
from gpu_report.model import FROM_CALLBACKS, Advice, CodeLocation, Finding, Frame, ProcessWait
from gpu_report.wording import place_words

ROWS = 2  # of the host: one of them lies within a span of this many, whenever it begins


@dataclass(frozen=True)
class _StalledEnd:
    """What the end of one epoch (its number) waited for: from when to when, and for how many seconds of that.

    `by` names it, the same in all epochs. `call` is the function of the user's that YOLO called, `wait` the longest one
    for a file, where it was one of these. `serves_validation` says that validations need what the function gives.
    """

    by: str
    end: int
    span: Span
    seconds: float
    call: Frame | None = None
    wait: ProcessWait | None = None
    serves_validation: bool = False


def stalled_epoch_ends(context: Context) -> list[Finding]:
    """Report what took STALLS_SHARE of all epochs at the ends of most, one finding an epoch.

    Of a training with a single end that is what takes as long as a drop must: nothing says that the next is shorter.
    """
    return [finding for training in context.trainings for finding in _of_training(context, training)]


def _of_training(context: Context, training: Training) -> Iterator[Finding]:
    gpu, ends = min(training.gpus, default=None), _ends(context, training)
    if gpu is None or not ends:
        return
    least_s = th.STALLS_SHARE * (length_s(training.train_spans) + length_s(ends))
    held = list(_held(context, gpu, ends))
    told: list[Span] = []
    for by in dict.fromkeys(each.by for each in sorted(held, key=_is_file)):
        cover = interval_cover(told)
        mine = [each for each in held if each.by == by and not _is_reported(each, cover)]
        times = len({each.end for each in mine})
        recurs = times > 1 and times >= th.STALLS_OF_ENDS * len(ends)
        is_long = any(each.seconds >= context.options.drop_seconds for each in mine)
        counts = recurs or (len(ends) == 1 and by != LOADER and is_long)
        is_much = counts and sum(each.seconds for each in mine) >= least_s
        explained = _explained(context, gpu, mine) if is_much else None
        if explained is not None:
            told += [each.span for each in mine]
            yield from (_finding(context, training, each, explained) for each in mine)


def _is_file(held: _StalledEnd) -> bool:
    """Tell whether it is a wait for a file: a callback that waits for one is a callback, and comes before."""
    return held.wait is not None


def _is_reported(held: _StalledEnd, told: IntervalCover) -> bool:
    """Tell whether something else has been told of most of its time."""
    return told.seconds_in(held.span) > (held.span[1] - held.span[0]) / 2


def _ends(context: Context, training: Training) -> list[Span]:
    """Return what lies between the training parts of epochs, as callbacks reported it."""
    first, last = training.span
    reported = (phase for phase in context.phases if phase.source == FROM_CALLBACKS and phase.name in AT_THE_END)
    return union([phase.span for phase in reported if first <= phase.start_t_s < last])


def _held(context: Context, gpu: int, ends: Sequence[Span]) -> Iterator[_StalledEnd]:
    mains = [each for each in context.signals.idle_stacks if not each.process.is_worker and gpu in each.gpus]
    pids = {each.process.pid for each in mains}
    files = [w for w in context.run.waits if w.role == "main" and is_named(w) and (not pids or w.pid in pids)]
    waits = IntervalIndex(files, lambda wait: wait.span)
    for number, end in enumerate(ends):
        for stacks in mains:
            yield from _by_code(stacks, number, end)
        yield from _by_files(waits, number, end)


def _by_code(stacks: IdleStacks, number: int, end: Span) -> Iterator[_StalledEnd]:
    """Yield the user's functions that YOLO called, and the wait for the loader, by their idle time."""
    rows, share = stacks.within([end])
    calls, of = stacks.calls
    idle_s = stacks.idle_s[rows] * share / max(len(stacks.gpus), 1)
    loads_s = max(th.LOADING_AT_LEAST_S, th.LOADING_SHARE * (end[1] - end[0]))
    for at in np.unique(of[rows]).tolist():
        call = calls[at]
        mine = (of[rows] == at) & (stacks.waits[rows] if call is None else True)
        if float(idle_s[mine].sum()) >= (loads_s if call is None else th.STALL_LEAST_S):
            by = LOADER if call is None else call.named
            starts, stops = np.maximum(stacks.start_s[rows[mine]], end[0]), np.minimum(stacks.end_s[rows[mine]], end[1])
            stack = stacks.process.stacks.get(int(stacks.number[rows[mine][0]]), ())
            for span, seconds in _stretches(starts, stops, idle_s[mine]):
                yield _StalledEnd(by, number, span, seconds, call, serves_validation=serves_validation(stack))


def _stretches(starts: Floats, stops: Floats, idle_s: Floats) -> Iterator[tuple[Span, float]]:
    """Yield pieces that follow each other as one, with their idle seconds.

    What is done between the batches of a validation takes so much of them, from the first on.
    """
    breaks = np.flatnonzero(starts[1:] - stops[:-1] > th.STALLS_APART_S) + 1
    for part in np.split(np.arange(len(starts)), breaks):
        start, stop, seconds = float(starts[part[0]]), float(stops[part[-1]]), float(idle_s[part].sum())
        if seconds > 0:
            yield (start, stop if 2 * seconds >= stop - start else start + seconds), seconds


def _by_files(waits: IntervalIndex[ProcessWait], number: int, end: Span) -> Iterator[_StalledEnd]:
    """Yield the waits of a main process for a file, by system call and filesystem."""
    mine = [wait for wait in waits(*end) if wait.start_t_s < end[1] and wait.end_t_s > end[0]]
    for kind, group in groupby(sorted(mine, key=_kind), key=_kind):
        alike = list(group)
        longest = max(alike, key=lambda wait: wait.duration_s)
        for span in union([(max(wait.start_t_s, end[0]), min(wait.end_t_s, end[1])) for wait in alike]):
            if span[1] - span[0] >= th.STALL_LEAST_S:
                yield _StalledEnd(" ".join(kind), number, span, span[1] - span[0], wait=longest)


def _kind(wait: ProcessWait) -> tuple[str, str]:
    return wait.call, wait.filesystem


def _explained(context: Context, gpu: int, held: Sequence[_StalledEnd]) -> Explanation | None:
    """Return the cause in the longest of them, None where that is what the end of an epoch is made of."""
    longest = max(held, key=lambda each: each.seconds)
    signals = context.signals.of(gpu, *_with_a_row(context, longest.span))
    if longest.by == LOADER:  # callbacks tell of the wait for training's loader alone; it is as long in all epochs
        signals = replace(signals, is_steady=True, data_wait_share=None)
    if longest.call is not None:  # whatever YOLO's own share of an epoch's end is, a callback is none of it
        alone = signals.idle_location is None or signals.idle_location.is_alone
        cpu_pct = context.signals.cpu_in_call(gpu, longest.call, [(held[0].span[0], held[-1].span[1])])
        idle_location = IdleLocation(0.0, None, 0.0, None, longest.call, 1.0, cpu_pct=cpu_pct, is_alone=alone)
        signals = replace(signals, idle_location=idle_location)
    explained = explain(signals, kernel_was_read=context.run.kernel.status == "read")
    row = CAUSES[explained.cause.name]
    if not explained.cause.confidence or row.phase or (longest.by == LOADER and not row.is_input):
        return None
    return explained


def _with_a_row(context: Context, span: Span) -> Span:
    """Return a span in which there is a reading of the host: one that is shorter is drawn out to both sides."""
    lacks_s = max(ROWS * (context.run.recording.interval_s or 1.0) - (span[1] - span[0]), 0.0)
    return span[0] - lacks_s / 2, span[1] + lacks_s / 2


def _advice(
    held: _StalledEnd, call: Frame | CodeLocation | None, cause: str, args: Mapping[str, object]
) -> tuple[Advice, ...]:
    """Return how a callback of the user's holds up no epoch, and where to write to, of YOLO's own files.

    A thread helps where the callback waits: one that computes keeps Python's lock (GIL). What is called in a validation
    gives that its results.
    """
    if call is not None and held.serves_validation and call.line:
        return (in_validations(place_words(call), cause),)
    if call is not None:
        where = "a background thread or process" if cause == "trainer-blocked" else "another process, less often"
        what = place_words(call) if call.line else f"`{call.function.replace('`', chr(39))}`"
        short = f"Run {what} in {where}, or once after the training"
        return (Advice(f"{short}: then no epoch waits for it", short=short),)
    if held.wait is None or held.wait.call not in WRITES:
        return ()
    return save_elsewhere(held.wait), *fewer_files(args)


def _finding(context: Context, training: Training, held: _StalledEnd, explained: Explanation) -> Finding:
    gpu = min(training.gpus)
    epoch, phase = context.place_at(held.span[0])
    call = (held.call and context.signals.place_in_call(gpu, held.call, [held.span])) or held.call
    what = f"{call.function}()" if call else LOADER if held.wait is None else f"a file ({held.wait.call})"
    who = f"{'the GPU was idle' if held.wait is None else 'the main process waited'}, at longest"
    return context.finding(
        "held-epoch-end",
        "warning",
        held.span,
        f"The end of an epoch waited for {what}",
        gpu=gpu,
        epoch=epoch,
        phase=phase,
        at_boundary=True,
        evidence=(*evidence((who, held.seconds, "s")), *explained.evidence),
        cause=explained.cause,
        advice=explained.advice or _advice(held, call, explained.cause.name, training.args),
        waited_for=held.by,
    )
