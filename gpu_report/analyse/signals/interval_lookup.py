"""The scenes of a run's intervals: what each signal is in ordinary training is worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gpu_report import schema
from gpu_report.analyse import thresholds as th
from gpu_report.analyse.signals.interval_signals import (
    NO_SIGNALS,
    IntervalSignals,
    Neighbour,
    SignalTable,
    signal_table,
)
from gpu_report.analyse.signals.kernel_events_near import kernel_events_near
from gpu_report.analyse.signals.other_processes import Guest
from gpu_report.analyse.timeline.callbacks import FROM_CALLBACKS
from gpu_report.analyse.timeline.throughput import Pace
from gpu_report.analyse.timeline.trainings import Training, training_at
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, as_array, length_s
from gpu_report.model import KernelEvent, Phase, Run

HOST_COLUMNS = tuple(column.name for column in schema.HOST_QUANTITIES)
GPU_COLUMNS = tuple(column.name for column in schema.GPU_QUANTITIES)


@dataclass(frozen=True)
class Beside:
    """What has been found out beside the readings: other processes, phases, and how fast training went."""

    guests: Sequence[Guest] = ()
    phases: Sequence[Phase] = ()
    pace: Pace | None = None
    firsts: Sequence[Span] = ()  # the first epochs of processes
    trainings: Sequence[Training] = ()


@dataclass(frozen=True, eq=False)
class _Usual:
    """The readings of the host and of each GPU, in which the ordinary training of one training is marked."""

    host: SignalTable
    gpus: Mapping[int, SignalTable]

    def with_calm(self, calm: Sequence[Span]) -> _Usual:
        """Return the same readings with other spans of ordinary training."""
        edges = as_array(calm)
        return _Usual(self.host.with_calm(edges), {gpu: own.with_calm(edges) for gpu, own in self.gpus.items()})


class SignalsIndex:
    """Makes the scene of any interval; `calm` are the spans of ordinary training.

    What is usual for an interval is what it is in the training that it lies in: another may have been set up otherwise.
    """

    def __init__(
        self, run: Run, all_series: Sequence[GpuSeries], calm: Sequence[Span], beside: Beside | None = None
    ) -> None:
        beside = beside or Beside()
        self.calm = tuple(calm)
        self._guests = beside.guests
        told = (phase for phase in beside.phases if phase.source == FROM_CALLBACKS)
        self._phases = IntervalIndex(told, lambda phase: (phase.start_t_s, phase.end_t_s))
        self._kernel = IntervalIndex(run.kernel.events, lambda event: (event.t_s, event.last_t_s or event.t_s))
        self._pace = beside.pace
        self._firsts = beside.firsts
        self._trainings = beside.trainings
        self._run = run
        self._series = all_series
        self._calm: dict[Span, Sequence[Span]] = {}  # by the span of the training that they are in
        self._usual: dict[Span | None, _Usual] = {}  # likewise; None for all trainings together

    def calm_of(self, training: Training) -> Sequence[Span]:
        """Return the spans of ordinary training in one training."""
        if len(self._trainings) == 1:
            return self.calm
        if training.span not in self._calm:
            self._calm[training.span] = tuple(training.within(self.calm))
        return self._calm[training.span]

    def of_training(self, gpu: int, training: Training) -> IntervalSignals | None:
        """Return the scene of all ordinary training in a training on a GPU, None where there is none.

        There is nothing else that it could be held against.
        """
        calm = self.calm_of(training)
        if not calm:
            return None
        whole = self.of(gpu, calm[0][0], calm[-1][1])
        waited = self._pace.waiting(calm) if self._pace else None
        host, own = whole.host.only_calm(), whole.own.only_calm()
        return replace(whole, host=host, own=own, kernel=(), data_wait_share=waited)

    def of(self, gpu: int, start_t_s: float, end_t_s: float) -> IntervalSignals:
        """Return the scene of an interval of one GPU, in the training that it begins in."""
        training = training_at(self._trainings, start_t_s, gpu)
        usual = self._usual_in(training)
        return IntervalSignals(
            gpu=gpu,
            start_t_s=start_t_s,
            end_t_s=end_t_s,
            host=usual.host,
            own=usual.gpus.get(gpu, NO_SIGNALS),  # one that was lost before its first reading has none
            tick_s=self._run.recording.interval_s or 1.0,
            cores=self._run.recording.cores_online or self._run.recording.cores,
            usable_cores=self._run.recording.usable_cores,
            kernel=kernel_events_near(self._kernel_lines(start_t_s, end_t_s), start_t_s, end_t_s, gpu),
            neighbours=_neighbours([guest for guest in self._guests if guest.gpu == gpu], start_t_s, end_t_s),
            nvml_lost=_nvml_lost(self._run, gpu, start_t_s, end_t_s),
            data_wait_share=self._pace.waiting([(start_t_s, end_t_s)]) if self._pace else None,
            loader_workers=training.workers if training else None,
            phases=_shares(self._phases(start_t_s, end_t_s), start_t_s, end_t_s),
            in_first_epoch=any(start <= start_t_s and end_t_s <= end + th.EDGE_S for start, end in self._firsts),
        )

    def _usual_in(self, training: Training | None) -> _Usual:
        """Return the readings with what is usual in a training; of one too short for that, in all of them."""
        key = training.span if training is not None else None
        if key not in self._usual:
            calm = self.calm_of(training) if training is not None else self.calm
            enough = training is None or length_s(calm) >= th.LEVEL_AT_LEAST_S
            self._usual[key] = self._readings.with_calm(calm) if enough else self._usual_in(None)
        return self._usual[key]

    @cached_property
    def _readings(self) -> _Usual:
        """Return the readings without any marked: each column is made once, however many trainings there are."""
        gpus = {series.gpu: signal_table(series.samples, GPU_COLUMNS) for series in self._series}
        return _Usual(signal_table(self._run.host, HOST_COLUMNS), gpus)

    def _kernel_lines(self, start_t_s: float, end_t_s: float) -> Sequence[KernelEvent]:
        return self._kernel(start_t_s - th.KERNEL_BEFORE_S, end_t_s + th.KERNEL_AFTER_S)


def _shares(phases: Sequence[Phase], start_t_s: float, end_t_s: float) -> dict[str, float]:
    """Return the share of an interval by phase; a part that has a name of its own counts as that."""
    shares: dict[str, float] = {}
    for phase in phases:
        shared_s = min(phase.end_t_s, end_t_s) - max(phase.start_t_s, start_t_s)
        if shared_s > 0:
            name = phase.detail or phase.name
            shares[name] = shares.get(name, 0.0) + shared_s / (end_t_s - start_t_s)
    return shares


def _neighbours(guests: Sequence[Guest], start_t_s: float, end_t_s: float) -> tuple[Neighbour, ...]:
    """Return who else was on the GPU, with the share of the interval that they were there."""
    found = []
    for guest in guests:
        shared_s = min(guest.span[1], end_t_s) - max(guest.span[0], start_t_s)
        if shared_s > 0:
            share = min(shared_s / (end_t_s - start_t_s), 1.0)
            found.append(Neighbour(guest.pid, guest.name, guest.memory_mib, share))
    return tuple(found)


def _nvml_lost(run: Run, gpu: int, start_t_s: float, end_t_s: float) -> str:
    """Return what the driver said when it lost a GPU within an interval or shortly before, empty when it did not."""
    lost = [
        str(event.fields.get("reason", ""))
        for event in run.events
        if event.kind == "nvml_error"
        and event.gpu == gpu
        and event.fields.get("quantity") == "all"
        and start_t_s - th.KERNEL_BEFORE_S <= event.t_s <= end_t_s
    ]
    return lost[0] if lost else ""
