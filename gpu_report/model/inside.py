"""What our callbacks wrote within the processes of YOLO."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from gpu_report.model.code import Frame, Stack
from gpu_report.model.yolo import Phase

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


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
class RebuiltPredictor:
    """A YOLO object whose predictor was set up anew: for the model `number` instead of `before` (may be the same).

    `changed` are the arguments of the call that differed, `file`, `line` and `function` the user's line that made it.
    """

    number: int
    before: int
    changed: tuple[str, ...]
    file: str = ""
    line: int = 0
    function: str = ""


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
    `rebuilt` how many of these took the place of another of the same YOLO object, `rebuilds` in which ways,
    `largest_px` the longer side of the largest image that each was given; `image_px` likewise, in recordings made
    before 2026-11-28, which looked at the first image of each call alone. `repeated` is how many calls with one image
    had that of the call before, of models whose images were compared, `repeated_images` how many images came again.
    `memory_retries` is how often its process had emptied PyTorch's cache to get GPU memory, each time that it rose:
    when that was seen, and how often so far.
    `slow_modes_now` is what was on that slows the process (as in its settings), from each moment on.
    `setting_locations` are lines of the user's code that switched on what the settings say is on (3 of each at most).
    `memory_holders` are what held the tensors by which GPU memory grew, in order: the last look knows most.
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
    rebuilt: Mapping[int, int] = field(default_factory=dict)
    rebuilds: tuple[RebuiltPredictor, ...] = ()
    image_px: Mapping[int, int] = field(default_factory=dict)
    largest_px: Mapping[int, int] = field(default_factory=dict)
    repeated: Mapping[int, int] = field(default_factory=dict)
    repeated_images: Mapping[int, int] = field(default_factory=dict)
    memory_holders: tuple[MemoryHolder, ...] = ()
    setting_locations: tuple[SettingLocation, ...] = ()
    memory_retries: tuple[tuple[float, int], ...] = ()
    slow_modes_now: tuple[tuple[float, frozenset[str]], ...] = ()
