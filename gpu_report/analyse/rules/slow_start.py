"""Rule: a training that took long to begin, or never did: which part of its start-up, and in which lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpu_report.analyse.causes.confidence import CERTAIN
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.idle_stacks import IdleStacks
from gpu_report.analyse.signals.stack_notes import in_yolo, is_loader
from gpu_report.analyse.timeline.callbacks import FROM_CALLBACKS
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeseries.intervals import Floats, Indices, Span, length_s, union
from gpu_report.catalogue import LOADER
from gpu_report.model import Advice, Cause, Finding, Phase, Stack

FIRST_BATCH = "first batch"
# What people call the parts of a start-up, as callbacks tell them.
BEFORE_YOLO = "before YOLO"
WHAT = {
    BEFORE_YOLO: "ran imports and other code before YOLO",
    FIRST_BATCH: "was at its first batch",
    "data set": "prepared its data set",
    "model": "built its model",
}
WAITED, WORKED = "waited for its first batch", "worked on its first batch"
OTHERWISE = "was set up"


class DataWork(NamedTuple):
    """What is done with a whole data set before the first batch, in words, and what to do about it."""

    words: str
    advice: Advice


_SCAN = DataWork(
    "checking its images and labels",
    Advice(
        "YOLO opens each image once to check it, and writes what it found beside the labels (`*.cache`). "
        "The next run reads that, where the folder can be written and the data stay as they are",
        short="Let YOLO check the data set to its end once: the next run reads what it wrote",
    ),
)
_CACHE = DataWork(
    "filling its cache of images",
    Advice(
        "`cache=ram` decodes each image at every start. `cache=disk` writes them once, and later runs read them",
        short="Set `cache=disk`, which later runs read, or leave out `cache`",
    ),
)
# The main process writes the data set to each new worker, which imports the program first, one after the other.
_SPAWN = DataWork(
    "starting its data-loader workers",
    Advice(
        "Each worker is started as a new Python (`spawn`): it imports your program, then reads a copy of the data set. "
        "With `fork`, the default of Linux up to Python 3.13, they start at once",
        short="Start the data-loader workers with `fork`, not `spawn` (`multiprocessing_context`, `set_start_method`)",
    ),
)
# Of Python's multiprocessing: where a process waits until one that it spawns has taken what it is to work with.
SPAWNS = re.compile(r"[\\/]multiprocessing[\\/]popen_(?:spawn_posix|forkserver)\.py$")
# By the functions of YOLO (data/dataset.py, data/base.py) that do so with threads, for which the main one waits.
DATA_WORK: Mapping[str, DataWork] = {
    "cache_labels": _SCAN,
    "verify_images": _SCAN,
    "cache_images": _CACHE,
}


def slow_starts(context: Context) -> list[Finding]:
    """Report the longest part of a start-up, where it takes SLOW_START_S or more and SLOW_START_SHARE of the training.

    Of what comes before YOLO it takes SLOW_BEFORE_S.

    A training that never began has nothing else to be looked at: that is a warning, and otherwise a note. So is a
    start-up that still goes on: it may be compiling its model.
    """
    return [finding for training in context.rank_groups for finding in _of_training(context, training)]


def _of_training(context: Context, training: RankGroup) -> Iterator[Finding]:
    parts: dict[str, list[Phase]] = {}
    for phase in (*_before_yolo(context, training), *training.main.phases):
        if phase.name == "startup":
            parts.setdefault(phase.detail, []).append(phase)
    began = any(phase.name != "startup" for phase in training.main.phases)
    longest = max(parts, key=lambda detail: _seconds(parts[detail]), default=None)
    crashed = training.crashed is not None and not training.is_interrupted
    if longest is None or (crashed and not began):  # what ended it says more
        return
    took_s, whole_s = _seconds(parts[longest]), training.end_t_s - training.start_t_s
    least_s = th.SLOW_BEFORE_S if longest == BEFORE_YOLO else th.SLOW_START_S
    if took_s >= max(least_s, th.SLOW_START_SHARE * whole_s):
        spans = union([phase.span for phase in parts[longest]])
        over = training.main.ended is not None or took_s >= th.HANG_FIRST_S
        yield _finding(context, longest, spans, took_s, "began" if began else "over" if over else "going on")


def _before_yolo(context: Context, training: RankGroup) -> Iterator[Phase]:
    """Yield the time from the start of the command to the first thing that YOLO reported, of its first training.

    A command that used the GPU in it did something else first.
    """
    first_s = min(each.start_t_s for each in context.rank_groups)
    started = [event.t_s for event in context.run.events if event.kind == "command_started" and event.t_s < first_s]
    if training.start_t_s == first_s and started and not context.worked((started[-1], first_s)):
        yield Phase("startup", None, started[-1], first_s, FROM_CALLBACKS, BEFORE_YOLO)


def _seconds(phases: Sequence[Phase]) -> float:
    return length_s([phase.span for phase in phases])


def _finding(context: Context, part: str, spans: Sequence[Span], took_s: float, state: str) -> Finding:
    in_loader = _in_loader(context, spans) if part == FIRST_BATCH else None
    what = WHAT.get(part, OTHERWISE) if in_loader is None else WAITED if in_loader else WORKED
    text = {
        "began": "The training",
        "over": "The training never began: it",
        "going on": "The training has not begun: it",
    }
    work, share = _data_work(context, spans)
    mostly = f", {100 * share:.0f} % of it {work.words}" if work else ""
    longest = max(spans, key=lambda span: span[1] - span[0])
    return context.finding(
        "slow-start",
        "warning" if state == "over" else "info",
        longest,
        f"{text[state]} {what} for {took_s:.0f} s{mostly}",
        epoch=None,
        phase="startup",
        evidence=evidence((f"the training {what}", took_s, "s"), *_cpu(context, longest)),
        cause=Cause("startup", CERTAIN, f"it {what}"),
        waited_for=LOADER if in_loader and work is not _SPAWN else "",  # no worker loads anything yet
        advice=(work.advice,) if work and not _keeps(context, longest, work) else (),
    )


def _cpu(context: Context, span: Span) -> Iterator[tuple[str, float | None, str]]:
    """Yield the CPU that the processes of the training used meanwhile."""
    gpu = next((series.gpu for series in context.series), 0)
    signals = context.signals.of(gpu, *span)
    yield "CPU of the main process", signals.within("main_cpu_pct"), "% of a core"
    yield "CPU of all workers", signals.within("workers_cpu_pct"), "% of a core"
    yield "CPU, all cores", signals.within("cpu_pct"), "%"


def _data_work(context: Context, spans: Sequence[Span]) -> tuple[DataWork | None, float]:
    """Return what was done with the data set for most of some spans, and for which share (0 to 1) of what was noted."""
    by_work: dict[DataWork, float] = {}
    noted_s = 0.0
    for each, rows, noted in _noted_of_mains(context, spans):
        seconds = np.bincount(each.number[rows], noted)
        noted_s += float(seconds.sum())
        for number in np.flatnonzero(seconds).tolist():
            stack = each.process.stacks.get(number, ())
            work = _work_of(stack)
            if work is not None:
                by_work[work] = by_work.get(work, 0.0) + float(seconds[number])
    most = max(by_work, key=lambda work: by_work[work], default=None)
    if most is None or by_work[most] <= noted_s / 2:
        return None, 0.0
    return most, by_work[most] / noted_s


def _work_of(stack: Stack) -> DataWork | None:
    if any(map(is_loader, stack)) and any(SPAWNS.search(frame.file) for frame in stack):
        return _SPAWN
    return next((DATA_WORK[f.function] for f in stack if f.function in DATA_WORK and in_yolo(f)), None)


def _keeps(context: Context, span: Span, work: DataWork) -> bool:
    """Tell whether what fills a cache of images is kept for later runs already."""
    training = context.training_at(span[0])
    return work is _CACHE and training is not None and training.args.get("cache") == "disk"


def _in_loader(context: Context, spans: Sequence[Span]) -> bool | None:
    """Tell whether stacks show the main process in its loader for most of some spans, None where there are none."""
    waited_s = noted_s = 0.0
    for each, rows, seconds in _noted_of_mains(context, spans):
        noted_s += float(seconds.sum())
        waited_s += float(seconds[each.waits[rows]].sum())
    return waited_s > noted_s / 2 if noted_s > 0 else None


def _noted_of_mains(context: Context, spans: Sequence[Span]) -> Iterator[tuple[IdleStacks, Indices, Floats]]:
    """Yield each main process, the pieces of its notes in some spans, and how long it stood in each there (s)."""
    for each in context.signals.idle_stacks:
        if not each.process.is_worker:
            rows, share = each.within(spans)
            yield each, rows, each.seconds(rows) * share
