"""Rule: a command that goes on for long after its training had finished, while its GPUs have little to do."""

from collections.abc import Iterator, Sequence

import numpy as np

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.code.stack_kinds import kind_of, location_of
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import Cause, CodeLocation, Finding, Frame, ProcessStacks, ThreadStacks
from gpu_report.wording import length

IDLE = "idle"  # the phase, and the row of the ledger, that it lies in
# Python waits there for the threads that are no daemons, once all else is done.
WAITS_FOR_THREADS = ("threading.py", "_shutdown")


def slow_exits(context: Context) -> list[Finding]:
    """Report what comes between the last thing that a training reported and the end of its command.

    SLOW_EXIT_S or more, and SLOW_START_SHARE of the training, count that no GPU of the run was used in: what calls a
    model now and then is part of it. It is a note: a script may have more to do than to train. A command that ends
    without having finished its training is looked at elsewhere.
    """
    last = max(context.rank_groups, key=lambda group: group.end_t_s, default=None)
    if last is None or not last.is_good:
        return []
    begun_s = max(rank.phases[-1].end_t_s for group in context.rank_groups for rank in group.ranks)
    ended = context.run.command_end_after(begun_s)
    if ended is None or (ended.fields.get("asked") == "SIGINT" and _was_at_work(context, last, (begun_s, ended.t_s))):
        return []
    span = (begun_s, ended.t_s)
    used_s = context.used_s(span)
    least_s = max(th.SLOW_EXIT_S, th.SLOW_START_SHARE * (last.end_t_s - last.start_t_s))
    return [] if used_s is None or span[1] - span[0] - used_s < least_s else [_finding(context, last, span)]


def _was_at_work(context: Context, training: RankGroup, span: Span) -> bool:
    """Tell whether Ctrl-C came while a script went on with its work: it was not ending then."""
    mine = _mains(context, training)
    return any(_noted_s(each, span) for each in mine) and not any(_waits_for_threads(each, span) for each in mine)


def _mains(context: Context, training: RankGroup) -> list[ProcessStacks]:
    return [process for process in context.run.stacks if process.pid in training.pids and not process.is_worker]


def _finding(context: Context, training: RankGroup, span: Span) -> Finding:
    took_s = span[1] - span[0]
    mine = _mains(context, training)
    waits = [process for process in mine if _waits_for_threads(process, span)]
    what = "Python waited for a thread that was still running" if waits else "its process was still running"
    signals = context.signals.of(min(context.activity.used_gpus, default=0), *span)
    return context.finding(
        "slow-exit",
        "info",
        span,
        f"The command took {length(took_s)} to end after its training had finished: {what}",
        epoch=None,
        phase=IDLE,
        evidence=evidence(
            ("from the end of the training to that of the command", took_s, "s"),
            ("CPU of the main process", signals.within("main_cpu_pct"), "% of a core"),
            ("CPU, all cores", signals.within("cpu_pct"), "%"),
        ),
        cause=Cause(IDLE, CERTAIN, what),
        where=tuple(_where(waits or mine, span, of_threads=bool(waits))),
    )


def _noted_s(notes: ProcessStacks | ThreadStacks, span: Span) -> dict[int, float]:
    """Return the seconds of a span in which each stack was noted."""
    spent = interval_cover([span]).seconds_in_each(np.column_stack([notes.start_s, notes.end_s]))
    return sums_by_key(zip(notes.number.tolist(), spent.tolist(), strict=True))


def _waits_for_threads(process: ProcessStacks, span: Span) -> bool:
    """Tell whether a process was in Python's own end, waiting for threads, for most of what was noted."""
    noted = _noted_s(process, span)
    waited = sum(s for number, s in noted.items() if any(map(_is_shutdown, process.stacks.get(number, ()))))
    return waited > sum(noted.values()) / 2


def _is_shutdown(frame: Frame) -> bool:
    file, function = WAITS_FOR_THREADS
    return frame.function == function and frame.file.endswith(f"/{file}")


def _where(processes: Sequence[ProcessStacks], span: Span, *, of_threads: bool) -> Iterator[CodeLocation]:
    """Yield the lines of most of the time, of the threads that were waited for or else of the main process."""
    lines = sums_by_key(
        (line, seconds)
        for process in processes
        for notes in (process.threads if of_threads else (process,))
        for number, seconds in _noted_s(notes, span).items()
        if seconds > 0 and (line := location_of(process.stacks.get(number, ()))) is not None
        if kind_of(line) == "own" or not of_threads
    )
    whole_s = span[1] - span[0]
    for line, seconds in sorted(lines.items(), key=lambda each: -each[1]):
        share = min(seconds / whole_s, 1.0)
        if share >= th.SLOW_EXIT_LINE_SHARE:
            yield CodeLocation.in_main(line, share)
