"""The signals of any interval of a run: what each signal is in the steady state is worked out once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gpu_report import schema
from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.code.busy_thread import BusyThread, ThreadProfile
from gpu_report.analyse.signals.code.call_growth import CallGrowth, call_growth
from gpu_report.analyse.signals.code.garbage import Garbage, garbage_of_all, most_garbage
from gpu_report.analyse.signals.code.idle_stacks import IdleStacks, idle_stacks
from gpu_report.analyse.signals.code.loader_work import LoaderWork, loader_work, worker_code, workers_at_work
from gpu_report.analyse.signals.code.stack_profile import OwnFunction, OwnLayer, StackProfile, idle_location_of
from gpu_report.analyse.signals.host.kernel_events import kernel_events_near
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.signals.host.other_programs import Program, typical_programs
from gpu_report.analyse.signals.host.process_waits import longest_file_wait, longest_gil_hold, seen_waits
from gpu_report.analyse.signals.interval_signals import NOT_LOADING, IntervalSignals
from gpu_report.analyse.signals.signal_table import NO_SIGNALS, SignalTable, signal_table
from gpu_report.analyse.timeline.thresholds import LEVEL_AT_LEAST_S
from gpu_report.analyse.timeline.throughput import Throughput, throughput_by_gpu
from gpu_report.analyse.timeline.trainings import Training, training_at, whole
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.interval_cover import IntervalCover, interval_cover
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span, as_array, length_s
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.model import FROM_CALLBACKS, CodeLocation, Frame, KernelEvent, Phase, Run

SHORTEST_ROW_S = 1e-3  # of the host: the first has nothing before it
HOST_COLUMNS = tuple(column.name for column in schema.HOST_QUANTITIES)
GPU_COLUMNS = tuple(column.name for column in schema.GPU_QUANTITIES)


@dataclass(frozen=True)
class OwnCode:
    """A function of the user's, the line in it that took most, and the CPU there (% of a core; None: not known)."""

    function: Frame
    at: CodeLocation
    cpu_pct: float | None


@dataclass(frozen=True, eq=False)
class _SteadyReadings:
    """The readings of the host and of each GPU, in which the steady state of one training is marked."""

    host: SignalTable
    gpus: Mapping[int, SignalTable]

    def with_steady(self, steady: Sequence[Span]) -> _SteadyReadings:
        """Return the same readings with other spans of the steady state."""
        edges = as_array(steady)
        return _SteadyReadings(
            self.host.with_steady(edges), {gpu: own.with_steady(edges) for gpu, own in self.gpus.items()}
        )


