"""Where runs are analysed: on any `concurrent.futures.Executor`, whose workers may be killed at any time.

What a worker that was killed had been given is done once more, one run at a time: a run that kills its worker twice by
itself (out of memory, mostly) is one that cannot be read, and no other run is lost with it.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from gpu_report.errors import UsageError
from gpu_report.fleet.extra import need
from gpu_report.fleet.places import RunPlace
from gpu_report.fleet.read_runs import ReadRun, failed, prepare_worker, read_runs
from gpu_report.usable_cores import usable_cores

MOST_RUNS = 200  # of a task: a scheduler of Dask keeps what it knows of each task (distributed #3898)
LOCAL_RUNS = 20  # of a task for a process of this machine: fewer are analysed sooner than one more process starts
TASKS_A_WORKER = 4  # at least: the last of them end about together
AHEAD = 3  # tasks a worker that are submitted: what may have to be done again when workers are killed
TRIES = 2  # of a task, then of each of its runs by itself
CONNECT_S = 20  # until a scheduler of Dask must have answered
KILLED = f"its worker was killed {TRIES} times while it read this run: out of memory?"


@dataclass(frozen=True)
class Workers:
    """Workers of one kind: `start` makes their executor, anew after `died` was raised by one of its futures.

    A task has `least_runs` to `most_runs`. `stop` ends an executor without waiting, `close` all that was opened.
    """

    start: Callable[[], Executor]
    count: int
    least_runs: int
    most_runs: int
    died: tuple[type[BaseException], ...]
    stop: Callable[[Executor], None]
    close: Callable[[], None] = lambda: None


def processes(jobs: int | None) -> Workers:
    """Return processes of this machine, as many as it has cores for us where no number is given."""
    count = jobs or usable_cores()

    def start() -> Executor:
        # Not forked: threads of the libraries would be missing in the child, and their locks held for ever.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(count, mp_context=context, initializer=_prepare_process)

    def stop(pool: Executor) -> None:
        pool.shutdown(wait=False, cancel_futures=True)

    return Workers(start, count, LOCAL_RUNS, LOCAL_RUNS, (BrokenExecutor,), stop)


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the command: it stops its processes itself
    prepare_worker()


def dask(address: str) -> Workers:
    """Return the workers of a Dask scheduler; UsageError where it cannot be reached, or has none."""
    need("distributed")
    from distributed import Client, KilledWorker  # noqa: PLC0415 - the extra [fleet], only when it is asked for

    try:
        client: Any = Client(address, timeout=CONNECT_S)  # type: ignore[no-untyped-call]
        client.wait_for_workers(1, timeout=CONNECT_S)
    except (OSError, TimeoutError, ValueError) as error:
        raise UsageError(f"no Dask scheduler with a worker answers at {address}: {error or 'timeout'}") from error
    count = sum(client.nthreads().values())
    return Workers(
        start=lambda: client.get_executor(pure=False),
        count=count,
        least_runs=1,
        most_runs=MOST_RUNS,
        died=(KilledWorker, CancelledError),
        stop=lambda pool: pool.shutdown(wait=False),
        close=client.close,
    )


@dataclass(frozen=True)
class _Task:
    """Runs that are read together, and how often a worker was killed meanwhile."""

    places: tuple[RunPlace, ...]
    deaths: int = 0


def read_all(places: Sequence[RunPlace], workers: Workers) -> Iterator[ReadRun]:
    """Yield the rows of all runs in their order."""
    waiting = deque(_tasks(places, workers))
    while waiting:
        yield from _until_one_dies(waiting, workers)
        if waiting and waiting[0].deaths >= TRIES:
            yield from _one_by_one(waiting.popleft().places, workers)


def _tasks(places: Sequence[RunPlace], workers: Workers) -> Iterator[_Task]:
    size = max(workers.least_runs, min(workers.most_runs, len(places) // max(workers.count * TASKS_A_WORKER, 1)))
    return (_Task(tuple(places[at : at + size])) for at in range(0, len(places), size))


def _until_one_dies(waiting: deque[_Task], workers: Workers) -> Iterator[ReadRun]:
    """Yield the rows of tasks in their order, until a worker was killed: what was not read by then waits again."""
    running: deque[tuple[_Task, Future[list[ReadRun]]]] = deque()
    pool = workers.start()
    try:
        while waiting or running:
            while waiting and len(running) < AHEAD * workers.count and waiting[0].deaths < TRIES:
                running.append((waiting[0], pool.submit(read_runs, waiting[0].places)))
                waiting.popleft()
            if not running:
                return
            yield from running[0][1].result()
            running.popleft()
    except workers.died:
        waiting.extendleft(replace(task, deaths=task.deaths + 1) for task, _ in reversed(running))
    finally:
        workers.stop(pool)


def _one_by_one(places: Sequence[RunPlace], workers: Workers) -> Iterator[ReadRun]:
    """Yield the rows of runs of which one alone is given to the workers at a time, so that its fate is its own."""
    pool = workers.start()
    try:
        for place in places:
            for _ in range(TRIES):
                try:
                    (read,) = pool.submit(read_runs, (place,)).result()
                    break
                except workers.died:
                    workers.stop(pool)
                    pool = workers.start()
            else:
                read = failed(place, KILLED, may_pass=True)
            yield read
    finally:
        workers.stop(pool)
