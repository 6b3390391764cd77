"""Where processes stood, from the notes that were made inside them: seconds by line of code."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from gpu_report.analyse.timeseries.intervals import Span, union
from gpu_report.model import Frame, ProcessStacks, Stack

# Where a loader's worker begins: what lies further out is of the process that it was forked from.
WORKER_LOOP = "_worker_loop"
# Frames that say nothing of what is done: the interpreter's own, the standard library's, torch's, and ours.
PLUMBING = re.compile(
    r"^<(?!ipython)|[\\/]lib[\\/]python3[^\\/]*[\\/](?!site-packages|dist-packages)|[\\/]site-packages[\\/]torch[\\/]"
    r"|[\\/]gpu_report_inside[\\/]",
    re.IGNORECASE,
)

# Frames of the main process while it waits for the loader's workers.
LOADER = re.compile(r"[\\/]torch[\\/]utils[\\/]data[\\/]dataloader\.py$")

Seconds = dict[Frame, float]


def stood_in_loader(stacks: Sequence[ProcessStacks], span: Span) -> float | None:
    """Return the share (0 to 1) of a span in which main processes waited for their loader, None without notes.

    Of several ranks the least: one that does not wait for data is what the others wait for.
    """
    shares = []
    for process in stacks:
        seconds = _seconds(process, [span]) if not process.is_worker else {}
        total = sum(seconds.values())
        if total > 0:
            waited = sum(spent for number, spent in seconds.items() if _waits(process.stacks.get(number, ())))
            shares.append(waited / total)
    return min(shares, default=None)


@lru_cache(maxsize=4096)
def _waits(stack: Stack) -> bool:
    return any(LOADER.search(frame.file) for frame in stack)


def stood(process: ProcessStacks, spans: Sequence[Span], *, of_worker: bool) -> Seconds:
    """Return the seconds that a process stood at each location within spans."""
    seconds: Seconds = {}
    for number, spent in _seconds(process, spans).items():
        frame = location_of(process.stacks.get(number, ()), of_worker=of_worker)
        if frame is not None:
            seconds[frame] = seconds.get(frame, 0.0) + spent
    return seconds


def _seconds(process: ProcessStacks, spans: Sequence[Span]) -> Mapping[int, float]:
    """Return the seconds that a process stood in each of its stacks within spans, which may be many."""
    edges = np.array(union(spans), dtype=float).reshape(-1, 2)
    if not len(edges):
        return {}
    so_far = np.concatenate([[0.0], np.cumsum(edges[:, 1] - edges[:, 0])])
    known = np.column_stack([so_far[:-1], so_far[1:]]).ravel()
    ends, starts = (np.interp(at, edges.ravel(), known) for at in (process.end_s, process.start_s))
    numbers, places = np.unique(process.number, return_inverse=True)
    seconds = np.bincount(places, np.maximum(ends - starts, 0.0), minlength=len(numbers))
    return {number: spent for number, spent in zip(numbers.tolist(), seconds.tolist(), strict=True) if spent > 0}


@lru_cache(maxsize=4096)
def location_of(stack: Stack, *, of_worker: bool = False) -> Frame | None:
    """Return the innermost frame of a stack that is no plumbing; of a worker that waits for work None.

    A stack that is nothing else is named by its innermost frame.
    """
    if of_worker:
        inner = next((at for at, frame in enumerate(stack) if frame.function == WORKER_LOOP), len(stack))
        stack = stack[:inner]
        return next((frame for frame in stack if not PLUMBING.search(frame.file)), None)
    return next((frame for frame in stack if not PLUMBING.search(frame.file)), stack[0] if stack else None)
