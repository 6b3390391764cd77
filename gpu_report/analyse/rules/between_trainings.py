"""Rule: the user's own code that a process runs between its trainings, such as a data set made anew for each."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import numpy as np

from gpu_report.analyse.causes.confidence import SUPPORTED
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.inference.gap_kinds import kind_between_calls
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.signals.code.stack_kinds import kind_of
from gpu_report.analyse.signals.thresholds import COMPUTES_CPU_PCT
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.intervals import Span, intersect, length_s
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import Advice, Cause, CodeLocation, Finding, Frame, Stack, recurring
from gpu_report.wording import amount, where_it_is

IDLE = "idle"  # the phase, and the row of the ledger, that it lies in
PAUSES = frozenset({"sleep", "accept"})  # until a time, or until somebody asks for the next training: no work
NO_WORK: Stack = ()
OWN_CPU = ("main_cpu_pct", "workers_cpu_pct")
RUNS_PROGRAMS = re.compile(r"[\\/]subprocess\.py$")
ONCE = Advice("Do this work once for all trainings, where it is the same each time, or in several processes")


def between_trainings(context: Context) -> list[Finding]:
    """Report a function of the user's in which a process stood for most of the time between its trainings.

    That is worth a word as a slow end of a command is: in all SLOW_EXIT_S or more, and SLOW_START_SHARE of the
    recording. It needs callbacks and stack samples. What ultralytics does then is no part of it.
    """
    found = (_of_process(context, pid, spans) for pid, spans in _gaps(context))
    return [each for each in found if each is not None]


def _gaps(context: Context) -> Iterator[tuple[int, list[Span]]]:
    """Yield the times between trainings of each process that trained more than once, and that after its last."""
    groups = sorted(context.rank_groups, key=lambda group: (group.main.pid, group.start_t_s))
    for pid, same in groupby(groups, key=lambda group: group.main.pid):
        mine = list(same)
        between = [(before.end_t_s, after.start_t_s) for before, after in pairwise(mine)]
        last_s = mine[-1].end_t_s
        if between:
            ended = context.run.command_end_after(last_s)
            yield pid, [*(span for span in between if span[1] > span[0]), (last_s, ended.t_s if ended else last_s)]


def _of_process(context: Context, pid: int, gaps: Sequence[Span]) -> Finding | None:
    *between, last = gaps
    stood = _stack_times(context, pid, between)
    noted_s = sum(stood.values())
    most = _deepest_of_most(stood, noted_s)
    least_s = max(th.SLOW_EXIT_S, th.SLOW_START_SHARE * context.run.duration_s)
    if most is None or noted_s < th.BETWEEN_NOTED * length_s(between):
        return None
    # a training that was to come is prepared after the last one, too: Ctrl-C may have ended that
    again_s = _within(_stack_times(context, pid, [last]), most)
    is_again = again_s > (last[1] - last[0]) / 2
    spans, took_s = gaps if is_again else between, _within(stood, most) + (again_s if is_again else 0.0)
    return _finding(context, stood, most, spans, took_s) if took_s >= least_s else None


def _stack_times(context: Context, pid: int, spans: Sequence[Span]) -> dict[Stack, float]:
    """Return how long the main thread of a process stood in each stack (s), in NO_WORK while it waited."""
    mine = (each for each in context.signals.idle_stacks if each.process.pid == pid and not each.process.is_worker)
    return sums_by_key(pair for each in mine for pair in _of_main(context, each, spans))


def _of_main(context: Context, main: IdleStacks, spans: Sequence[Span]) -> Iterator[tuple[Stack, float]]:
    waits = [number for number, stack in main.process.stacks.items() if _may_wait(stack)]
    rows, _ = main.within(spans)
    waiting = main.together(rows[np.isin(main.number[rows], waits)])
    inside = intersect([(float(start), float(end)) for start, end in waiting], spans)
    # whoever waits for its own workers, or for a thread of its own, has them work meanwhile
    used = [column_mean(context.run.host, name, inside) for name in OWN_CPU]
    works = sum(pct or 0.0 for pct in used) >= COMPUTES_CPU_PCT
    for stack, spent in main.stood(spans):
        yield NO_WORK if _may_wait(stack) and not works else stack, spent


def _may_wait(stack: Stack) -> bool:
    """Tell whether a stack may wait for others (a queue, a socket, a lock); a program that it runs is its own."""
    runs_program = any(RUNS_PROGRAMS.search(frame.file) for frame in stack)
    return kind_between_calls(stack) == "waiting for calls" and not runs_program


def _within(stood: Mapping[Stack, float], function: tuple[str, str]) -> float:
    return sum(spent for stack, spent in stood.items() if function in _functions(stack))


def _functions(stack: Stack) -> frozenset[tuple[str, str]]:
    """Return the user's functions of a stack that has none of ultralytics in it: what YOLO does is its own work.

    None of one that only pauses.
    """
    if (stack and stack[0].called in PAUSES) or not all(kind_of(frame) in {"own", "library"} for frame in stack):
        return frozenset()
    return frozenset((frame.file, frame.function) for frame in stack if kind_of(frame) == "own")


def _deepest_of_most(stood: Mapping[Stack, float], noted_s: float) -> tuple[str, str] | None:
    """Return the function that most of the time went to: of those that call each other the deepest that has most."""
    within = sums_by_key((function, spent) for stack, spent in stood.items() for function in _functions(stack))
    most_s = max(within.values(), default=0.0)
    if most_s <= noted_s / 2:
        return None
    most = [function for function, spent in within.items() if spent >= th.BETWEEN_CALLEE_SHARE * most_s]
    return max(most, key=lambda each: _depth(stood, each))


def _depth(stood: Mapping[Stack, float], function: tuple[str, str]) -> int:
    """Return how many frames lie outside a function."""
    depths = (
        len(stack) - at for stack in stood for at, frame in enumerate(stack) if (frame.file, frame.function) == function
    )
    return max(depths, default=0)


def _line(stood: Mapping[Stack, float], function: tuple[str, str]) -> Frame:
    lines = sums_by_key(
        (frame._replace(called=""), spent)
        for stack, spent in stood.items()
        for frame in stack
        if (frame.file, frame.function) == function
    )
    return max(lines, key=lambda each: lines[each])


def _finding(
    context: Context, stood: Mapping[Stack, float], function: tuple[str, str], spans: Sequence[Span], took_s: float
) -> Finding:
    whole_s = length_s(spans)
    at = CodeLocation.in_main(_line(stood, function), min(took_s / whole_s, 1.0))
    return context.finding(
        "between-trainings",
        "warning",
        (spans[0][0], spans[-1][1]),
        f"Between trainings {amount(whole_s, 's')} passed, {amount(took_s, 's')} of it in {where_it_is(at)}",
        epoch=None,
        phase=IDLE,
        evidence=evidence(
            ("between trainings", whole_s, "s"), ("in this function", took_s, "s"), ("times", float(len(spans)), "")
        ),
        cause=Cause(IDLE, SUPPORTED, f"by stack samples: {100 * at.share:.0f} % of it"),
        where=(at,),
        advice=(ONCE,),
        occurrences=recurring(spans),
    )
