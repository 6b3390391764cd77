"""What a process did between its calls, by the stacks of the thread that makes them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.inference.gap_kinds import (
    PREFETCH,
    Lines,
    is_in_call,
    is_loader,
    line_between_calls,
    lines_of,
    part_of,
    waits_for_loader,
    waits_for_thread,
)
from gpu_report.analyse.inference.gap_threads import WAITING, images_read, made_by_threads, waited_for
from gpu_report.analyse.inference.main_thread_cpu import computing_s, receiving_s
from gpu_report.analyse.inference.thread_seconds import Seconds, seconds_in
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.signals.code.stack_kinds import NUMBERS, kind_of, location_of
from gpu_report.analyse.timeseries.gpu_series import Floats
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import CodeLocation, Frame, GapKind, GapPart, ProcessStacks, Stack

RECEIVING: Final = "receiving from a process"
OWN: Final = "own code"


def noted_thread(context: Context, pid: int) -> IdleStacks | None:
    """Return the notes of a process's main thread, None where there are none, or of several recordings of a pid."""
    mains = [each for each in context.signals.idle_stacks if each.process.pid == pid]
    return mains[0] if len(mains) == 1 else None


def noted_stacks(context: Context, pid: int, span: Span) -> Iterator[tuple[Stack, float]]:
    """Yield each stack of a process with how long one of its threads stood in it within a span, the main one or others.

    Nothing where there are no notes of it, or of several recordings of a pid.
    """
    notes = noted_thread(context, pid)
    if notes is None:
        return
    threads = [seconds_in(thread, span) for thread in notes.process.threads]
    for seconds in (notes.seconds_by_stack([span]), *threads):
        yield from ((notes.process.stacks.get(number, ()), spent) for number, spent in seconds.items())


def gap_parts(stacks: IdleStacks, called: Floats, span: Span, gap_s: float) -> tuple[GapPart, ...]:
    """Return what a process did between its calls within a span, the longest first.

    `gap_s` is how long it had no call then, `called` when it had one, as rows of (start, end). Notes say what share of
    the gaps went to what, for they are too few to be laid beside calls of milliseconds.
    """
    spent = stacks.seconds_by_stack([span])
    called_s = sum(s for number, s in spent.items() if is_in_call(stacks.process.stacks.get(number, ())))
    if gap_s <= 0:
        return ()
    if called_s < th.CALLS_IN_THREAD * max(span[1] - span[0] - gap_s, 0.0):
        parts = made_by_threads(stacks, called, span, gap_s)
    else:
        parts = _made_by_main(stacks, spent, span, gap_s)
    return tuple(sorted(parts, key=lambda part: -part.seconds))


def _made_by_main(stacks: IdleStacks, spent: Mapping[int, float], span: Span, gap_s: float) -> tuple[GapPart, ...]:
    """Return likewise of calls that the main thread makes, and what other threads did for which it waited."""
    computed = computing_s(stacks.process, spent, span)
    near = lines_of(stacks.process, computed).get(WAITING, {})
    kinds = _kinds(stacks.process, spent, receiving_s(stacks.process, spent, span), computed)
    noted = sum(sum(lines.values()) for lines in kinds.values())
    if noted < th.GAP_NOTES_S:
        return ()
    parts = [part_of(kind, lines, gap_s / noted, stacks.process.role, near) for kind, lines in kinds.items()]
    if any(waits_for_loader(stacks.process.stacks.get(number, ())) for number in spent):
        parts = [_read_by_yolo(part, images_read(stacks.process, span)) for part in parts]
    for_threads = sum(s for number, s in spent.items() if waits_for_thread(stacks.process.stacks.get(number, ())))
    most_s = for_threads * gap_s / noted
    waits = [found for part in parts if part.kind == WAITING for found in waited_for(stacks, part, most_s, span)]
    return (*(part for part in parts if part.kind != WAITING), *waits)


def _kinds(process: ProcessStacks, spent: Seconds, taken: Seconds, computed: Seconds) -> dict[GapKind, Lines]:
    """Return how long the main thread stood in each line between its calls, by kind.

    It waited there but for the seconds in which it took over what was sent (`taken`), or `computed`.
    """
    worked = {**taken, **computed}
    kinds = lines_of(process, {number: seconds - worked.get(number, 0.0) for number, seconds in spent.items()})
    own = kinds.get(OWN, {}), lines_of(process, computed).get(WAITING, {})
    kinds[RECEIVING] = lines_of(process, taken).get(WAITING, {})
    kinds[OWN] = sums_by_key(pair for lines in own for pair in lines.items())
    return {kind: lines for kind, lines in kinds.items() if sum(lines.values()) > 0}


def _read_by_yolo(part: GapPart, line: CodeLocation | None) -> GapPart:
    """Return a part with the line in which a thread of ultralytics reads images, where it is the wait for that."""
    is_wait = part.kind == "decoding" and part.where is not None and part.where.function == PREFETCH
    return replace(part, where=line) if is_wait and line is not None else part


def asks_for_images(stacks: IdleStacks, span: Span) -> CodeLocation | None:
    """Return the user's line that most of the time asked ultralytics for images which it reads itself."""
    lines: dict[Frame, float] = {}
    for stack, spent in stacks.stood([span]):
        own = (frame for frame in stack if kind_of(frame) == "own")
        line = next(own, None) if waits_for_loader(stack) or is_loader(stack) else None
        if line is not None:
            lines[line._replace(called="")] = lines.get(line._replace(called=""), 0.0) + spent
    most = max(lines, key=lambda each: lines[each], default=None)
    return most and CodeLocation.in_main(most, lines[most] / sum(lines.values()))


def share_within(stacks: IdleStacks, span: Span, place: CodeLocation, does: Callable[[Stack], bool]) -> float:
    """Return for which share of a function's time between calls its stacks did something (0 to 1)."""
    doing = whole = 0.0
    for stack, spent in stacks.stood([span]):
        line = line_between_calls(stack)
        if line is not None and (line.file, line.function) == (place.file, place.function):
            whole += spent
            doing += spent if does(stack) else 0.0
    return doing / whole if whole else 0.0


def makes_number(stack: Stack) -> bool:
    """Tell whether a stack makes a number of a tensor, one a call."""
    return stack[0].called in NUMBERS


def lines_within(stacks: IdleStacks, span: Span, function: str) -> tuple[CodeLocation, ...]:
    """Return the lines in which a process stood within a function that its calls have, the most time first."""
    within = (one for one in stacks.stood([span]) if any(frame.function == function for frame in one[0]))
    lines = sums_by_key(
        (line, spent) for stack, spent in within if is_in_call(stack) and (line := location_of(stack)) is not None
    )
    total = sum(lines.values())
    if total < th.GAP_NOTES_S:
        return ()
    most = sorted(lines.items(), key=lambda each: -each[1])[: th.SHOWN_LINES]
    return tuple(CodeLocation.in_main(line, s / total) for line, s in most)
