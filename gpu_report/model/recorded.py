"""What was recorded: `Run` and its parts, as typed, frozen values on one clock.

Times `t_s` are seconds from the run's start, monotonic; wall times are UTC seconds since 1970, and
`run.start_wall_s + t_s` labels a moment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gpu_report.model.inside import InsideRun, ProfilerWindow
from gpu_report.model.job_part import JobPart
from gpu_report.model.kernel_log import KernelLog
from gpu_report.model.nccl import Nccl
from gpu_report.model.processes import OtherProgram, ProcessDumps, ProcessStacks, ProcessWait
from gpu_report.model.trace import Trace
from gpu_report.model.yolo import EpochRow, YoloRun

if TYPE_CHECKING:
    import pandas as pd

    from gpu_report.model.calls import ModelCalls


@dataclass(frozen=True)
class Gpu:
    """A device as it stood at the start; what was not known is None.

    The most that its PCIe link can do is of GPU and slot together; `gpu_max_pcie_link_generation` is the GPU's alone.
    `parent_index` is the GPU that a MIG device lies on, `mig_index` its number there; both None for a GPU.
    `health_start` and `health_end` hold what was known of schema.GPU_HEALTH then; None when nothing was asked.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    pci_bus_id: str | None = None
    memory_total_mib: float | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    max_sm_clock_mhz: float | None = None
    max_memory_clock_mhz: float | None = None
    max_pcie_link_generation: float | None = None
    max_pcie_link_width: float | None = None
    gpu_max_pcie_link_generation: float | None = None
    health_start: Mapping[str, int | str] | None = None
    health_end: Mapping[str, int | str] | None = None
    parent_index: int | None = None
    mig_index: int | None = None


@dataclass(frozen=True)
class Mount:
    """A filesystem of the machine: `device` is its disk's name, `rotational` None where that does not tell.

    `free_mib` is what was free on a local disk or in memory when the recording began, None for others.
    """

    point: str
    type: str
    source: str
    device: str | None = None
    rotational: bool | None = None
    free_mib: float | None = None


@dataclass(frozen=True)
class RecorderCost:
    """What the recorder took: of one core, of memory, of the time of a tick; `late_ticks` are those that came late."""

    cpu_pct: float | None = None
    rss_mib: float | None = None
    tick_p50_ms: float | None = None
    tick_p99_ms: float | None = None
    late_ticks: int | None = None


@dataclass(frozen=True)
class Recording:
    """How the data came about: by whom, where, when, and how it ended.

    `cuda_visible_devices` is what the command found of that variable, None where it was not set or is not known.
    `slurm_job_id` is that of the Slurm job that it was part of, None outside one. `user` recorded it, for a `project`.
    `goes_on` says that a recorder still writes it.
    `ended_by` is duration, signal, command, import, or None when there is no end marker (the recorder was
    killed, crashed, or the machine went down). `interval_s` is the intended distance of two ticks.
    `cores` is by CPU affinity, `cpu_limit` the cores' worth of time that cgroups allow; `memory_limit_mib` is theirs,
    too. `oom_kills` counts the processes that the kernel killed for memory meanwhile, by `machine` and `cgroup` (the
    trainer's): what nobody could count is not in it.
    """

    tool_version: str | None = None
    host: str | None = None
    os: str | None = None
    cores: int | None = None
    cores_online: int | None = None
    cpu_limit: float | None = None
    memory_mib: float | None = None
    memory_limit_mib: float | None = None
    shm_total_mib: float | None = None
    mounts: tuple[Mount, ...] = ()
    oom_kills: Mapping[str, int] = field(default_factory=dict)
    driver: str | None = None
    cuda: str | None = None
    python: str | None = None
    torch: str | None = None
    ultralytics: str | None = None
    command: tuple[str, ...] = ()
    cuda_visible_devices: str | None = None
    slurm_job_id: str | None = None
    user: str | None = None
    project: str | None = None
    interval_s: float | None = None
    ended_by: str | None = None
    goes_on: bool = False
    exit_code: int | None = None
    exit_signal: str | None = None
    source: str = "gpu-report record"
    cost: RecorderCost = field(default_factory=RecorderCost)

    @property
    def is_ours(self) -> bool:
        """Return whether gpu-report recorded it, at intervals that are known; else another tool's log was imported."""
        return self.source.startswith("gpu-report")

    @property
    def usable_cores(self) -> float | None:
        """Return how many cores' worth of time the training could have, None where that is not known."""
        known = [cores for cores in (self.cores, self.cpu_limit) if cores is not None]
        return min(known, default=None)


@dataclass(frozen=True)
class RecordedEvent:
    """Anything else that happened while recording: gaps, clock steps, NVML errors, markers (schema.EVENT_KINDS)."""

    t_s: float
    kind: str
    gpu: int | None
    fields: Mapping[str, object]


SLEPT_LEAST_S = 60.0  # that a machine slept: less is no loss that anybody would look for
SLEPT_MOST_S = 366 * 86400.0  # at once: more is no credible length


