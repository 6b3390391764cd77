"""What the GPUs waited for, as a whole: the time of each role's processes by stack, over the run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.analyse.context import Context
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks
from gpu_report.analyse.signals.code.stack_kinds import WAIT_FOR_GPU, WORKERS, kind_of, shown_frames
from gpu_report.analyse.timeline.phase_index import PhaseIndex
from gpu_report.analyse.timeseries.distinct import distinct
from gpu_report.analyse.timeseries.intervals import parts
from gpu_report.model import CodeFrame, CodeKind, CodeLine, CodeTime, Stack

MOST_BUCKETS = 600  # of a run: a day is seen in stretches of 144 s, and 8 workers take 0.4 MB of the page
LEAST_BUCKET_S = 0.5  # ten notes of a main process
# Of all stacks of a role, those that took most time; what others took counts for the longest beginning they have in
# common with one of these. A line that took a thousandth of the time is among them.
MOST_STACKS = 300
MOST_LINES = 20  # a table that is read: on a CPU training they held three quarters of the idle time
LEAST_IDLE_S = 0.1  # two notes: less is chance

Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
_WaitsFor = Literal["data", "gpu", "ranks"] | None


def code_time(context: Context) -> tuple[CodeTime, ...]:
    """Return where each role's processes spent their time, of roles that were noted at all."""
    roles: dict[str, list[IdleStacks]] = {}
    for process in context.signals.idle_stacks:
        role = WORKERS if process.process.is_worker else process.process.role
        roles.setdefault(role, []).append(process)
    phases = PhaseIndex(context.phases)
    bucket_s = max(context.run.duration_s / MOST_BUCKETS, LEAST_BUCKET_S)
    all_time = [_of_role(role, processes, phases, bucket_s) for role, processes in roles.items()]
    return tuple(sorted(all_time, key=lambda time: (time.role == WORKERS, -float(time.idle_gpu_s.sum()))))


def code_lines(all_time: Sequence[CodeTime], *, by_idle: bool = True) -> tuple[CodeLine, ...]:
    """Return the lines in which processes stood while GPUs were idle for longest, the worst first.

    Not `by_idle`, where no GPU was read, they are those that main processes stood in for longest.

    Start-up is left out, as it is of what is said of training, unless a role came no further. A line is the innermost
    of the user's own or YOLO's, else of a library.
    """
    mine = [time for time in all_time if by_idle or time.role != WORKERS]
    lines = [line for time in mine for line in _lines(time, by_idle=by_idle)]
    ranked = sorted(lines, key=lambda line: -line.ranked_s(by_idle=by_idle))
    return tuple(line for line in ranked[:MOST_LINES] if line.ranked_s(by_idle=by_idle) >= LEAST_IDLE_S)


def _lines(time: CodeTime, *, by_idle: bool) -> Iterator[CodeLine]:
    """Yield the lines of a role, each with its time in all stacks that end there."""
    stacks_of: dict[tuple[CodeFrame, _WaitsFor], list[int]] = {}
    for at, stack in enumerate(time.stacks):
        own = [frame for frame in stack if frame.kind in {"own", "yolo"}]
        stacks_of.setdefault(((own or stack)[-1], _waits_for(stack)), []).append(at)
    for (line, waits), stacks in stacks_of.items():
        mine = np.isin(time.stack, stacks) & time.after_startup
        idle, seconds = time.idle_gpu_s[mine], float(time.seconds[mine].sum())
        by_phase = np.bincount(time.phase[mine], idle if by_idle else time.seconds[mine], minlength=len(time.phases))
        phase = time.phases[int(by_phase.argmax())]
        place = (time.role, line.function, line.file, line.line)
        yield CodeLine(*place, seconds, float(idle.sum()), phase, waits)


def _waits_for(stack: Sequence[CodeFrame]) -> _WaitsFor:
    """Return what a stack waits for, as far as its frames say."""
    kinds = {frame.kind for frame in stack}
    return "data" if "loader" in kinds else "ranks" if "ranks" in kinds else "gpu" if "gpu" in kinds else None


