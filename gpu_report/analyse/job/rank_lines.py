"""In which lines of code a rank stood while it trained: in its loader, and in the rest."""

from collections.abc import Callable, Sequence

import numpy as np

from gpu_report.analyse.signals.code.stack_kinds import location_of, stacks_waiting_for_loader, waits_for_gpu
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import CodeLocation, InsideRun, ProcessStacks, Run, Stack

SHOWN = 3  # lines: what comes after them is seldom what holds a rank up
LEAST_SHARE = 0.1  # of the time: less is passing by
LEAST_S = 1.0  # noted in all: less may be chance
RANKS = "torch/distributed"  # whoever stands there waits for the other ranks

Lines = tuple[CodeLocation, ...]


def rank_lines(run: Run, rank: InsideRun) -> tuple[Lines, Lines]:
    """Return the lines of a rank's loading (its workers', else its own while it waits for data) and of its other work.

    Both are of its training, each with its share of the time; empty where that was not noted.
    """
    mine = [each for each in run.stacks if each.pid == rank.pid and not each.is_worker]
    spans = [(epoch.start_t_s, epoch.end_t_s) for epoch in rank.epochs if epoch.end_t_s is not None]
    if not mine or not spans:
        return (), ()
    trained = interval_cover(spans)
    workers = [each for each in run.stacks if each.is_worker and each.parent in {rank.pid, None}]
    waits = {id(each): set(stacks_waiting_for_loader(each)) for each in mine}
    loading = _lines("workers", workers, trained, lambda _process, number: number != 0, of_worker=True)
    if not loading:
        loading = _lines(mine[0].role, mine, trained, lambda process, number: number in waits[id(process)])
    return loading, _lines(
        mine[0].role, mine, trained, lambda process, number: _works(process, number, waits[id(process)])
    )


def _works(process: ProcessStacks, number: int, waits: set[int]) -> bool:
    """Tell whether a rank that stands in a stack does something itself: it waits for no data, GPU and rank."""
    stack = process.stacks.get(number, ())
    return bool(stack) and number not in waits and not waits_for_gpu(stack) and not _waits_for_ranks(stack)


def _waits_for_ranks(stack: Stack) -> bool:
    return any(RANKS in frame.file.replace("\\", "/") for frame in stack)


def _lines(
    role: str,
    processes: Sequence[ProcessStacks],
    trained: IntervalCover,
    counts: Callable[[ProcessStacks, int], bool],
    *,
    of_worker: bool = False,
) -> Lines:
    """Return the lines of those stacks that count, those of most of the time first."""
    spent = sums_by_key(
        (line, length)
        for process in processes
        for number, length in _seconds_by_stack(process, trained)
        if counts(process, number)
        and (line := location_of(process.stacks.get(number, ()), of_worker=of_worker)) is not None
    )
    total = sum(spent.values())
    if total < LEAST_S:
        return ()
    most = sorted(spent.items(), key=lambda each: -each[1])[:SHOWN]
    return tuple(
        CodeLocation(role, line.function, line.file, line.line, length / total)
        for line, length in most
        if length >= LEAST_SHARE * total
    )


def _seconds_by_stack(process: ProcessStacks, trained: IntervalCover) -> list[tuple[int, float]]:
    """Return for how many seconds of training a process stood in each stack, by its number."""
    inside = trained.holds((process.start_s + process.end_s) / 2)
    numbers, at = np.unique(process.number[inside], return_inverse=True)
    seconds = np.bincount(at, (process.end_s - process.start_s)[inside], minlength=len(numbers))
    return list(zip(numbers.tolist(), seconds.tolist(), strict=True))