@dataclass(frozen=True, eq=False)
class Run:
    """All that was recorded, on one clock.

    `samples`: one row a GPU and tick, sorted by gpu then t_s, columns t_s, gpu and schema.GPU_QUANTITIES. `ring`: t_s,
    gpu and schema.RING_QUANTITIES, what the driver kept between ticks, sorted by gpu then t_s. `host`: t_s and
    schema.HOST_QUANTITIES. Readings are float64, or float32 in columns that this holds exactly (whole numbers), NaN
    where missing; a column never recorded is all NaN.
    `traces` are those of PyTorch's profiler, by the name of their window; `imported_windows` those of traces that
    somebody else made.
    `processes`: t_s, gpu, pid, name, memory_used_mib, change, owner (schema.PROCESS_OWNERS), gpu_util_pct. `problems`
    says in whole sentences what of the input could not be read. `job` is the job of several nodes that it is part of.
    `nccl` is what NCCL and torch's flight recorder left of the exchange between ranks.
    """

    path: str
    start_wall_s: float
    duration_s: float
    recording: Recording
    gpus: tuple[Gpu, ...]
    samples: pd.DataFrame
    ring: pd.DataFrame
    host: pd.DataFrame
    processes: pd.DataFrame
    yolo_runs: tuple[YoloRun, ...]
    epoch_rows: tuple[EpochRow, ...]
    kernel: KernelLog
    events: tuple[RecordedEvent, ...]
    problems: tuple[str, ...] = ()
    inside: tuple[InsideRun, ...] = ()
    stacks: tuple[ProcessStacks, ...] = ()
    waits: tuple[ProcessWait, ...] = ()
    other_programs: tuple[OtherProgram, ...] = ()
    dumps: tuple[ProcessDumps, ...] = ()
    traces: Mapping[str, Trace] = field(default_factory=dict)
    imported_windows: tuple[ProfilerWindow, ...] = ()
    calls: tuple[ModelCalls, ...] = ()
    job: JobPart = field(default_factory=JobPart)
    nccl: Nccl = field(default_factory=Nccl)

    @property
    def profiled(self) -> tuple[ProfilerWindow, ...]:
        """Return the windows of PyTorch's profiler, in order of time."""
        windows = [window for inside in self.inside for window in inside.profiled]
        return tuple(sorted([*windows, *self.imported_windows], key=lambda window: window.start_t_s))

    @property
    def began_command(self) -> bool:
        """Tell whether the recorder began the command itself: then it saw its environment, and all of its start."""
        return any(event.kind == "command_started" for event in self.events)

    @property
    def command_ends(self) -> tuple[RecordedEvent, ...]:
        """Return the ends of the commands that the recorder began."""
        return tuple(event for event in self.events if event.kind == "command_ended")

    def command_end_after(self, t_s: float) -> RecordedEvent | None:
        """Return the first end of a command after a moment, None where none was recorded."""
        later = (event for event in self.command_ends if event.t_s > t_s)
        return min(later, key=lambda event: event.t_s, default=None)

    @property
    def slept(self) -> tuple[tuple[float, float], ...]:
        """Return when the machine woke up and how long it had slept (s), which no clock of the recording counts."""
        events = [(event.t_s, event.fields.get("seconds")) for event in self.events if event.kind == "suspend"]
        known = [(t_s, float(seconds)) for t_s, seconds in events if isinstance(seconds, int | float)]
        return tuple((t_s, seconds) for t_s, seconds in known if 0 < seconds < SLEPT_MOST_S)

    @property
    def slept_s(self) -> float:
        """Return for how long the machine slept in all: what `duration_s` lacks by the clock on the wall."""
        return sum(seconds for _, seconds in self.slept)

    @property
    def slept_long(self) -> bool:
        """Tell whether the machine slept for so long that a report says it."""
        return self.slept_s >= SLEPT_LEAST_S

    @property
    def has_training(self) -> bool:
        """Tell whether a training is known, by YOLO's callbacks or its folder."""
        return bool(self.yolo_runs) or any(each.task == "train" for each in self.inside)

    @property
    def no_gpu(self) -> Mapping[str, object] | None:
        """Return why the recorder could read no GPU, as it said last (reason, advice), None where it did not say so."""
        told = [event.fields for event in self.events if event.kind == "nvml_unavailable"]
        return told[-1] if told else None

    def gpu(self, index: int) -> Gpu:
        """Return a GPU by its device index; of one that the recording does not list nothing is known."""
        return next((gpu for gpu in self.gpus if gpu.index == index), Gpu(index))

    def gpu_of_uuid(self, uuid: object) -> int | None:
        """Return the index of the GPU that a process named by its UUID (`gpu_uuid` of settings), None where unknown."""
        return next((gpu.index for gpu in self.gpus if gpu.uuid and gpu.uuid == uuid), None)

    @property
    def sampled_gpus(self) -> list[int]:
        """Return the index of each GPU that has rows of `samples`, in their order."""
        of = self.samples["gpu"].to_numpy()
        changes = (of[1:] != of[:-1]).nonzero()[0] + 1
        return list(dict.fromkeys(map(int, [*of[:1], *of[changes]])))

    def samples_of(self, gpu: int) -> pd.DataFrame:
        """Return a GPU's rows of `samples`, which are not copied."""
        return _of_gpu(self.samples, gpu)

    def ring_of(self, gpu: int) -> pd.DataFrame:
        """Return a GPU's rows of `ring`, which are not copied."""
        return _of_gpu(self.ring, gpu)


def _of_gpu(frame: pd.DataFrame, gpu: int) -> pd.DataFrame:
    """Return a GPU's rows of a table that is sorted by GPU."""
    of = frame["gpu"].to_numpy()
    if not len(of) or gpu > of[-1]:  # its type may not hold the index
        return frame.iloc[:0]
    asked = of.dtype.type(gpu)  # of another type, it copies `of`
    first, last = of.searchsorted(asked), of.searchsorted(asked, side="right")
    return frame.iloc[int(first) : int(last)]
