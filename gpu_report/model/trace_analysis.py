"""What is found in a trace of PyTorch's profiler: `TraceAnalysis` and its parts.

Seconds are sums over the steps that are used, unless a field says a step. Shares are 0 to 1. Missing is None.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from gpu_report.model.trace import CopyKind, Floats

Bound = Literal["launch", "gpu", "exchange", "data", "neither", "unknown"]
FamilyName = Literal[
    "convolution",
    "normalisation",
    "activation",
    "attention",
    "matrix products",
    "upsampling",
    "pooling",
    "concatenation",
    "indexing",
    "elementwise",
    "loss",
    "optimizer",
    "copies",
    "layout changes",
    "NMS",
    "communication",
    "compiled",
    "other",
]
OptimizerStyle = Literal["fused", "foreach", "per parameter", "unknown"]


@dataclass(frozen=True)
class TraceStepTime:
    """A step by what its GPU did, from `start_s` to `end_s` of the trace; the five parts add up to its length.

    `compute_s` has kernels other than communication; `communication_s` and `copy_s` only what nothing of that runs
    beside. `data_wait_s` is idle time in which the training waited for its data loader, `cpu_wait_s` all other idle
    time: the GPU waits for the CPU. `kernels` is how many the step launched. `number` is None where the profiler marked
    no steps. A step is not `used` where kernels of it are missing.
    """

    number: int | None
    start_s: float
    end_s: float
    compute_s: float
    communication_s: float
    copy_s: float
    data_wait_s: float
    cpu_wait_s: float
    kernels: int
    used: bool = True

    @property
    def length_s(self) -> float:
        """Return how long the step took."""
        return self.end_s - self.start_s

    @property
    def busy_s(self) -> float:
        """Return how long its GPU did anything."""
        return self.compute_s + self.communication_s + self.copy_s


@dataclass(frozen=True)
class LaunchTiming:
    """How far ahead of the GPU the CPU launches, and what that says about who waits for whom.

    `gap_s` is the median time from a kernel's launch to its start, None where nothing was paired. `bound` is "exchange"
    where the GPU waits for other ranks longer than for the CPU.
    """

    gap_s: float | None
    bound: Bound


@dataclass(frozen=True)
class FamilyTime:
    """A family of operators: time of GPU work that they launched, and of the CPU in them (children apart)."""

    name: FamilyName
    gpu_s: float
    gpu_share: float
    gpu_pieces: int
    cpu_s: float
    cpu_share: float


@dataclass(frozen=True)
class OperatorTime:
    """An operator: calls, time of the CPU in it (children apart), and of the GPU work that it launched itself."""

    name: str
    family: FamilyName
    calls: int
    cpu_s: float
    gpu_s: float


@dataclass(frozen=True)
class KernelTime:
    """Kernels of one name; `share` is that of all GPU work."""

    name: str
    family: FamilyName
    calls: int
    gpu_s: float
    share: float

    @property
    def mean_s(self) -> float:
        """Return the mean length of one."""
        return self.gpu_s / self.calls


@dataclass(frozen=True)
class LayerTime:
    """A layer of the model (`layer 3 C3k2`): GPU work of its forward and backward pass."""

    index: int
    module: str
    forward_gpu_s: float
    backward_gpu_s: float


@dataclass(frozen=True)
class SyncPoint:
    """Where the CPU waited for the GPU: the outermost ATen operator, the call that waited, and how often.

    `wait_s` is the time of the calls, `operator_s` of the operators around them, which also ask for a copy and launch
    it. `operator` is empty where there was none; both times are the same then.
    """

    operator: str
    call: str
    count: int
    wait_s: float
    operator_s: float


@dataclass(frozen=True)
class CopyTime:
    """Copies of one kind. `gpu_s` is the time of the copy engine, `cpu_s` that of the calls that asked for them."""

    kind: CopyKind
    count: int
    bytes: int
    gpu_s: float
    cpu_s: float

    @property
    def gb_per_s(self) -> float | None:
        """Return 10^9 bytes a second, None where nothing took time."""
        return self.bytes / self.gpu_s / 1e9 if self.gpu_s > 0 else None


@dataclass(frozen=True)
class TensorCores:
    """Whether convolutions and matrix products used tensor cores, by the names of their kernels.

    Shares are of the time of such kernels: with tensor cores, and in 16 bits (AMP). `used` is None where the names do
    not say.
    """

    used: bool | None
    share: float
    half_share: float
    gpu_s: float


@dataclass(frozen=True)
class AllocatorCalls:
    """Calls of cudaMalloc, cudaFree, cudaHostAlloc and the like: memory that was not cached."""

    name: str
    count: int
    cpu_s: float


@dataclass(frozen=True)
class OptimizerTime:
    """The optimizer's steps: how many, their GPU work and CPU time, and whether parameters are updated together."""

    style: OptimizerStyle
    calls: int
    gpu_pieces: int
    gpu_s: float
    cpu_s: float


