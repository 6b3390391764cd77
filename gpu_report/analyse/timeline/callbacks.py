"""What callbacks inside YOLO's processes reported: phases, where there are any, and the epochs in them."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse.timeline import thresholds as th
from gpu_report.analyse.timeline.activity import Activity
from gpu_report.analyse.timeline.epoch_ends import EpochEnd, EpochEnds
from gpu_report.analyse.timeline.ranks import rank_groups
from gpu_report.analyse.timeseries.intervals import Span, minus, union
from gpu_report.model import FROM_CALLBACKS, EpochRow, InsideEpoch, InsideRun, Phase, Run

FROM_COMMAND = "start of the command"

SLACK_S = 0.05  # two callbacks that follow each other, one ending an epoch, the other beginning its validation

Key = tuple[int, float]  # a YOLO run's number, and when an epoch's training began


@dataclass(frozen=True)
class CallbackView:
    """What rank 0 of every process of YOLO reported, in order of time; empty where nothing was recorded from inside.

    `spans` are the processes from their first to their last phase. `epoch_ends` are the ends of their epochs, `epochs`
    what was counted in each, by its row's run and start.
    """

    phases: tuple[Phase, ...]
    spans: tuple[Span, ...]
    epoch_ends: tuple[EpochEnd, ...]
    epochs: Mapping[Key, InsideEpoch]

    def covers(self, t_s: float) -> bool:
        """Tell whether a moment lies in a process that reported its phases."""
        return any(start <= t_s <= end for start, end in self.spans)

    def activity(self, seen: Activity, duration_s: float, *, others: bool) -> Activity:
        """Return startup and idle as they were reported, and where nothing was reported as they were seen from outside.

        Without `others` (YOLO runs that reported nothing) what lies outside all processes is idle.
        """
        if not self.spans:
            return seen
        reported = [p.span for p in self.phases if p.name == "startup"]
        startups = union([*reported, *minus(seen.startups, self.spans)]) if others else union(reported)
        idle = minus(seen.idle, self.spans) if others else minus([(0.0, duration_s)], self.spans)
        return replace(seen, startups=tuple(startups), idle=tuple(minus(idle, startups)))


def callback_view(run: Run) -> CallbackView:
    """Return what the callbacks of rank 0 reported; other ranks keep step with it."""
    found: list[Phase] = []
    spans: list[Span] = []
    epoch_ends: list[EpochEnd] = []
    epochs: dict[Key, InsideEpoch] = {}
    rows: dict[tuple[int, int], list[EpochRow]] = {}
    for row in run.epoch_rows:
        rows.setdefault((row.run, row.epoch), []).append(row)
    for number, segment, process in _numbered(run):
        phases = [_reported(phase) for phase in process.phases if phase.end_t_s > phase.start_t_s]
        ends = _Ends(phases, [phase.start_t_s for phase in phases], rows)
        for epoch in process.epochs:
            if epoch.end_t_s is None:
                continue
            first = epoch is process.epochs[0]
            epoch_end = ends.epoch_end(number, segment, epoch, epoch.end_t_s, first=first)
            epoch_ends.append(replace(epoch_end, partial=_is_partial(process, epoch)))
            epochs[number, epoch.start_t_s] = epoch
        found += phases
        spans += [(phases[0].start_t_s, phases[-1].end_t_s)] if phases else []
    imports = _imports(run, found)
    found += imports
    spans += [phase.span for phase in imports]
    epoch_ends.sort(key=lambda epoch_end: epoch_end.row.row_t_s)
    return CallbackView(tuple(sorted(found, key=lambda p: p.start_t_s)), tuple(union(spans)), tuple(epoch_ends), epochs)


def _is_partial(process: InsideRun, epoch: InsideEpoch) -> bool:
    """Tell whether a training's last epoch ended before its loader did, as where `time=` is over."""
    whole = process.settings.get("batches")
    if not isinstance(whole, int) or epoch is not process.epochs[-1]:
        return False
    return 0 < epoch.batches < th.WHOLE_EPOCH_SHARE * whole


def _reported(phase: Phase) -> Phase:
    return phase if phase.source == FROM_CALLBACKS else replace(phase, source=FROM_CALLBACKS)


