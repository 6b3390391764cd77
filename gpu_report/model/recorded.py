"""What was recorded: `Run` and its parts, as typed, frozen values on one clock.

Times `t_s` are seconds from the run's start, monotonic; wall times are UTC seconds since 1970, and
`run.start_wall_s + t_s` labels a moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd

    from gpu_report.model.calls import ModelCalls
from gpu_report.model.code import Frame, Stack
from gpu_report.model.job_part import JobPart
from gpu_report.model.nccl import Nccl
from gpu_report.model.trace import Trace

Severity = Literal["critical", "warning", "info"]


class TimeSpan:
    """What all values have that take time: from `start_t_s` to `end_t_s`."""

    start_t_s: float
    end_t_s: float

    @property
    def span(self) -> tuple[float, float]:
        """Return its start and its end."""
        return self.start_t_s, self.end_t_s

    @property
    def duration_s(self) -> float:
        """Return its length in seconds."""
        return self.end_t_s - self.start_t_s


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
    recorder_cpu_pct: float | None = None
    recorder_rss_mib: float | None = None
    tick_p50_ms: float | None = None
    tick_p99_ms: float | None = None
    late_ticks: int | None = None

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
class EpochRow:
    """A row of results.csv and when it appeared: after the epoch's validation, before its checkpoint.

    `epoch` is 1-based; `run` counts YOLO runs in this recording from 1; `segment` counts resumes from 1.
    `metrics` holds the row's other columns by their names in the file. `saved_t_s` is when its checkpoint had been
    written, by the files' times; None where nobody looked at them in time. `trained_t_s` is when the epoch's train part
    ended, by the times that YOLO's own TensorBoard events carry; None without those.
    """

    run: int
    segment: int
    epoch: int
    row_t_s: float
    start_t_s: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    saved_t_s: float | None = None
    trained_t_s: float | None = None


@dataclass(frozen=True)
class YoloRun:
    """The YOLO run that was watched: where it lay, its arguments, and how its epochs were put on our clock.

    `anchor` is recorded (rows stamped as they appeared), tensorboard (YOLO's events there), file-time, train-start,
    fitted, none, or no-epoch (nothing to place, since it did not come to the end of one);
    `uncertainty_s` is the stated error of that placement, None where it is exact to the tick. `started_t_s` is when
    args.yaml was written, which YOLO does first of all; `checkpoint_s` how long its last checkpoint took to write, by
    the files' times; both None where those are not known.
    """

    number: int
    path: str | None
    args: Mapping[str, object]
    anchor: Literal["recorded", "tensorboard", "file-time", "train-start", "fitted", "none", "no-epoch"]
    uncertainty_s: float | None
    note: str = ""
    started_t_s: float | None = None
    checkpoint_s: float | None = None


PhaseName = Literal["startup", "train", "validation", "checkpoint", "final evaluation", "idle", "predict", "export"]
OF_EPOCHS: frozenset[PhaseName] = frozenset({"train", "validation", "checkpoint"})  # the phases of an epoch
AT_EPOCH_END: frozenset[PhaseName] = OF_EPOCHS - {"train"}


ValidationPart = Literal[
    "data", "preprocess", "inference", "loss", "postprocess", "metrics", "plots", "gather", "other"
]
VALIDATION_PARTS: tuple[ValidationPart, ...] = get_args(ValidationPart)


@dataclass(frozen=True)
class Validation(TimeSpan):
    """A validation as our callbacks saw it on rank 0, from on_val_start to on_val_end, and where its time went.

    `seconds` are those of its parts, which add up to its length; what is not known is not in it. `data` is the wait for
    the loader, `first_wait_s` what of it came before the first batch. `preprocess` to `postprocess` (NMS, where the
    model has it) are as ultralytics counts them, the GPU waited for. `plots` is none of `metrics`, `gather` the wait
    for other ranks. `images` are of all ranks, `batches` of this one, of `batch` images each. None: not known.
    """

    start_t_s: float
    end_t_s: float
    epoch: int | None
    images: int | None
    batches: int
    seconds: Mapping[ValidationPart, float]
    first_wait_s: float = 0.0
    batch: int | None = None
    workers: int | None = None

    @property
    def images_per_s(self) -> float | None:
        """Return how many images a second it validated, None where that is not known."""
        return self.images / self.duration_s if self.images and self.duration_s > 0 else None


# Sources of phases of which more is said than their name: YOLO's callbacks, its own events there.
FROM_CALLBACKS, FROM_TENSORBOARD = "callbacks", "TensorBoard"


@dataclass(frozen=True)
class Phase(TimeSpan):
    """What YOLO was doing from `start_t_s` to `end_t_s`, and where that is known from.

    `detail` names the part of a phase where that is known: of startup `imports`, `setup`, `data set`, `model` or
    `first batch`, of train `close mosaic`. Its edges are known to `uncertainty_s`, None where nobody can say how well.
    `validated` is the validation that lies in it, None where none does, or nothing is known of its parts.
    """

    name: PhaseName
    epoch: int | None
    start_t_s: float
    end_t_s: float
    source: str
    detail: str = ""
    uncertainty_s: float | None = None
    validated: Validation | None = field(default=None, hash=False)


@dataclass(frozen=True)
class ProcessWait(TimeSpan):
    """A wait of the main thread of a process, as the kernel told of it.

    `role` is `main` or `worker`; `state` the kernel's letter, `channel` its function. `call`, `file` (a path, `pipe` or
    `socket`) and `filesystem` (its type) are empty where it waited for no file, or where nobody could look.
    """

    start_t_s: float
    end_t_s: float
    pid: int
    role: str
    state: str
    channel: str = ""
    call: str = ""
    file: str = ""
    filesystem: str = ""


@dataclass(frozen=True)
class OtherProgram(TimeSpan):
    """What a program that is none of the training's used between two looks at all processes, by name and user.

    `user` is a name, else a number, empty where not known; `pid` is the process that used most, of `processes` that
    used any. `cpu_pct` is in % of a core. `shared` is the share (0 to 1) of it by processes that may run on a core of
    the trainer, None where not known.
    """

    start_t_s: float
    end_t_s: float
    name: str
    user: str
    pid: int
    processes: int
    cpu_pct: float
    shared: float | None = None

    @property
    def who(self) -> str:
        """Return its name and its user in words, without what would make code of them, to be copied."""
        name = self.name.replace("`", "'") or "a program"
        return f"{name} of user {self.user.replace('`', chr(39))}" if self.user else name


@dataclass(frozen=True)
class LockHeld(TimeSpan):
    """A stretch in which no thread could run Python: C code kept the interpreter's lock (GIL).

    `cpu_s` is the CPU that the main thread used meanwhile. `number` is the process's stack that called that code, 0
    where it is not known. Where it is that of other holds, it was seen in `seen` of them, of `alike` in all; else 0.
    """

    start_t_s: float
    end_t_s: float
    cpu_s: float
    number: int = 0
    seen: int = 0
    alike: int = 0


@dataclass(frozen=True, eq=False)
class LongCollections:
    """Runs of Python's garbage collector of 10 ms or longer, in order of time: no thread can run Python meanwhile.

    `number` is the process's stack that one began in, 0 where it is not known; `in_main` says that this is the main
    thread's.
    """

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int32]
    in_main: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class CollectionCounts:
    """How often Python's garbage collector ran in a process: `count` times from `start_s` to `end_s`, for `seconds`.

    These are stretches of 20 s or less, in order of time. `long` are the runs that are known one by one.
    """

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    count: npt.NDArray[np.float64]
    seconds: npt.NDArray[np.float64]
    long: LongCollections


@dataclass(frozen=True, eq=False)
class ThreadStacks:
    """Where another thread of a process stood, in the process's stacks; seen once a second."""

    name: str
    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class BusyThreads:
    """Looks at which another thread of a process had used a tenth of a core or more, in order of time.

    From `start_s` to `end_s` (s of the run; about a second) it used `cpu_s`, the main thread meanwhile `main_cpu_s`,
    both seconds. In the end it stood in the process's stack of that `number`, 0 where that is not known.
    """

    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    cpu_s: npt.NDArray[np.float64]
    main_cpu_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Probes:
    """Looks, for 2 ms each, at whether a main thread used the CPU where it stood: when (s, in order), and whether."""

    at_s: npt.NDArray[np.float64]
    ran: npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class ProcessStacks:
    """Where the main thread of a process stood: from `start_s` to `end_s` of the run in the stack of that `number`.

    `role` is `main`, `rank N` or `worker N` (of a loader). Of stack 0 nothing is known. A line in which the thread
    stood when C code kept the interpreter's lock (`lock_held`) is the one that had called that code. `probes` are of a
    main process or rank, None in recordings from before there were any; so are `busy_threads`, and `collections` of any
    process. `parent` is the pid of the process that a worker loads for, as far as it is known.
    """

    pid: int
    role: str
    start_s: npt.NDArray[np.float64]
    end_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int32]
    stacks: Mapping[int, Stack]
    threads: tuple[ThreadStacks, ...] = ()
    lock_held: tuple[LockHeld, ...] = ()
    probes: Probes | None = None
    parent: int | None = None
    busy_threads: BusyThreads | None = None
    collections: CollectionCounts | None = None

    @property
    def is_worker(self) -> bool:
        """Return whether this is a worker of a loader, not a main process."""
        return self.role.startswith("worker")