def _of_role(role: str, processes: Sequence[IdleStacks], phases: PhaseIndex, bucket_s: float) -> CodeTime:
    places: dict[Stack, int] = {}
    sums = [each for process in processes for each in _sums_of(process, phases, bucket_s, places)]
    bucket, phase, place, seconds, idle = (np.concatenate(column) for column in zip(*sums, strict=True))
    stacks, of_place = _merged_stacks(tuple(places), _shares(place, seconds, idle, len(places)))
    shape = (len(phases.names), max(len(stacks), 1))
    unique, at = np.unique(_joined(bucket, phase, of_place[place], shape), return_inverse=True)
    return CodeTime(
        role,
        bucket_s,
        tuple(_frames(stack, on_gpu=any(process.gpus for process in processes)) for stack in stacks),
        phases.names,
        *_parted(unique, shape),
        seconds=_sums(at, seconds, len(unique)),
        idle_gpu_s=_sums(at, idle, len(unique)),
    )


def _joined(bucket: Counts, phase: Counts, stack: Counts, shape: tuple[int, int]) -> Counts:
    """Return one number for each bucket, phase and stack; `shape` is how many of the last two there are."""
    return (bucket * shape[0] + phase) * shape[1] + stack


def _parted(numbers: Counts, shape: tuple[int, int]) -> tuple[Counts, Counts, Counts]:
    """Return bucket, phase and stack of the numbers that `_joined` made of them."""
    return numbers // (shape[0] * shape[1]), numbers // shape[1] % shape[0], numbers % shape[1]


def _frames(stack: Stack, *, on_gpu: bool) -> tuple[CodeFrame, ...]:
    """Return a stack with whose code each frame is, and with what its last line calls in C.

    Without a GPU nothing waits for one, whatever a call is named.
    """
    frames = [CodeFrame(frame.function, frame.file, frame.line, kind_of(frame)) for frame in stack]
    if last := stack[-1].called if stack else "":
        waits = frames[-1].kind == "ranks"
        kind: CodeKind = "ranks" if waits else "gpu" if on_gpu and last in WAIT_FOR_GPU else "library"
        frames.append(CodeFrame(f"{last}()", stack[-1].file, stack[-1].line, kind))
    return tuple(frames)


def _sums_of(
    process: IdleStacks, phases: PhaseIndex, bucket_s: float, places: dict[Stack, int]
) -> Iterator[tuple[npt.NDArray[Any], ...]]:
    """Yield bucket, phase, place in `places`, seconds and idle GPU seconds of a process, some of its pieces at a time.

    Of a worker only what it was at work in. `places` takes up the stacks that are new. The pieces of a day are a
    million, their sums 30,000.
    """
    of = process.process
    shown, at = distinct(process.number, lambda number: shown_frames(of.stacks.get(number, ()), of_worker=of.is_worker))
    place = np.array([places.setdefault(stack, len(places)) if stack else -1 for stack in shown], dtype=np.int64)
    shape = (len(phases.names), max(len(shown), 1))
    for part in parts(len(process.number)):
        rows = part.start + np.flatnonzero(place[at[part]] >= 0)
        middle_s = process.middle_s(rows)
        keys = _joined((middle_s // bucket_s).astype(np.int64), phases(middle_s), at[rows], shape)
        row, unique = pd.factorize(keys)
        bucket, phase, stack = _parted(unique, shape)
        weights = (process.seconds(rows), process.idle_s[rows])
        yield bucket, phase, place[stack], *(_sums(row, weight, len(unique)) for weight in weights)


def _shares(place: Counts, seconds: Floats, idle_gpu_s: Floats, count: int) -> Floats:
    """Return of each stack its share of the time or of the idle time, whichever is larger."""
    sums = (np.bincount(place, weight, minlength=count) for weight in (seconds, idle_gpu_s))
    largest: Floats = np.max([each / max(float(each.sum()), 1e-9) for each in sums], axis=0)
    return largest


def _merged_stacks(stacks: Sequence[Stack], shares: Floats) -> tuple[tuple[Stack, ...], Counts]:
    """Return the stacks that are told apart, and for each of those given which of them it counts for."""
    most = [stacks[at] for at in np.argsort(-shares, kind="stable")[:MOST_STACKS].tolist()]
    beginnings = {stack[:length] for stack in most for length in range(1, len(stack) + 1)}
    places: dict[Stack, int] = {}
    of_each = [places.setdefault(_longest_known(stack, beginnings), len(places)) for stack in stacks]
    return tuple(places), np.array(of_each, dtype=np.int64)


def _longest_known(stack: Stack, beginnings: set[Stack]) -> Stack:
    return next((stack[:length] for length in range(len(stack), 1, -1) if stack[:length] in beginnings), stack[:1])


def _sums(at: Counts, values: Floats, count: int) -> Floats:
    return np.bincount(at, values, minlength=count).astype(np.float64)
