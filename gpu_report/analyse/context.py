"""What every rule may look at: the run, its GPUs' readings, and what has been found out about its time so far."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from gpu_report.analyse.signals.busy_wait import spinning
from gpu_report.analyse.signals.clock_throttling import Throttle, throttles
from gpu_report.analyse.signals.gpu_memory import GpuMemory, gpu_memory
from gpu_report.analyse.signals.interval_lookup import Beside, SignalsIndex
from gpu_report.analyse.signals.other_processes import Guest, guests
from gpu_report.analyse.signals.utilisation_drops import Drop, find_drops
from gpu_report.analyse.timeline.activity import Activity, find_activity, outside
from gpu_report.analyse.timeline.callbacks import InsideView, inside_view, with_inside
from gpu_report.analyse.timeline.epoch_ends import Boundaries, Boundary, find_boundaries
from gpu_report.analyse.timeline.phases import final_evaluations, find_phases, joined, mosaic_closes
from gpu_report.analyse.timeline.ranks import Told
from gpu_report.analyse.timeline.steady_state import calm_spans, ordinary_phases, whole_spans
from gpu_report.analyse.timeline.throughput import Pace, pace_of
from gpu_report.analyse.timeline.trainings import Training, away, begun_later, find_trainings, training_at
from gpu_report.analyse.timeseries.energy import Energy, energy
from gpu_report.analyse.timeseries.gpu_series import Bools, GpuSeries, gpu_series
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import EpochRow, Interval, Options, Phase, Run

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Context:
    """A run with its time sorted out: for each series which readings are of training, and its running energy.

    `drops` are those of all GPUs: to find them is the dearest part of an analysis, and several rules look at them.
    `guests` are the other processes on the GPUs, `waits` where a GPU of several spins for another, `throttles` what
    held clocks down. `ordinary` is all training of epochs in which nothing happened; `scenes` knows what every
    signal is in ordinary training: outside drops, waits and the stay of guests. `pace` is images a second, None
    where callbacks told nothing.
    """

    run: Run
    options: Options
    series: tuple[GpuSeries, ...]
    usable: tuple[Bools, ...]
    energies: tuple[Energy, ...]
    activity: Activity
    boundaries: Boundaries
    phases: tuple[Phase, ...]
    trainings: tuple[Training, ...]
    inside: InsideView
    drops: tuple[Drop, ...]
    guests: tuple[Guest, ...]
    waits: tuple[Interval, ...]
    throttles: tuple[Throttle, ...]
    ordinary: tuple[Span, ...]
    scenes: SignalsIndex
    pace: Pace | None
    _made: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, make: Callable[..., T], *arguments: Hashable) -> T:
        """Return what `make` makes of this context and the arguments; it is asked once, however many rules need it."""
        key = (make, *arguments)
        if key not in self._made:
            self._made[key] = make(self, *arguments)
        made: T = self._made[key]
        return made

    def gpu_memory(self, series: GpuSeries) -> GpuMemory:
        """Return the memory of a GPU over time, and what of it others held."""
        return self.once(_gpu_memory, series)

    @cached_property
    def parts(self) -> tuple[Sequence[Phase], ...]:
        """Return each epoch's own phases, from its start (an earlier attempt is none of it) to its checkpoint."""
        ends = [phase.end_t_s for phase in self.phases]
        return tuple(_parts(self.phases, ends, boundary) for boundary in self.boundaries.all)

    @property
    def told(self) -> list[Told]:
        """Return what the processes of each training told, of those trainings that told anything."""
        return [training.told for training in self.trainings if training.told]

    def training_at(self, t_s: float, gpu: int | None = None) -> Training | None:
        """Return the training that a moment lies in (see trainings.py), None where there was none at all."""
        return training_at(self.trainings, t_s, gpu)

    def epoch_at(self, t_s: float) -> EpochRow | None:
        """Return the epoch that a moment lies in, None outside all of them.

        One that was told from inside lasts to the end of its checkpoint, one seen from outside to its row.
        """
        ends = self.boundaries.all
        at = bisect_right(ends, t_s, key=lambda boundary: boundary.end_t_s)
        return ends[at].row if at < len(ends) and ends[at].row.start_t_s <= t_s else None

    def phase_at(self, t_s: float) -> Phase | None:
        """Return the phase that a moment lies in, None where it is not known."""
        at = bisect_right(self.phases, t_s, key=lambda phase: phase.start_t_s) - 1
        return self.phases[at] if at >= 0 and t_s < self.phases[at].end_t_s else None

    def place_at(self, t_s: float) -> tuple[int | None, str | None]:
        """Return the number of the epoch and the name of the phase that a moment lies in, each None where unknown."""
        epoch, phase = self.epoch_at(t_s), self.phase_at(t_s)
        return (epoch.epoch if epoch else None), (phase.name if phase else None)


