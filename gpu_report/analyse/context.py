"""What every rule may look at: the run, its GPUs' readings, and what has been found out about its time so far."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypedDict, TypeVar, Unpack

import numpy as np

from gpu_report.analyse.signals.code.profiled_steps import profiled_steps
from gpu_report.analyse.signals.gpu.busy_wait import work_in_waits
from gpu_report.analyse.signals.gpu.gpu_memory import GpuMemory, gpu_memory
from gpu_report.analyse.signals.gpu.throttle import Throttle
from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signals_index import SignalsIndex
from gpu_report.analyse.signals.steady_signals import SteadySignals
from gpu_report.analyse.timeline.activity import Activity
from gpu_report.analyse.timeline.callbacks import CallbackView
from gpu_report.analyse.timeline.epoch_ends import EpochEnd, EpochEnds
from gpu_report.analyse.timeline.ranks import RankGroup
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeline.trainings import Training, training_at
from gpu_report.analyse.timeseries.gpu_series import Bools, Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, length_s, union
from gpu_report.model import (
    OF_EPOCHS,
    Advice,
    Cause,
    CodeLocation,
    EpochRow,
    Evidence,
    Finding,
    Interval,
    NearbyKernelEvent,
    Occurrence,
    Options,
    Phase,
    ProfiledSteps,
    Run,
    Severity,
)

T = TypeVar("T")

UNRECORDED_LEAST_S = 10.0  # readings and what callbacks report reach the disk within seconds of each other


# Of utilisation: a context alone keeps a GPU at 0, an evaluation at far more. And of a stretch: less is a blip.
USED_PCT, USED_SHARE = 5.0, 0.1


class FindingDetails(TypedDict, total=False):
    """What a rule may say of a finding besides which, when and how bad it is (see `Finding`)."""

    gpu: int | None
    gpus: tuple[int, ...]
    expected: bool
    epoch: int | None
    phase: str | None
    at_boundary: bool
    level_pct: float
    low_pct: float
    evidence: tuple[Evidence, ...]
    cause: Cause | None
    kernel_events: tuple[NearbyKernelEvent, ...]
    advice: tuple[Advice, ...]
    ran_out: bool
    waited_for: str
    of_gpus: str
    where: tuple[CodeLocation, ...]
    occurrences: tuple[Occurrence, ...]
    lost_gpu_s: float | None


@dataclass(frozen=True, eq=False)
class Context:
    """A run with its time sorted out.

    By GPU, in the order of `series`: `usable` marks the readings of a training, `trains` those of them outside
    validations and checkpoints. `drops` are those of all GPUs: to find them is the dearest part of an analysis, and
    several rules look at them. Those `between_bursts` of batches are none of them: the training goes on so all the time
    (see loader_bursts.py), or readings that are far apart are low by chance (chance_drops.py). `busy_waits` are where a
    GPU of several is busy only waiting for another, `throttles` what held clocks down. `undisturbed` are the train
    phases of epochs in which nothing happened, or what lies between disturbances where these are too short (see
    steady_state.py); `signals` knows what every signal is in the steady state: outside drops, waits and the stay of
    other processes. `throughput` is None where callbacks reported nothing.
    In spans that are `too_coarse` readings cannot tell training from validation: nothing is judged by them.
    """

    run: Run
    options: Options
    series: tuple[GpuSeries, ...]
    usable: tuple[Bools, ...]
    trains: tuple[Bools, ...]
    callbacks: CallbackView
    activity: Activity
    epoch_ends: EpochEnds
    phases: tuple[Phase, ...]
    trainings: tuple[Training, ...]
    too_coarse: tuple[Span, ...]
    drops: tuple[Drop, ...]
    between_bursts: tuple[Drop, ...]
    other_processes: tuple[OtherProcess, ...]
    busy_waits: tuple[Interval, ...]
    throttles: tuple[Throttle, ...]
    undisturbed: tuple[Span, ...]
    signals: SignalsIndex
    throughput: Throughput | None
    _steady: SteadySignals
    _cache: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    def cached(self, make: Callable[..., T], *arguments: Hashable) -> T:
        """Return what `make` makes of this context and the arguments; it is asked once, however many rules need it."""
        key = (make, *arguments)
        if key not in self._cache:
            self._cache[key] = make(self, *arguments)
        made: T = self._cache[key]
        return made

    def without(self, spans: Sequence[Span]) -> Context:
        """Return the same run with some more spans that are no part of its steady state."""
        steady = self._steady.excluding(spans)
        signals = steady.index()
        return replace(self, signals=signals, undisturbed=steady.undisturbed(signals), _steady=steady)

    @property
    def used_series(self) -> list[GpuSeries]:
        """Return the readings of the GPUs that the run used."""
        return [series for series in self.series if series.gpu in self.activity.used_gpus]

    def train_spans(self, gpu: int) -> list[Span]:
        """Return when a GPU trained: in the train phases of each training that it was part of."""
        return [span for training in self.trainings if gpu in training.gpus for span in training.train_spans]

    @property
    def used_by_others(self) -> list[OtherProcess]:
        """Return the other processes that did more than hold memory, on GPUs that the run used."""
        return working_on(self.other_processes, self.activity)

    @property
    def gpus_of_others(self) -> frozenset[int]:
        """Return the GPUs on which only others worked: they are shown, and count for nothing else."""
        seen = frozenset(each.gpu for each in self.other_processes if each.worked) - self.activity.used_gpus
        return seen | self.activity.others_gpus

    @property
    def cut_gpus(self) -> frozenset[int]:
        """Return the GPUs that are cut into MIG devices: their time is that of these."""
        return frozenset(gpu.parent_index for gpu in self.run.gpus if gpu.parent_index is not None)

    def series_of(self, gpu: int | None) -> GpuSeries:
        """Return the readings of a GPU; StopIteration where it has none."""
        return next(series for series in self.series if series.gpu == gpu)

    def series_if_read(self, gpu: int | None) -> GpuSeries | None:
        """Return the readings of a GPU, None where it has none."""
        return next((series for series in self.series if series.gpu == gpu), None)

    def gpu_memory(self, series: GpuSeries) -> GpuMemory:
        """Return the memory of a GPU over time, and what of it others held."""
        return self.cached(_gpu_memory, series)

    @cached_property
    def epoch_phases(self) -> tuple[Sequence[Phase], ...]:
        """Return each epoch's own phases, from its start (an earlier attempt is none of it) to its checkpoint."""
        ends = [phase.end_t_s for phase in self.phases]
        return tuple(_phases_of_epoch(self.phases, ends, epoch_end) for epoch_end in self.epoch_ends.all)

    @cached_property
    def in_epochs_s(self) -> float:
        """Return the seconds of all epochs, with their ends."""
        return length_s(union([phase.span for phase in self.phases if phase.name in OF_EPOCHS]))

    @cached_property
    def in_ended_epochs_s(self) -> float:
        """Return the seconds of epochs, without a last one of each training that was cut before its end."""
        last = [mine[-1] for each in self.trainings if (mine := [p for p in self.phases if _is_of(p, each)])]
        return self.in_epochs_s - sum(phase.duration_s for phase in last if phase.name == "train")

    @cached_property
    def all_train_spans(self) -> list[Span]:
        """Return the spans of all train phases, in order."""
        return [phase.span for phase in self.phases if phase.name == "train"]

    @cached_property
    def unrecorded_s(self) -> float:
        """Return for how long trainings went on after the last reading of a recorder that was killed, 0 for none."""
        ends = [epoch.end_t_s for process in self.run.inside for epoch in process.epochs if epoch.end_t_s is not None]
        beyond_s = max(ends, default=0.0) - self.run.duration_s
        return beyond_s if self.run.recording.ended_by is None and beyond_s >= UNRECORDED_LEAST_S else 0.0

    @cached_property
    def profiled(self) -> tuple[ProfiledSteps, ...]:
        """Return the windows of PyTorch's profiler that have a trace."""
        return profiled_steps(self.run)

    @property
    def rank_groups(self) -> list[RankGroup]:
        """Return what the processes of each training reported, of those trainings that reported anything."""
        return [training.rank_group for training in self.trainings if training.rank_group]

    def training_at(self, t_s: float, gpu: int | None = None) -> Training | None:
        """Return the training that a moment lies in (see trainings.py), None where there was none at all."""
        return training_at(self.trainings, t_s, gpu)

    def lasting_signals(self, gpu: int, t_s: float) -> IntervalSignals | None:
        """Return the signals of all the steady state of the training at a moment, None where there is none."""
        training = self.training_at(t_s, gpu)
        return None if training is None else self.signals.of_training(gpu, training)

    def which_training(self, training: Training | None) -> str:
        """Return which of several trainings one is, as training 1 of 2; empty where it is the only one, or none."""
        trainings = self.trainings
        number = next((n for n, each in enumerate(trainings, 1) if each is training), None)
        return f"training {number} of {len(trainings)}" if number is not None and len(trainings) > 1 else ""

    def epoch_at(self, t_s: float) -> EpochRow | None:
        """Return the epoch that a moment lies in, None outside all of them.

        One that was reported by callbacks lasts to the end of its checkpoint, one seen from outside to its row.
        """
        ends = self.epoch_ends.all
        at = bisect_right(ends, t_s, key=lambda epoch_end: epoch_end.end_t_s)
        return ends[at].row if at < len(ends) and ends[at].row.start_t_s <= t_s else None

    def gpus_not_waiting(self, gpu: int, span: Span) -> list[int]:
        """Return the GPUs of a GPU's training that do not spin for another one in most of a stretch of its time."""
        training = self.training_at(span[0], gpu)
        mine = training.gpus if training is not None else self.activity.used_gpus
        half_s = (span[1] - span[0]) / 2
        near = self.cached(_busy_waits)(*span)
        waiting = {w.gpu for w in near if min(w.end_t_s, span[1]) - max(w.start_t_s, span[0]) > half_s}
        return sorted(set(mine) - waiting)

    def work_in_waits(self, series: GpuSeries) -> Floats:
        """Return the share (0 to 1) of work in each reading of a GPU that waits for another node; 0 elsewhere."""
        return self.cached(_work_in_waits, series)

    def worked(self, span: Span) -> bool | None:
        """Tell whether a GPU of the run was used in a tenth of a stretch; None where none was read."""
        used_s = self.used_s(span)
        return None if used_s is None else used_s >= USED_SHARE * (span[1] - span[0])

    def used_s(self, span: Span) -> float | None:
        """Return for how long (s) the GPU that was used most was so in a stretch; None where none was read."""
        parts = [(series, series.between(*span)) for series in self.used_series]
        read = [(s.weight_s[part], s.util_pct[part]) for s, part in parts if part.stop > part.start]
        return max((float(weight_s[util_pct >= USED_PCT].sum()) for weight_s, util_pct in read), default=None)

    def phase_at(self, t_s: float) -> Phase | None:
        """Return the phase that a moment lies in, None where it is not known."""
        at = bisect_right(self.phases, t_s, key=lambda phase: phase.start_t_s) - 1
        return self.phases[at] if at >= 0 and t_s < self.phases[at].end_t_s else None

    def finding(
        self, rule: str, severity: Severity, span: Span, summary: str, **more: Unpack[FindingDetails]
    ) -> Finding:
        """Return a finding of a rule; its epoch and phase are those of its place, unless `more` says otherwise."""
        epoch, phase = self.place_of(span)
        details: FindingDetails = {"gpu": None, "epoch": epoch, "phase": phase, **more}
        start_s, end_s = span
        return Finding("", rule, severity, start_t_s=start_s, end_t_s=end_s, summary=summary, **details)

    def place_of(self, span: Span) -> tuple[int | None, str | None]:
        """Return the epoch and phase that hold the largest part of a stretch; of several epochs those it begins in.

        A stall after the end of an epoch is in the next one, though utilisation fell for the validation before.
        """
        start_s, end_s = span
        ends = self.epoch_ends.all
        first = bisect_left(ends, start_s, key=lambda end: end.row.start_t_s)  # that begins within it
        is_whole = first < len(ends) and ends[first].end_t_s <= end_s
        return self.place_at(start_s if is_whole else self._largest_part(span))

    def _largest_part(self, span: Span) -> float:
        """Return a moment in the phase that holds the largest part of a stretch, its middle where none is known."""
        start_s, end_s = span
        first = max(bisect_right(self.phases, start_s, key=lambda phase: phase.start_t_s) - 1, 0)
        last = bisect_left(self.phases, end_s, key=lambda phase: phase.start_t_s)
        parts = [(max(p.start_t_s, start_s), min(p.end_t_s, end_s)) for p in self.phases[first:last]]
        start_s, end_s = max((part for part in parts if part[1] > part[0]), key=lambda p: p[1] - p[0], default=span)
        return (start_s + end_s) / 2

    def place_at(self, t_s: float) -> tuple[int | None, str | None]:
        """Return the number of the epoch and the name of the phase that a moment lies in, each None where unknown."""
        epoch, phase = self.epoch_at(t_s), self.phase_at(t_s)
        return (epoch.epoch if epoch else None), (phase.name if phase else None)