@dataclass(frozen=True, eq=False)
class ProcessDumps:
    """What py-spy saw of the main thread of a process at a few moments (`at_s`, s of the run), while a GPU was idle.

    `stacks` has a stack for each of these, empty where it is not known. `role` is `main` or `worker`, `parent` the main
    process of a worker. There are a few in a drop and none elsewhere: they say where a process was then, never where it
    usually is. So they are no `ProcessStacks`, on which causes are built.
    """

    pid: int
    role: str
    at_s: npt.NDArray[np.float64]
    stacks: tuple[Stack, ...]
    parent: int | None = None

    @property
    def is_worker(self) -> bool:
        """Return whether this is a worker of a loader, not a main process."""
        return self.role == "worker"


@dataclass(frozen=True)
class InsideEpoch:
    """The training part of one epoch as our callbacks saw it, from on_train_epoch_start to on_train_epoch_end.

    `epoch` is 1-based; `attempt` counts from 1 how often it was begun (NaN recovery, out-of-memory retry). `end_t_s` is
    None when it never ended. `data_wait_s` is the time between batches that the trainer waited for its loader.
    """

    epoch: int
    attempt: int
    start_t_s: float
    end_t_s: float | None
    images: int | None
    batches: int
    data_wait_s: float
    first_wait_s: float
    longest_wait_s: float
    loss: float | None = None
    lr: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a process was in the epoch that it trained at a moment: batches done, and seconds waited for data.

    `allocated_mib` is the GPU memory that its tensors had then, `hooks` and `callbacks` are how many its model and its
    trainer had; None where that is not known.
    """

    t_s: float
    batches: int
    data_wait_s: float
    allocated_mib: float | None = None
    hooks: int | None = None
    callbacks: int | None = None


@dataclass(frozen=True)
class RefusedAllocation:
    """How much a process asked for of a GPU's memory (MiB), what of that was free, and what the process may have.

    `free_mib` is None where torch did not say it, `allowed_mib` where nothing limits the process, or torch is old.
    """

    asked_mib: float
    free_mib: float | None = None
    allowed_mib: float | None = None


@dataclass(frozen=True)
class Raised:
    """What an exception said of itself beside its type's name; `message` is one line, and hostile until escaped.

    `bases` are the types that it derives from. `code` is the fault's own name, where it has one: an error number's
    (ENOSPC), CUDA's or one of its libraries' (cudaErrorAssert, CUDNN_STATUS_EXECUTION_FAILED), or NAN_GRADIENT.
    `loader_worker` is how a worker of the loader went, of which it tells: the signal's name (SIGKILL), or `exited`.
    `raised_in` is the function of ultralytics that it came from, as `module:function`. `frames` are those it came
    through, innermost first. `refused` is the allocation for which CUDA had no memory.
    """

    message: str = ""
    bases: tuple[str, ...] = ()
    code: str | None = None
    loader_worker: str | None = None
    raised_in: str | None = None
    frames: tuple[Frame, ...] = ()
    refused: RefusedAllocation | None = None


NAN_GRADIENT = "nan gradient"  # `code` of what autograd's anomaly detection raises, and nothing else


@dataclass(frozen=True, eq=False)
class WindowLines:
    """Where the training stood in a window of the profiler, every few ms: when (s), and in the stack of which number.

    `stack` returns the stack of a number. `step_starts_s` is when each kept step began. All are seconds of the run, to
    the microsecond against each other.
    """

    at_s: npt.NDArray[np.float64]
    number: npt.NDArray[np.int64]
    stack: Callable[[int], Stack]
    step_starts_s: npt.NDArray[np.float64]


@dataclass(frozen=True)
class ProfilerWindow:
    """A window in which PyTorch's profiler ran because of us; the training was slower in all of it.

    `start_t_s` to `end_t_s` is from the start of the profiler to the exported trace, `kept_t_s` the beginning of the
    `steps` that were kept. `name` is that of the trace in the run folder. `epoch` is None in a validation. `failed` is
    empty where there is a trace, else why there is none: no_space (on the temporary disk), other_profiler, too_short,
    interrupted, export or error. `graphs` is how many torch.compile had made at its end, `graphs_before` at its
    beginning, None without it; `breaks` are functions and lines after which one ended early. `cut` says that it ended
    before its steps were done: "time" (it took too long) or "events" (too many), else it is empty.
    """

    name: str
    phase: Literal["train", "validation"]
    start_t_s: float
    end_t_s: float
    kept_t_s: float | None = None
    epoch: int | None = None
    steps: int = 0
    reason: str = ""
    full: bool = False
    failed: str = ""
    graphs_before: int | None = None
    graphs: int | None = None
    breaks: tuple[str, ...] = ()
    cut: str = ""
    lines: WindowLines | None = field(default=None, compare=False, repr=False)

    @property
    def ran(self) -> bool:
        """Tell whether the profiler was started at all."""
        return self.failed not in {"no_space", "other_profiler"}

    @property
    def span(self) -> tuple[float, float]:
        """Return when it lasted."""
        return self.start_t_s, self.end_t_s


@dataclass(frozen=True)
class MemoryHolder:
    """What holds the tensors by which a training's GPU memory grew, as its process saw it at `t_s`.

    `name` is as the code has it (`SheetTrainer.seen`), `place` class, instance, global, local, closure, argument or
    cache; `file`, `function` and `line` are where the code adds to it, empty and 0 where that is not known. `tensors`
    and `mib` are what it holds, `new_mib` and `new_tensors` what of it came since the first look. `grown_mib` is by how
    much memory grew since the look before, None where an exception was the occasion. `with_graph` tensors have a graph.
    """

    t_s: float
    name: str
    place: str
    file: str
    function: str
    line: int
    tensors: int
    mib: float
    new_tensors: int
    new_mib: float
    with_graph: int
    grown_mib: float | None = None


@dataclass(frozen=True)
class SettingLocation:
    """A line of the user's code that switches on what slows a training; `name` is as in its settings."""

    name: str
    file: str
    line: int