class SignalsIndex:
    """Returns the signals of any interval; `steady` are the spans of the steady state.

    What is typical for an interval is what it is in the training that it lies in: another may have been set up
    otherwise.
    """

    def __init__(  # noqa: PLR0913 - what has been found out beside the readings
        self,
        run: Run,
        series: Sequence[GpuSeries],
        steady: Sequence[Span],
        *,
        trainings: Sequence[Training] = (),
        phases: Sequence[Phase] = (),
        first_epochs: Sequence[Span] = (),
        others: Sequence[OtherProcess] = (),
        throughput: Throughput | None = None,
        used_gpus: Collection[int] | None = None,
    ) -> None:
        """Take what is known; nothing is worked out before it is asked for. `used_gpus` None is all."""
        self.steady = tuple(steady)
        self._run, self._series, self._trainings = run, series, trainings
        self._first_epochs, self._others, self._throughput = first_epochs, others, throughput
        self._used = [each for each in series if used_gpus is None or each.gpu in used_gpus]
        self._all_phases = phases
        reported = (phase for phase in phases if phase.source == FROM_CALLBACKS)
        self._phases = IntervalIndex(reported, lambda phase: phase.span)
        self._kernel = IntervalIndex(run.kernel.events, lambda event: (event.t_s, event.last_t_s or event.t_s))
        mains = (process for process in run.stacks if not process.is_worker)
        self._held = [IntervalIndex(process.lock_held, lambda held: held.span) for process in mains]
        waits = seen_waits(run.waits, run.host["t_s"].to_numpy(dtype=float))
        self._waits = IntervalIndex(waits, lambda wait: wait.span)
        self._programs = IntervalIndex(run.other_programs, lambda look: look.span)
        self._typical_programs: dict[Span | None, Mapping[Program, float]] = {}  # by the span of the training
        self._steady: dict[Span, Sequence[Span]] = {}  # by the span of the training that they are in
        self._lasting: dict[tuple[int, Span], IntervalSignals] = {}  # by GPU and the span of the training
        self._loading: dict[int | None, IntervalCover] = {}  # by GPU
        self._typical: dict[Span | None, _SteadyReadings] = {}  # likewise; None for all trainings together

    def steady_of(self, training: Training) -> Sequence[Span]:
        """Return the spans of the steady state in one training."""
        if len(self._trainings) == 1:
            return self.steady
        if training.span not in self._steady:
            self._steady[training.span] = tuple(training.within(self.steady))
        return self._steady[training.span]

    def of_training(self, gpu: int, training: Training) -> IntervalSignals | None:
        """Return the signals of all the steady state of a training on a GPU, None where there is none.

        There is nothing else that they could be compared with. Of a long run they are worked out once.
        """
        steady = self.steady_of(training)
        if not steady:
            return None
        key = gpu, training.span
        if key not in self._lasting:
            whole = self._of(gpu, (steady[0][0], steady[-1][1]), steady)
            host, own = whole.host.only_steady(), whole.own.only_steady()
            feeding = self._feeding(gpu)
            code, at_work = worker_code(feeding, steady), workers_at_work(feeding, steady)
            layer = self.longest_layer(gpu, steady)
            synced = max((each.synced_share(steady) for each in self._profiles_of(gpu)), default=0.0)
            self._lasting[key] = replace(
                whole,
                host=host,
                own=own,
                kernel=(),
                worker_code=code,
                workers_at_work=at_work,
                workers_garbage=garbage_of_all([each.process for each in feeding if each.process.is_worker], steady),
                own_layer=layer,
                copying_line=self.copying_line(gpu, steady),
                synced_norms=synced,
                is_steady=True,
            )
        return self._lasting[key]

    def of(self, gpu: int, start_t_s: float, end_t_s: float) -> IntervalSignals:
        """Return the signals of an interval of one GPU, in the training that it begins in."""
        return self._of(gpu, (start_t_s, end_t_s), [(start_t_s, end_t_s)])

    def _of(self, gpu: int, interval: Span, within: Sequence[Span]) -> IntervalSignals:
        """Return the signals of an interval; waits for data and where processes stood are of some spans in it."""
        start_t_s, end_t_s = interval
        training = training_at(self._trainings, start_t_s, gpu)
        typical = self._typical_in(training)
        found = IntervalSignals(
            gpu=gpu,
            start_t_s=start_t_s,
            end_t_s=end_t_s,
            host=typical.host,
            own=typical.gpus.get(gpu, NO_SIGNALS),  # one that was lost before its first reading has none
            tick_s=self._run.recording.interval_s or 1.0,
            cores=self._run.recording.cores_online or self._run.recording.cores,
            usable_cores=self._run.recording.usable_cores,
            cpu_limit=self._run.recording.cpu_limit,
            kernel=kernel_events_near(self._kernel_lines(start_t_s, end_t_s), start_t_s, end_t_s, gpu),
            other_processes=self._others_at(gpu, start_t_s, end_t_s),
            nvml_lost=_nvml_lost(self._run, gpu, start_t_s, end_t_s),
            data_wait_share=self._data_wait_share(gpu, within),
            step_s=self._step_s(gpu, within),
            image_bytes_s=self._image_bytes_s(training, within),
            all_reduces=self._run.job.is_of_several_nodes,
            phases=_shares(self._phases(start_t_s, end_t_s), start_t_s, end_t_s),
            idle_location=idle_location_of(self._profiles, gpu, within),
            main_file_wait=longest_file_wait(self._waits(start_t_s, end_t_s), "main", interval),
            worker_file_wait=longest_file_wait(self._waits(start_t_s, end_t_s), "worker", interval),
            named_file_wait=longest_file_wait(self._waits(start_t_s, end_t_s), "worker", interval, only_named=True),
            gil_held=longest_gil_hold((held(start_t_s, end_t_s) for held in self._held), interval),
            garbage=self.garbage(gpu, within),
            mounts=self._run.recording.mounts,
            other_programs=self._programs(start_t_s, end_t_s),
            typical_programs=self._typical_programs_in(training),
            loader=self._loader_work(gpu, within),
            busy_thread=self.busy_thread(gpu, within),
            in_first_epoch=self._in_first_epoch(interval),
        )
        return found if training is None else _in_training(found, training)

    def _in_first_epoch(self, interval: Span) -> bool:
        first, end_s = interval[0], interval[1] - th.PHASE_EDGE_S
        return any(start <= first and end_s <= end for start, end in self._first_epochs)

    @cached_property
    def _throughput_by_gpu(self) -> Mapping[int, Throughput]:
        return throughput_by_gpu(self._run)

    def _data_wait_share(self, gpu: int, spans: Sequence[Span]) -> float | None:
        """Return the share of its training that the main process of a GPU waited for data, None where not known."""
        own = self._throughput_by_gpu.get(gpu)
        share = own.data_wait_share(spans) if own else None
        return share if share is not None or self._throughput is None else self._throughput.data_wait_share(spans)

    def _step_s(self, gpu: int, spans: Sequence[Span]) -> float | None:
        """Return the seconds of a training step of a GPU at its fastest, waits for data included, None if not known.

        Where no stretch of reports is long enough for that, it is the mean.
        """
        throughput = self._throughput_by_gpu.get(gpu) or self._throughput
        least_s = throughput.least_batch_s(spans) if throughput else None
        if least_s is not None:
            return least_s
        rate = throughput.batches_per_s(spans) if throughput else None
        return 1 / rate if rate else None

    def _image_bytes_s(self, training: Training | None, spans: Sequence[Span]) -> float | None:
        """Return what goes to one of a training's GPUs of images (bytes/s), None where they were not counted."""
        rate = self._throughput.images_per_s(spans) if self._throughput else None
        if training is None or training.image_bytes is None or rate is None:
            return None
        return training.image_bytes * rate / training.ranks

    @cached_property
    def idle_stacks(self) -> tuple[IdleStacks, ...]:
        """Return where every process of the run stood while its GPUs were idle, main processes and ranks first."""
        return idle_stacks(self._run, self._used)

    def _loader_work(self, gpu: int, spans: Sequence[Span]) -> LoaderWork | None:
        """Return what the workers for a GPU did while they were waited for, None where too little was noted of them."""
        return loader_work(self._feeding(gpu), spans)

    def _feeding(self, gpu: int) -> list[IdleStacks]:
        """Return where the processes stood that feed a GPU, its loader's workers included."""
        return [each for each in self.idle_stacks if gpu in each.gpus]

    def garbage(self, gpu: int | None, spans: Sequence[Span]) -> Garbage | None:
        """Return what Python's garbage collector took of a GPU's main process, of that in which it took most."""
        return most_garbage((each.stacks.process for each in self._profiles_of(gpu)), spans)

    def busy_thread(self, gpu: int, spans: Sequence[Span]) -> BusyThread | None:
        """Return the thread beside the main one that kept Python busy in the process of a GPU, None without one."""
        found = [each.within(spans) for gpus, each in self._thread_profiles if gpu in gpus]
        return max((each for each in found if each is not None), key=lambda each: each.share, default=None)

    @cached_property
    def _thread_profiles(self) -> list[tuple[tuple[int, ...], ThreadProfile]]:
        return [(each.stacks.gpus, ThreadProfile(each.stacks.process)) for each in self._profiles]

    def cpu_in_call(self, gpu: int | None, call: Frame, spans: Sequence[Span]) -> float | None:
        """Return the CPU (% of a core) that a main process used in a function of the user's, None where not known."""
        found = (each.cpu_in_call(call, spans) for each in self._profiles_of(gpu))
        return next((cpu for cpu in found if cpu is not None), None)

    def call_growth(self, gpu: int, place: Frame, training: Training, *, is_call: bool = True) -> CallGrowth | None:
        """Return how a function of the user's, else a line, grew dearer in a training, None where it did not."""
        throughput, steady = self._throughput_by_gpu.get(gpu) or self._throughput, self.steady_of(training)
        profile = next(self._profiles_of(gpu), None)
        if throughput is None or profile is None or not steady:
            return None
        there = profile.when_in(place, is_call=is_call)
        return call_growth(there, throughput, (steady[0][0], steady[-1][1]), whole(training.settings.get("batches")))

    def place_in_call(self, gpu: int | None, call: Frame, spans: Sequence[Span]) -> CodeLocation | None:
        """Return where most of the time of a user's function lies that YOLO called, None where nothing was noted.

        It is the line of its innermost function, with the share (0 to 1) of the function's time that this line took.
        """
        found = (each.place_in_call(call, spans) for each in self._profiles_of(gpu))
        return next((place for place in found if place is not None), None)

    def own_code(
        self, gpu: int | None, function: Frame, spans: Sequence[Span], share: float, *, is_call: bool = True
    ) -> OwnCode:
        """Return a function of the user's with its line, and the CPU used in it.

        It took a `share` (0 to 1) of some time. Unless it `is_call`, one of a line in it, it is that line itself.
        """
        at = self.place_in_call(gpu, function, spans) if is_call else None
        at = replace(at or CodeLocation.in_main(function, 0.0), share=share)
        return OwnCode(function, at, self.cpu_in_call(gpu, function, spans))

    def longest_layer(self, gpu: int, spans: Sequence[Span]) -> OwnLayer | None:
        """Return the user's own layer that a GPU's main process was in for longest, None without one."""
        layers = (each.longest_layer(spans) for each in self._profiles_of(gpu))
        return next((layer for layer in layers if layer is not None), None)

    def copying_line(self, gpu: int, spans: Sequence[Span]) -> Frame | None:
        """Return the user's line for which a GPU's main process copied tensors for longest, None without."""
        lines = (each.copying_line(spans) for each in self._profiles_of(gpu))
        return next((line for line in lines if line is not None), None)

    def weights_line(self, gpu: int, spans: Sequence[Span]) -> CodeLocation | None:
        """Return the user's line whose attention computed its weights for longest on a GPU, None without."""
        lines = (each.weights_line(spans) for each in self._profiles_of(gpu))
        return next((line for line in lines if line is not None), None)

    def network_line(self, gpu: int, spans: Sequence[Span]) -> CodeLocation | None:
        """Return the user's line in which a GPU's main process ran another network for longest, None without."""
        lines = (each.network_line(spans) for each in self._profiles_of(gpu))
        return next((line for line in lines if line is not None), None)

    def longest_line(self, gpu: int, spans: Sequence[Span]) -> tuple[Frame | None, float]:
        """Return the line that a GPU's main process was in for longest in some stretches, and its share of them."""
        return max(
            (each.longest_line(spans) for each in self._profiles_of(gpu)), key=lambda line: line[1], default=(None, 0.0)
        )

    def longest_own(self, gpu: int, spans: Sequence[Span]) -> OwnFunction | None:
        """Return the user's function that a GPU's main process was in for longest in some stretches, None without."""
        found = (each.longest_own(spans) for each in self._profiles_of(gpu))
        return max((own for own in found if own is not None), key=lambda own: own.share, default=None)

    def own_functions(self, gpu: int | None, spans: Sequence[Span]) -> Mapping[Frame, OwnFunction]:
        """Return the user's functions that a GPU's main process was in in some stretches, of ranks the first's."""
        return next((each.own_functions(spans) for each in self._profiles_of(gpu)), {})

    def longest_call(self, gpu: int | None, spans: Sequence[Span]) -> tuple[Frame | None, float]:
        """Return the user's function that YOLO called for longest in some stretches, and its seconds there."""
        calls = (each.longest_call(spans) for each in self._profiles_of(gpu))
        return max(calls, key=lambda call: call[1], default=(None, 0.0))

    def calls(self, gpu: int | None, spans: Sequence[Span], *, only_idle: bool = False) -> Mapping[Frame, float]:
        """Return the user's functions that YOLO called in some stretches, and their seconds, `only_idle` or all."""
        found = (each.calls(spans, only_idle=only_idle) for each in self._profiles_of(gpu))
        return sums_by_key(pair for calls in found for pair in calls.items())

    def _profiles_of(self, gpu: int | None) -> Iterator[StackProfile]:
        """Yield the profile of the main processes that feed a GPU; of all where it is None, as on the CPU."""
        return (each for each in self._profiles if gpu is None or gpu in each.stacks.gpus)

    @cached_property
    def _profiles(self) -> list[StackProfile]:
        """Return the profile of each main process; of several ranks no CPU is known: it is that of the busiest."""
        mains = [each for each in self.idle_stacks if not each.process.is_worker]
        return [
            StackProfile(each, self._all_phases, self._host_readings if _is_alone(each, mains) else NO_SIGNALS)
            for each in mains
        ]

    def _typical_in(self, training: Training | None) -> _SteadyReadings:
        """Return the readings with what is typical in a training; of one too short for that, in all of them."""
        key = training.span if training is not None else None
        if key not in self._typical:
            steady = self.steady_of(training) if training is not None else self.steady
            enough = training is None or length_s(steady) >= LEVEL_AT_LEAST_S
            self._typical[key] = self._readings.with_steady(steady) if enough else self._typical_in(None)
        return self._typical[key]

    def _typical_programs_in(self, training: Training | None) -> Mapping[Program, float]:
        key = training.span if training is not None else None
        if key not in self._typical_programs:
            steady = self.steady_of(training) if training is not None else self.steady
            self._typical_programs[key] = typical_programs(self._run.other_programs, steady)
        return self._typical_programs[key]

    @cached_property
    def _readings(self) -> _SteadyReadings:
        """Return the readings without any marked: each column is made once, however many trainings there are."""
        gpus = {series.gpu: signal_table(series.samples, GPU_COLUMNS) for series in self._series}
        return _SteadyReadings(self._host, gpus)

    @cached_property
    def _host_readings(self) -> SignalTable:
        return signal_table(self._run.host, HOST_COLUMNS)

    @property
    def _host(self) -> SignalTable:
        """Return the readings of the host, and of each for how much of it no main process waited for its loader."""
        host = self._host_readings
        if not self._profiles or len(host.t_s) <= 1:
            return host
        rows = np.column_stack([np.concatenate([[host.t_s[0]], host.t_s[:-1]]), host.t_s])
        length = np.maximum(rows[:, 1] - rows[:, 0], SHORTEST_ROW_S)
        return host.with_column(NOT_LOADING, 1 - self.loading(None).seconds_in_each(rows) / length)

    def loading(self, gpu: int | None) -> IntervalCover:
        """Return when the main processes of a GPU, or of all (None), waited for their loaders, by their stacks."""
        if gpu not in self._loading:
            mains = [each.stacks for each in self._profiles if gpu is None or gpu in each.stacks.gpus]
            waits = [each.together(np.flatnonzero(each.waits)) for each in mains]
            self._loading[gpu] = interval_cover(np.concatenate([np.empty((0, 2)), *waits]))
        return self._loading[gpu]

    def _others_at(self, gpu: int, start_t_s: float, end_t_s: float) -> tuple[OtherProcess, ...]:
        """Return who else was on a GPU at some time of an interval."""
        return tuple(each for each in self._others if each.gpu == gpu and each.share_of(start_t_s, end_t_s) > 0)

    def _kernel_lines(self, start_t_s: float, end_t_s: float) -> Sequence[KernelEvent]:
        return self._kernel(start_t_s - th.KERNEL_BEFORE_S, end_t_s + th.KERNEL_AFTER_S)


