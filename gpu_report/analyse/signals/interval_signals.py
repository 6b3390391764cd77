"""What happened beside an interval of a GPU: every signal within it, and what it is in the run's own training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.code.busy_thread import BusyThread
from gpu_report.analyse.signals.code.garbage import Garbage
from gpu_report.analyse.signals.code.loader_work import LoaderWork, WorkerCode
from gpu_report.analyse.signals.code.stack_profile import IdleLocation, OwnLayer
from gpu_report.analyse.signals.host.other_processes import OtherProcess
from gpu_report.analyse.signals.host.other_programs import Program
from gpu_report.analyse.signals.host.process_waits import FileWait, GilHold
from gpu_report.analyse.signals.signal_table import SignalTable
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Frame, Mount, NearbyKernelEvent, OtherProgram, SettingLocation

NOT_LOADING = "not_loading"  # column: share of each row (0 to 1) in which the main process did not wait for its loader
WAITING = ((NOT_LOADING, th.NOT_LOADING_SHARE), ("main_cpu_pct", th.WAITING_MAIN_PCT))


@dataclass(frozen=True, eq=False)
class IntervalSignals:
    """One interval of one GPU, and all that may have caused it.

    `phases` are the shares of the interval (0 to 1) by what callbacks said that YOLO was doing, empty where none did.
    `tick_s` is the time that a row of the host stands for.
    `slow_modes` are what was switched on in the main process that slows it, by their names in its settings.
    `slower_since_first_epoch` is how many times longer than in its first epoch the steps of its training took since.
    `setting_locations` are lines of user code that switched them on, or that leave a process fewer cores ("affinity").
    `thread_binding` are the variables that bind its threads to cores (OMP_PLACES), None where nobody looked.
    `is_rect` says that its training loads images in the order of their shape, `image_sizes` how many sizes they have.
    `caches_in_memory` says that it keeps all images in host memory (`cache=ram`), None where that is not known.
    `idle_location` is where the main process stood in its idle GPU time, None without its stacks.
    `main_file_wait` and `worker_file_wait` are the longest waits for a file in it, `named_file_wait` that of a worker
    for one whose name is known. `gil_held` says how long of it C code
    kept Python's lock.
    `garbage` is what Python's garbage collector took of the main process, `workers_garbage` what it took of the workers
    in all of its training.
    `busy_thread` is another thread of the main process that kept Python busy in most of it.
    `data_folder` is where the training's images lie (`data_mib` in all), None where not known, `mounts` the
    filesystems of the machine.
    `other_programs` are the looks at programs of others that touch it, `typical_programs` is the CPU of each (% of a
    core) in the steady state.
    `loader` is what the workers did in it, or in all of its training, while that waited; None where it was not noted.
    `worker_code` is the user's function in which the workers were longest in all of its training, `workers_at_work` how
    many of this GPU's were at work then, on average, computing or waiting; None where that was not noted.
    `own_layer` is the layer of the user's in which the main process was longest in all of its training, `synced_norms`
    the share (0 to 1) of its forward passes in which norms exchanged with other ranks.
    `copying_line` is the line of the user's for which tensors were copied between GPU and CPU memory for longest in it.
    `is_steady` says that it is all of a training's steady state, with nothing else to compare it with, and
    `waits` that its host rows are only those of an interval in which the trainer waited.
    `image_bytes_s` is what goes to this GPU of images (bytes/s), None where callbacks did not count them.
    None where not known are the cores of the machine (`cores`), those that a quota and an affinity leave
    (`usable_cores`), the cores' worth of time that the quota of its cgroup allows (`cpu_limit`),
    the share of its training that waited for data, the seconds of a training step, and how many
    workers load for training, over all its `ranks` here (processes of it on this machine). It `all_reduces` gradients
    where there are several ranks, here or on other nodes. `batch_tensors` is how many tensors a batch of it has,
    most of them under `batch_key`.
    """

    gpu: int
    start_t_s: float
    end_t_s: float
    host: SignalTable
    own: SignalTable
    tick_s: float = 1.0
    cores: int | None = None
    usable_cores: float | None = None
    cpu_limit: float | None = None
    kernel: Sequence[NearbyKernelEvent] = ()
    other_processes: Sequence[OtherProcess] = ()
    nvml_lost: str = ""
    data_wait_share: float | None = None
    step_s: float | None = None
    image_bytes_s: float | None = None
    loader_workers: int | None = None
    ranks: int = 1
    all_reduces: bool = False
    phases: Mapping[str, float] = field(default_factory=dict)
    in_first_epoch: bool = False
    is_steady: bool = False
    waits: bool = False
    slow_modes: frozenset[str] = frozenset()
    slower_since_first_epoch: float = 1.0
    setting_locations: Sequence[SettingLocation] = ()
    thread_binding: tuple[str, ...] | None = None
    is_rect: bool = False
    caches_in_memory: bool | None = None
    image_sizes: int = 1
    batch_tensors: float | None = None
    batch_key: str | None = None
    idle_location: IdleLocation | None = None
    main_file_wait: FileWait | None = None
    worker_file_wait: FileWait | None = None
    named_file_wait: FileWait | None = None
    gil_held: GilHold | None = None
    garbage: Garbage | None = None
    workers_garbage: Garbage | None = None
    loader: LoaderWork | None = None
    worker_code: WorkerCode | None = None
    workers_at_work: float | None = None
    own_layer: OwnLayer | None = None
    copying_line: Frame | None = None
    synced_norms: float = 0.0
    busy_thread: BusyThread | None = None
    data_folder: str | None = None
    data_mib: float | None = None
    mounts: tuple[Mount, ...] = ()
    other_programs: Sequence[OtherProgram] = ()
    typical_programs: Mapping[Program, float] = field(default_factory=dict)

    @property
    def span(self) -> Span:
        """Return its start and its end."""
        return self.start_t_s, self.end_t_s

    @property
    def is_alone(self) -> bool:
        """Tell whether the host's reading of a main process is of this GPU's, and not of the busiest rank's."""
        return self.idle_location is None or self.idle_location.is_alone

    @property
    def waited_share(self) -> float | None:
        """Return the share (0 to 1) waited for data, by callbacks, else by stacks; None where neither tells."""
        if self.data_wait_share is None and self.idle_location is not None:
            return self.idle_location.in_loader
        return self.data_wait_share

    @property
    def _inner(self) -> Span:
        """Return the interval without its edges, whose rows belong half to what was before and after."""
        edge = min(th.ROW_EDGE_S, (self.end_t_s - self.start_t_s) / 4)
        return self.start_t_s + edge, self.end_t_s - edge / 2

    def while_waiting(self) -> IntervalSignals | None:
        """Return the interval with the host as it was while the trainer waited; None if that was seldom, or not known.

        What is typical is then what it was while the trainer worked. That it waited is told by its stacks, else by the
        CPU of its main process.
        """
        column, line = next((each for each in WAITING if each[0] in self.host.columns), ("", 0.0))
        if not column:
            return None
        waiting = self.host.where_below(column, line)
        waited_s = len(waiting.t_s) * self.tick_s
        return replace(self, host=waiting, waits=True) if waited_s >= th.WAITING_S else None

    def within(self, name: str) -> float | None:
        """Return the mean of a host column within the interval."""
        return self._mean_in(self.host, name)

    def share_above(self, name: str, line: float) -> float | None:
        """Return the share (0 to 1) of the interval in which a host column was at a line or above."""
        return self.host.share_above(name, line, *self._inner)

    def cpu_ceiling(self, near: float) -> tuple[float, float]:
        """Return what CPU the training hardly exceeds (% of a core), and in what share of rows (0 to 1) it has that."""
        return self.host.ceiling(("main_cpu_pct", "workers_cpu_pct"), near, *self._inner)

    def typical(self, name: str) -> float | None:
        """Return what a host column is in the steady state."""
        return self.host.typical(name)

    def gpu_within(self, name: str) -> float | None:
        """Return the mean of a column of this GPU within the interval."""
        return self._mean_in(self.own, name)

    def _mean_in(self, table: SignalTable, name: str) -> float | None:
        key = table is self.own, name
        if key not in self._means:
            self._means[key] = table.within(name, *self._inner)
        return self._means[key]

    @cached_property
    def _means(self) -> dict[tuple[bool, str], float | None]:
        """Return what has been worked out already: each cause asks for the same few columns."""
        return {}

    def gpu_share_with(self, name: str, bits: int) -> float | None:
        """Return the share of the interval in which a bitmask of this GPU has any of these bits."""
        return self.own.share_with(name, bits, *self._inner)

    def gpu_typical(self, name: str) -> float | None:
        """Return what a column of this GPU is in the steady state."""
        return self.own.typical(name)

    def workers_lead_s(self) -> float | None:
        """Return how long before the GPU the workers went idle (negative: after it); None where they did not.

        Workers that stop first starve the GPU once what they had prefetched is used up; where the trainer stops, the
        GPU falls at once and the workers go on until the queue is full.
        """
        typical = self.typical("workers_cpu_pct")
        if not typical:
            return None
        since = self.host.below_since("workers_cpu_pct", th.IDLE_SHARE * typical, self.start_t_s + th.LEAD_LOOK_S)
        return None if since is None else self.start_t_s - since

    def workers_surge(self) -> float | None:
        """Return the workers' CPU right after the interval, over what is typical: an empty queue is filled anew."""
        typical = self.typical("workers_cpu_pct")
        after = self.host.within("workers_cpu_pct", self.end_t_s, self.end_t_s + th.SURGE_S)
        return after / typical if typical and after is not None else None