@dataclass(frozen=True)
class InsideRun:
    """What our callbacks wrote in one process of YOLO: rank 0 of a training, another rank, a prediction, an export.

    `run` is the number of its YoloRun where one lies in the same folder. `settings` are the effective ones (workers,
    batch, accumulate, amp, world_size, parameters, gflops, images, torch, cuda, ultralytics ...), None where unknown.
    `ended` says how: finished, early stop, exception (`error` is its type's name, `raised` what else it said), or None
    when nothing said so (killed).
    `progress` is how far it was within its epochs, every few seconds, in order. Ranks beyond the first keep step with
    it: of theirs, in a long run, `phases`, `epochs` and `progress` hold the beginning and the end only.
    `models` are the facts of each model that was called, by its number in this process; `calls` how many calls there
    were (calls, failed, dropped). `objects` is how many predictors the process had made of each model by then,
    `largest_px` the longer side of the largest image that each was given; `image_px` likewise, in recordings made
    before 2026-11-28, which looked at the first image of each call alone.
    `setting_locations` are lines of the user's code that switched on what the settings say is on (3 of each at most).
    `memory_holders` are what held the tensors by which GPU memory grew, in order: the last look knows most.
    `memory_retries` is how often its process had emptied PyTorch's cache to get GPU memory, each time that it rose:
    when that was seen, and how often so far.
    """

    run: int | None
    rank: int
    pid: int
    task: Literal["train", "val", "predict", "export"]
    settings: Mapping[str, object]
    phases: tuple[Phase, ...]
    epochs: tuple[InsideEpoch, ...]
    ended: str | None = None
    error: str | None = None
    progress: tuple[Progress, ...] = ()
    raised: Raised = Raised()
    profiled: tuple[ProfilerWindow, ...] = ()
    models: Mapping[int, Mapping[str, object]] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    objects: Mapping[int, int] = field(default_factory=dict)
    image_px: Mapping[int, int] = field(default_factory=dict)
    largest_px: Mapping[int, int] = field(default_factory=dict)
    memory_holders: tuple[MemoryHolder, ...] = ()
    memory_retries: tuple[tuple[float, int], ...] = ()
    setting_locations: tuple[SettingLocation, ...] = ()