def _gpu_memory(context: Context, series: GpuSeries) -> GpuMemory:
    return gpu_memory(context.run, context.guests, series)


def _parts(phases: Sequence[Phase], ends: Sequence[float], boundary: Boundary) -> list[Phase]:
    start_s, until_s = boundary.row.start_t_s, max(boundary.end_t_s, boundary.row.row_t_s)
    at, parts = bisect_left(ends, start_s), []
    while at < len(phases) and phases[at].start_t_s <= until_s:
        phase = phases[at]
        if phase.epoch == boundary.row.epoch and phase.end_t_s > start_s:
            parts.append(phase if phase.start_t_s >= start_s else replace(phase, start_t_s=start_s))
        at += 1
    return parts


def build_context(run: Run, options: Options) -> Context:
    """Return the context of a run: what YOLO told where it did, else what the files and the GPUs tell."""
    found, inside = gpu_series(run), inside_view(run)
    seen = find_activity(run, found)
    awake = [seen.usable(series) for series in found]
    told = all(inside.covers(row.row_t_s) for row in run.epoch_rows)  # then nobody asks for what was seen from outside
    outside_ends = find_boundaries(() if told else run.epoch_rows, found, awake)
    outside_phases = find_phases(run, seen, outside_ends, found, awake)
    activity = inside.activity(seen, run.duration_s, others=_others(run, inside))
    closes = {yolo.number: mosaic_closes(yolo.args) for yolo in run.yolo_runs}
    boundaries = with_inside(outside_ends, inside).with_mosaic(closes)
    phases = joined(inside, outside_phases, activity, run.duration_s)
    final = final_evaluations(phases, boundaries)
    trained = find_trainings(run, found, activity, boundaries, phases)
    usable = tuple(activity.usable(series) & outside(series, (*final, *away(trained, series.gpu))) for series in found)
    drops = tuple(
        drop
        for series, use in zip(found, usable, strict=True)
        for drop in find_drops(series, use, options, begun_later(trained, series.gpu))
    )
    beside = tuple(guest for series in found for guest in guests(run, series))
    waits = _waits(found, usable, activity)
    gpus = {gpu.index: gpu for gpu in run.gpus}
    disturbed = [(drop.start_t_s, drop.end_t_s) for drop in drops] + [(w.start_t_s, w.end_t_s) for w in waits]
    disturbed += _working(beside, activity)
    pace = pace_of(run)
    usual = ordinary_phases(phases, boundaries)
    calm = calm_spans(usual, activity, run.duration_s, disturbed)
    return Context(
        run=run,
        options=options,
        series=found,
        usable=usable,
        energies=tuple(map(energy, found)),
        activity=activity,
        boundaries=boundaries,
        phases=phases,
        trainings=trained,
        inside=inside,
        drops=drops,
        guests=beside,
        waits=waits,
        throttles=tuple(t for series in found for t in throttles(series, activity, gpus.get(series.gpu))),
        ordinary=whole_spans(phases, boundaries, disturbed) if usual else calm,
        scenes=SignalsIndex(run, found, calm, Beside(beside, phases, pace, boundaries.first_epochs, trained)),
        pace=pace,
    )


def _waits(found: Sequence[GpuSeries], usable: Sequence[Bools], activity: Activity) -> tuple[Interval, ...]:
    """Return where GPUs of a training on several spin, in order of time."""
    pairs = [(series, use) for series, use in zip(found, usable, strict=True) if series.gpu in activity.used_gpus]
    waits = [wait for series, use in pairs for wait in spinning(series, use)] if len(pairs) > 1 else []
    return tuple(sorted(waits, key=lambda wait: (wait.start_t_s, wait.gpu)))


def _working(beside: Sequence[Guest], activity: Activity) -> list[Span]:
    """Return when guests were there that did something, on GPUs that the training used."""
    return [guest.span for guest in beside if guest.worked and guest.gpu in activity.used_gpus]


def _others(run: Run, inside: InsideView) -> bool:
    """Tell whether a YOLO run was watched that told nothing from inside."""
    told = {boundary.row.run for boundary in inside.boundaries} | {process.run for process in run.inside}
    return any(yolo.number not in told for yolo in run.yolo_runs)