@dataclass(frozen=True)
class CpuFreeStep:
    """How long a step would take if the CPU took no time; seconds a step.

    `limit_s` is what the GPU was busy, and cannot be beaten without doing less. `expected_s` adds what a GPU that is
    never out of work still needs: between kernels, and where the CPU reads a result before it launches what comes next.
    """

    limit_s: float
    expected_s: float


@dataclass(frozen=True)
class TraceQuality:
    """How far a trace can be trusted: `first_missing` says that kernels of the first steps are missing.

    `kernels_uneven` says that the steps' numbers of kernels differ by more than a fifth even so. `unpaired_work` has no
    call that launched it, `unpaired_launches` have no work.
    """

    steps: int
    has_gpu_work: bool
    first_missing: bool
    kernels_uneven: bool
    unpaired_work: int
    unpaired_launches: int


@dataclass(frozen=True)
class TraceAnalysis:
    """What a trace says of a training's steps. Tables are sorted, largest first; `layers` by index.

    `sync_spans` are rows of start and end (s) in which the
    CPU waited for the GPU, with the operators around the calls. `compiled_per_step` are the regions of torch.compile
    that a step enters. What needs the GPU is None, or 0, without GPU work.
    """

    quality: TraceQuality
    steps: tuple[TraceStepTime, ...]
    device: int | None
    launches: LaunchTiming
    families: tuple[FamilyTime, ...]
    operators: tuple[OperatorTime, ...]
    kernels: tuple[KernelTime, ...]
    layers: tuple[LayerTime, ...]
    syncs: tuple[SyncPoint, ...]
    copies: tuple[CopyTime, ...]
    layout_share: float | None
    tensor_cores: TensorCores | None
    allocator: tuple[AllocatorCalls, ...]
    optimizer: OptimizerTime | None
    kernels_per_step: float
    compiled_per_step: float
    cpu_free: CpuFreeStep | None
    sync_spans: Floats = field(default_factory=lambda: np.zeros((0, 2)), compare=False, repr=False)

    @property
    def used_steps(self) -> tuple[TraceStepTime, ...]:
        """Return the steps that the sums are over."""
        return tuple(step for step in self.steps if step.used)

    @property
    def step_s(self) -> float | None:
        """Return the mean length of a used step, None where there is none."""
        used = self.used_steps
        return sum(step.length_s for step in used) / len(used) if used else None

    @property
    def busy_s(self) -> float | None:
        """Return how long the GPU did anything in a used step (mean), None without GPU work."""
        used = self.used_steps
        return sum(step.busy_s for step in used) / len(used) if used and self.quality.has_gpu_work else None

    @property
    def exchanged_s(self) -> float:
        """Return how long the GPU did nothing but communicate in a used step (mean)."""
        used = self.used_steps
        return sum(step.communication_s for step in used) / len(used) if used else 0.0

    @property
    def worked_s(self) -> float | None:
        """Return how long the GPU computed or copied in a used step (mean), None without GPU work."""
        return None if self.busy_s is None else self.busy_s - self.exchanged_s

    @property
    def busy_share(self) -> float | None:
        """Return the share of the used steps in which the GPU did anything, None without GPU work."""
        return None if self.busy_s is None or not self.step_s else self.busy_s / self.step_s