def _imports(run: Run, reported: Sequence[Phase]) -> list[Phase]:
    """Return startup from each command's start to the first callback that follows: imports, the making of the model."""
    first = {t_s: min((p.start_t_s for p in reported if p.start_t_s > t_s), default=t_s) for t_s in _commands(run)}
    last_s = max(first.values(), default=-math.inf)
    busy = union([phase.span for phase in reported if phase.start_t_s < last_s])
    free = [span for start, end in first.items() if start < end for span in minus([(start, end)], busy)]
    return [Phase("startup", None, start, end, FROM_COMMAND, "imports") for start, end in free]


def _commands(run: Run) -> list[float]:
    """Return when commands were started that lived to their first callback, as far as is known."""
    started = sorted(event.t_s for event in run.events if event.kind == "command_started")
    ended = sorted(event.t_s for event in run.command_ends)
    firsts = [process.phases[0].start_t_s for process in run.inside if process.phases]
    return [t for t in started if any(t < first and not any(t < e < first for e in ended) for first in firsts)]


def _numbered(run: Run) -> Iterator[tuple[int, int, InsideRun]]:
    """Yield the processes with the number of their YOLO run, and which of its trainings they are.

    One that no watched run belongs to has a number of its own.
    """
    highest = max((yolo.number for yolo in run.yolo_runs), default=0)
    segments: Counter[int] = Counter()
    several = {id(group.main): group for group in rank_groups(run) if len(group.ranks) > 1}
    mine = [process for process in run.inside if process.rank == 0 and process.phases] or _without_rank_0(run)
    mine = [several[id(each)].with_longest_waits() if id(each) in several else each for each in mine]
    for process in sorted(mine, key=lambda process: process.phases[0].start_t_s):
        highest += process.run is None
        number = highest if process.run is None else process.run
        segments[number] += process.task == "train"
        yield number, segments[number], process


def _without_rank_0(run: Run) -> list[InsideRun]:
    """Return the lowest rank of each training on a node of a job whose rank 0 runs elsewhere."""
    return [group.main for group in rank_groups(run)]


def with_callbacks(seen: EpochEnds, inside: CallbackView) -> EpochEnds:
    """Return the ends of epochs as they were reported, and as they were seen where nothing was reported."""
    rest = [epoch_end for epoch_end in seen.all if not inside.covers(epoch_end.row.row_t_s)]
    ordered = sorted([*rest, *inside.epoch_ends], key=lambda epoch_end: epoch_end.row.row_t_s)
    return replace(seen, all=tuple(ordered))


@dataclass(frozen=True)
class _Ends:
    """The phases of one process and their starts, to look up what ended an epoch, and rows of results.csv by epoch."""

    phases: Sequence[Phase]
    starts: Sequence[float]
    rows: Mapping[tuple[int, int], Sequence[EpochRow]]

    @property
    def saves(self) -> bool:
        """Tell whether the process saves checkpoints: a node's own rank of a job that rank 0 saves for never does."""
        return any(phase.name == "checkpoint" for phase in self.phases)

    def epoch_end(self, number: int, segment: int, epoch: InsideEpoch, trained_s: float, *, first: bool) -> EpochEnd:
        """Return the end of an epoch, as if results.csv had its row, with its numbers, before the checkpoint."""
        at = bisect_left(self.starts, trained_s - SLACK_S)
        rests = {
            phase.name: phase
            for phase in self.phases[at : at + 3]
            if phase.epoch == epoch.epoch and phase.name in {"validation", "checkpoint"}
        }
        validation, checkpoint = rests.get("validation"), rests.get("checkpoint")
        saved_s = checkpoint.end_t_s if checkpoint else None
        row_s = validation.end_t_s if validation else checkpoint.start_t_s if checkpoint else trained_s
        nearest = min(self.rows.get((number, epoch.epoch), ()), key=lambda row: abs(row.row_t_s - row_s), default=None)
        metrics = nearest.metrics if nearest else {}
        row = EpochRow(number, segment, epoch.epoch, row_s, epoch.start_t_s, metrics, saved_s)
        begin_s = validation.start_t_s if validation else row_s
        pause = begin_s, saved_s if saved_s is not None else row_s
        cut = nearest is None and self.saves and validation is not None and validation is self.phases[-1]
        return EpochEnd(row, first, pause, from_callbacks=True, cut=cut)