def _busy_waits(context: Context) -> IntervalIndex[Interval]:
    return IntervalIndex(context.busy_waits, lambda wait: wait.span)


def _work_in_waits(context: Context, series: GpuSeries) -> Floats:
    elsewhere = context.run.job.is_of_several_nodes
    if elsewhere:
        return work_in_waits(series, context.busy_waits)
    return np.broadcast_to(0.0, len(series.t_s))  # takes no room


def _gpu_memory(context: Context, series: GpuSeries) -> GpuMemory:
    return gpu_memory(context.run, context.other_processes, series)


def working_on(others: Sequence[OtherProcess], activity: Activity) -> list[OtherProcess]:
    """Return the other processes that did more than hold memory, on GPUs that the run used."""
    return [other for other in others if other.worked and other.gpu in activity.used_gpus]


def _phases_of_epoch(phases: Sequence[Phase], ends: Sequence[float], epoch_end: EpochEnd) -> list[Phase]:
    start_s, until_s = epoch_end.row.start_t_s, max(epoch_end.end_t_s, epoch_end.row.row_t_s)
    at, own = bisect_left(ends, start_s), []
    while at < len(phases) and phases[at].start_t_s <= until_s:
        phase = phases[at]
        if phase.epoch == epoch_end.row.epoch and phase.end_t_s > start_s:
            own.append(phase if phase.start_t_s >= start_s else replace(phase, start_t_s=start_s))
        at += 1
    return own


def _is_of(phase: Phase, training: Training) -> bool:
    return phase.name in OF_EPOCHS and training.span[0] <= phase.start_t_s < training.span[1]