def _is_alone(main: IdleStacks, mains: Sequence[IdleStacks]) -> bool:
    """Tell whether no other main process that feeds a GPU was noted while one was."""
    fed = [each for each in mains if each is not main and len(each.start_s) and float(each.idle_s.sum()) > 0]
    if not len(main.start_s):
        return True
    start_s, end_s = float(main.start_s[0]), float(main.end_s[-1])
    return not any(each.start_s[0] < end_s and each.end_s[-1] > start_s for each in fed)


def _in_training(signals: IntervalSignals, training: Training) -> IntervalSignals:
    """Return the signals of an interval with what its training is known by."""
    return replace(
        signals,
        loader_workers=training.workers,
        ranks=training.ranks_here,
        all_reduces=signals.all_reduces or training.ranks > 1,
        slow_modes=training.slow_modes,
        slower_since_first_epoch=training.slower_since_first_epoch,
        setting_locations=training.setting_locations,
        thread_binding=training.thread_binding,
        is_rect=training.args.get("rect") is True,
        caches_in_memory=training.caches_in_memory,
        image_sizes=training.image_sizes,
        batch_tensors=training.quantity("batch_tensors"),
        batch_key=training.text("batch_tensors_key"),
        data_folder=training.text("data_folder"),
        data_mib=training.quantity("data_mib"),
    )


def _shares(phases: Sequence[Phase], start_t_s: float, end_t_s: float) -> dict[str, float]:
    """Return the share of an interval by phase; a part that has a name of its own counts as that."""
    shared = ((each, min(each.end_t_s, end_t_s) - max(each.start_t_s, start_t_s)) for each in phases)
    whole_s = end_t_s - start_t_s
    return sums_by_key((each.detail or each.name, shared_s / whole_s) for each, shared_s in shared if shared_s > 0)


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