@dataclass(frozen=True)
class OomReport:
    """What the kernel printed of a kill for want of memory, each in MiB and None where it did not say.

    `usage_mib` and `limit_mib` are of the cgroup that reached its limit; `group_own_mib` is what its processes held of
    their own (anonymous memory: without files and shared memory). `killed_own_mib` and `killed_shared_mib` are of the
    process that was killed.
    """

    usage_mib: float | None = None
    limit_mib: float | None = None
    group_own_mib: float | None = None
    killed_own_mib: float | None = None
    killed_shared_mib: float | None = None


@dataclass(frozen=True)
class KernelEvent:
    """One message of the kernel log, or several of the same fault folded into one (`count`, `last_t_s`).

    `kind` is xid, gpu-lost, oom, aer, nvme, ata, nfs, filesystem, block, thermal, lockup, hung-task, segfault,
    amdgpu, mce, hotplug, suspend, drop-caches, driver or other. `text` is the raw line, hostile until escaped. `gpu`
    is the device index where it could be told. For an Xid, `code`, `meaning` and `action` come from our own table.
    `oom` is the kernel's report of a kill for want of memory. `of_another` says that its process was none of the
    training, which went on; the analysis finds that out. `at_limit` that memory ran out at the limit of a container or
    service, not of the machine.
    """

    t_s: float
    kind: str
    severity: Severity
    text: str
    meaning: str
    action: str = ""
    gpu: int | None = None
    code: int | None = None
    pid: int | None = None
    process: str | None = None
    count: int = 1
    last_t_s: float | None = None
    source: str = ""
    oom: OomReport | None = None
    of_another: bool = False
    at_limit: bool = False

    def who(self, unnamed: str) -> str:
        """Return the process that it names, in words; `unnamed` where it tells only a pid."""
        return f"{self.process or unnamed} (pid {self.pid})"


@dataclass(frozen=True)
class KernelLog:
    """What is known of the kernel log. Unless `status` is read, an empty `events` says nothing at all."""

    status: Literal["read", "restricted", "unavailable"]
    source: str | None = None
    reason: str = ""
    advice: str = ""
    events: tuple[KernelEvent, ...] = ()
    xid_events: Literal["listening", "unavailable"] = "unavailable"


@dataclass(frozen=True)
class RecordedEvent:
    """Anything else that happened while recording: gaps, clock steps, NVML errors, markers (schema.EVENT_KINDS)."""

    t_s: float
    kind: str
    gpu: int | None
    fields: Mapping[str, object]


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
