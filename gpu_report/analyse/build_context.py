"""From a run to its context: its timeline, the drops of its GPUs, and what disturbed its steady state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from gpu_report.analyse.context import Context, working_on
from gpu_report.analyse.signals.code.gil_hold_lines import with_gil_hold_lines
from gpu_report.analyse.signals.gpu.busy_wait import busy_waits_of
from gpu_report.analyse.signals.gpu.chance_drops import drops_by_chance
from gpu_report.analyse.signals.gpu.clock_fall import TrainedSteps
from gpu_report.analyse.signals.gpu.clock_throttling import throttles
from gpu_report.analyse.signals.gpu.short_pauses import short_pauses
from gpu_report.analyse.signals.gpu.throttle import Throttle
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop, find_drops
from gpu_report.analyse.signals.host.other_processes import OtherProcess, other_processes_on
from gpu_report.analyse.signals.loader_bursts import drops_between_bursts
from gpu_report.analyse.signals.steady_signals import SteadySignals
from gpu_report.analyse.signals.thresholds import CHANCE_READINGS
from gpu_report.analyse.timeline.activity import outside
from gpu_report.analyse.timeline.phases import final_evaluations, usual_validations
from gpu_report.analyse.timeline.thresholds import WARM_UP_S
from gpu_report.analyse.timeline.throughput import Throughput, throughput_of
from gpu_report.analyse.timeline.timeline import Timeline, find_timeline
from gpu_report.analyse.timeline.trainings import Training, later_starts, unused_intervals
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries, gpu_series
from gpu_report.analyse.timeseries.intervals import Span, Spans, as_array
from gpu_report.model import AT_EPOCH_END, STARVED_PCT, Interval, Options, Phase, Run


def build_context(run: Run, options: Options) -> Context:
    """Return the context of a run: what YOLO reported where it did, else what the files and the GPUs show."""
    series = gpu_series(run)
    timeline = find_timeline(run, series)
    run = with_gil_hold_lines(run, timeline.phases)
    read = _read(run, series, timeline)
    found = read.drops(options)
    others = tuple(other for each in series for other in other_processes_on(run, each))
    throughput = throughput_of(run)
    steady = SteadySignals(run, series, timeline, others, throughput, _disturbed(run, read, others, throughput))
    all_apart = steady.excluding([drop.span for drop in found])
    signals = all_apart.index()
    bursts = drops_between_bursts(found, timeline.trainings, signals) | read.by_chance(found, options)
    drops = tuple(drop for drop in found if drop not in bursts)
    if bursts:
        all_apart = steady.excluding([drop.span for drop in drops])
        signals = all_apart.index()
    return Context(
        run=run,
        options=options,
        series=series,
        usable=read.usable,
        trains=read.trains,
        **timeline._asdict(),
        drops=drops,
        between_bursts=tuple(drop for drop in found if drop in bursts),
        other_processes=others,
        busy_waits=read.waits,
        throttles=_throttles(run, series, timeline, throughput),
        undisturbed=all_apart.undisturbed(signals),
        signals=signals,
        throughput=throughput,
        _steady=all_apart,
    )


@dataclass(frozen=True, eq=False)
class _Read:
    """The readings of a run's GPUs, in the order of `series`, and which of them are of what (see `Context`)."""

    series: tuple[GpuSeries, ...]
    timeline: Timeline
    usable: tuple[Bools, ...]
    trains: tuple[Bools, ...]
    waits: tuple[Interval, ...]

    def drops(self, options: Options) -> tuple[Drop, ...]:
        """Return the drops of all GPUs, wherever readings can tell training from validation."""
        return tuple(
            drop
            for each, use, train in zip(self.series, self.usable, self.trains, strict=True)
            for drop in self._drops_of(each, use, train, options)
        )

    def _drops_of(self, series: GpuSeries, use: Bools, train: Bools, options: Options) -> Sequence[Drop]:
        fine = outside(series, self.timeline.too_coarse)
        begun_s = later_starts(self.timeline.trainings, series.gpu)
        find = partial(find_drops, series, use & fine, train & fine, anew_s=begun_s)
        found = find(options)
        in_training = train & fine & ~outside(series, _train_spans(self.timeline))
        pauses = short_pauses(series, in_training, found, options, find)
        return sorted([*found, *pauses], key=lambda drop: drop.start_t_s)

    def by_chance(self, found: Sequence[Drop], options: Options) -> set[Drop]:
        """Return the drops that are no events: low readings, far apart, that follow each other by chance."""
        readings = sum(int(np.count_nonzero(train)) for train in self.trains)
        stretches = max(readings / (2 * CHANCE_READINGS), 1.0)
        return {
            drop
            for each, train in zip(self.series, self.trains, strict=True)
            for mine in [[one for one in found if one.gpu == each.gpu]]
            for drop in drops_by_chance(each, train, mine, options.line_share, stretches)
        }


