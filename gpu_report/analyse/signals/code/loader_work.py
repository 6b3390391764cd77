"""What the loader's workers did: what a setting can do against it, and which code of the user's takes their time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks, WorkKind
from gpu_report.analyse.signals.code.stack_kinds import kind_of, of_worker_alone
from gpu_report.analyse.signals.code.stack_profile import LEAST_IDLE_S
from gpu_report.analyse.timeseries.intervals import Span, length_s
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import Frame, Stack

KINDS = len(WorkKind._fields)


@dataclass(frozen=True)
class LoaderWork:
    """Shares (0 to 1) of the GPU's idle time that workers spent reading images, in a lock, asking, and reading .npy.

    Reading is what a cache does away with: reading, decoding and resizing by YOLO's own code. A process that is asked
    is a server of Python's `multiprocessing`, such as a `Manager`: one for all of them.
    """

    reading: float
    in_lock: float
    asking: float = 0.0
    npy: float = 0.0

    @property
    def waits_for_lock(self) -> bool:
        """Tell whether the workers wait for each other."""
        return self.in_lock >= th.SHARED_WAIT_SHARE

    @property
    def waits_for_process(self) -> bool:
        """Tell whether the workers wait for one process that answers them all."""
        return self.asking >= th.SHARED_WAIT_SHARE

    @property
    def waits_for_shared(self) -> bool:
        """Tell whether the workers wait for what they share, so that more of them would wait for it, too."""
        return self.waits_for_lock or self.waits_for_process


@dataclass(frozen=True)
class WorkerCode:
    """The function of the user's that took most of the workers' time, at its worst line, and its share (0 to 1)."""

    line: Frame
    share: float


def loader_work(processes: Sequence[IdleStacks], spans: Sequence[Span] | None = None) -> LoaderWork | None:
    """Return what the workers among some processes did in some spans, None where too little was noted of them.

    Without spans it is all of the time.
    """
    sums = np.zeros(KINDS)
    for each in processes:
        if each.process.is_worker:
            sums += _sums(each, spans)
    total, *parts = sums.tolist()
    return LoaderWork(*(part / total for part in parts)) if total >= LEAST_IDLE_S else None


def waited_for_workers_s(processes: Sequence[IdleStacks], spans: Sequence[Span]) -> float:
    """Return the idle GPU seconds in which trainers waited for workers that were at work."""
    return float(sum(_sums(each, spans)[0] for each in processes if each.process.is_worker))


def _sums(worker: IdleStacks, spans: Sequence[Span] | None) -> np.ndarray:
    """Return the idle GPU seconds in which a worker was at work, those in reading, in a lock and in asking."""
    kinds, of = worker.work
    rows, share = (slice(None), 1.0) if spans is None else worker.within(spans)
    idle = np.bincount(of[rows], worker.idle_s[rows] * share, minlength=len(kinds))
    return np.array(kinds, dtype=float).reshape(-1, KINDS).T @ idle


def worker_code(processes: Sequence[IdleStacks], spans: Sequence[Span]) -> WorkerCode | None:
    """Return the user's function in which the workers among some processes were longest, None without one.

    Its share is that of the time in which workers were at work, whether the trainer waited for them or not.
    """
    by_line = _worked_s(processes, spans)
    own = {line: seconds for line, seconds in by_line.items() if kind_of(line) == "own"}
    return _worst(own, sum(by_line.values())) if own else None


def _own_line(stack: Stack) -> Frame | None:
    """Return the innermost line of the user's in a worker's stack, whatever that calls."""
    line = next((frame for frame in of_worker_alone(stack) if kind_of(frame) == "own"), None)
    return None if line is None else line._replace(called="")


def own_worker_code(processes: Sequence[IdleStacks], spans: Sequence[Span]) -> Mapping[tuple[str, str], WorkerCode]:
    """Return the functions of the user's that workers were in in some spans, by file and name.

    What one has YOLO or a library do is in it. Shares are those of the time in which workers were at work.
    """
    stood = (pair for each in processes if each.process.is_worker for pair in each.stood(spans))
    by_line = sums_by_key((line, spent) for stack, spent in stood if (line := _own_line(stack)) is not None)
    whole_s, by_function = sum(_worked_s(processes, spans).values()), dict[tuple[str, str], dict[Frame, float]]()
    for line, seconds in by_line.items():
        by_function.setdefault((line.file, line.function), {})[line] = seconds
    return {function: _worst(lines, whole_s) for function, lines in by_function.items() if whole_s > 0}


def worker_places(processes: Sequence[IdleStacks], spans: Sequence[Span]) -> tuple[WorkerCode, ...]:
    """Return the function of the user's within which workers were for most of their work, and YOLO's that took most.

    Each at its worst line, and only where it took MUCH_SHARE at least. A function of the user's that calls YOLO's is
    one: what it has YOLO do is in it.
    """
    stood = (pair for each in processes if each.process.is_worker for pair in each.stood(spans))
    own = sums_by_key((line, spent) for stack, spent in stood if (line := _own_line(stack)) is not None)
    every = _worked_s(processes, spans)
    whole_s = sum(every.values())
    yolo = {line: s for line, s in every.items() if kind_of(line) != "own"}
    found = [_worst(lines, whole_s) for lines in (own, yolo) if lines and whole_s > 0]
    return tuple(code for code in found if code.share >= th.MUCH_SHARE)


def _worst(by_line: Mapping[Frame, float], whole_s: float) -> WorkerCode:
    """Return the function of most seconds, at the line of most of them, with its share of all."""
    of_function = sums_by_key(((line.file, line.function), seconds) for line, seconds in by_line.items())
    function = max(of_function, key=lambda each: of_function[each])
    worst = max((line for line in by_line if (line.file, line.function) == function), key=lambda line: by_line[line])
    return WorkerCode(worst, of_function[function] / whole_s)


def workers_at_work(processes: Sequence[IdleStacks], spans: Sequence[Span]) -> float | None:
    """Return how many workers were at work on average, computing or waiting for a file; None where none was noted."""
    if not any(each.process.is_worker for each in processes):
        return None
    return sum(_worked_s(processes, spans).values()) / length_s(spans)


def _worked_s(processes: Sequence[IdleStacks], spans: Sequence[Span]) -> dict[Frame, float]:
    """Return the seconds of all workers by line, while they were at work."""
    workers = [(each, *each.within(spans)) for each in processes if each.process.is_worker]
    by_line = (each.by_line(rows, each.seconds(rows) * share) for each, rows, share in workers)
    return sums_by_key(pair for lines in by_line for pair in lines.items())