def _after_trainings(timeline: Timeline) -> list[Span]:
    """Return when a run that trains predicts or exports: whatever a GPU does then is no training that fell."""
    others = [phase.span for phase in timeline.phases if phase.name in {"predict", "export"}]
    return others if timeline.trainings else []


def _train_spans(timeline: Timeline) -> Spans:
    return as_array([phase.span for phase in timeline.phases if phase.name == "train"])


def _read(run: Run, series: tuple[GpuSeries, ...], timeline: Timeline) -> _Read:
    """Return the readings of a run, sorted: those of a training, of what lies between its ends, of waits."""
    trainings, activity = timeline.trainings, timeline.activity
    unusual = [*final_evaluations(timeline.phases, timeline.epoch_ends), *_profiled(run), *_after_trainings(timeline)]
    usable = tuple(activity.usable(t) & outside(t, [*unusual, *unused_intervals(trainings, t.gpu)]) for t in series)
    # in a validation ranks wait for the one that validates: in one that takes far too long, for what holds it up
    apart = as_array([*timeline.too_coarse, *usual_validations(timeline.phases, timeline.epoch_ends)])
    waiting = tuple(use & outside(each, apart) for each, use in zip(series, usable, strict=True))
    waits = busy_waits_of(series, waiting, activity.used_gpus, on_other_nodes=run.job.is_of_several_nodes)
    trains = tuple(use & _trains(each, timeline.phases, waits) for each, use in zip(series, usable, strict=True))
    return _Read(series, timeline, usable, trains, waits)


def _disturbed(
    run: Run, read: _Read, others: Sequence[OtherProcess], throughput: Throughput | None
) -> tuple[Span, ...]:
    """Return what is no steady state, beside drops: slow warm-ups, waits, other processes, profiled steps."""
    timeline = read.timeline
    return (
        *_slow_to_warm_up(timeline.trainings, throughput),
        *(wait.span for wait in read.waits),
        *(span for span in timeline.too_coarse if _is_busy_at_times(read.series, span)),
        *(other.span for other in working_on(others, timeline.activity)),
        *_profiled(run),
    )


def _slow_to_warm_up(trainings: Sequence[Training], throughput: Throughput | None) -> list[Span]:
    """Return the beginnings of trainings that warmed up for longer than others do: each size of images costs once."""
    if throughput is None:
        return []
    firsts = [training.train_spans[0] for training in trainings if training.train_spans]
    warming = [(first[0], throughput.warm_at_s(first)) for first in firsts]
    return [span for span in warming if span[1] - span[0] > WARM_UP_S]


def _profiled(run: Run) -> list[Span]:
    return [window.span for window in run.profiled if window.ran]


def _throttles(
    run: Run, series: Sequence[GpuSeries], timeline: Timeline, throughput: Throughput | None
) -> tuple[Throttle, ...]:
    def batches_per_s(spans: Sequence[Span]) -> float | None:
        is_counted = throughput is not None and throughput.counts_within(spans)
        return throughput.batches_per_s(spans) if throughput is not None and is_counted else None

    steps = TrainedSteps(tuple(phase.span for phase in timeline.phases if phase.name == "train"), batches_per_s)
    return tuple(t for each in series for t in throttles(each, timeline.activity, run.gpu(each.gpu), steps))


def _trains(series: GpuSeries, phases: Sequence[Phase], waits: Sequence[Interval]) -> Bools:
    """Return which readings lie outside validations, checkpoints and waits for another GPU, and those beside each.

    A GPU that waits reads as full: a level with that in it would make a drop of the work that follows.
    """
    edge_s = series.interval_s
    ends = [(p.start_t_s - edge_s, p.end_t_s + edge_s) for p in phases if p.name in AT_EPOCH_END]
    return outside(series, [*ends, *(wait.span for wait in waits if wait.gpu == series.gpu)])


def _is_busy_at_times(all_series: Sequence[GpuSeries], span: Span) -> bool:
    """Tell whether a GPU was busy in more than a few readings of a span: else it waited, whatever its phases were."""
    parts = [series.util_pct[series.between(*span)] for series in all_series]
    return any(len(part) > 0 and float(np.percentile(part, 90)) >= STARVED_PCT for part in parts)
