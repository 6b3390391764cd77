"""What a trace of PyTorch's profiler holds: `Trace`, columns of numbers for each kind of event.

Times `start_s` and `end_s` are seconds from the trace's start, in order within a table. A whole number that is missing
is -1. `name` and `thread` are indices into `Trace.names` and `Trace.threads`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

CopyDirection = Literal["HtoD", "DtoH", "DtoD", "HtoH", "PtoP", ""]
HostMemory = Literal["pageable", "pinned", ""]


@dataclass(frozen=True)
class TraceDevice:
    """A GPU that the profiler saw. `memory_mib` is None where unknown."""

    index: int
    name: str
    memory_mib: float | None = None


@dataclass(frozen=True)
class TraceRank:
    """Which of several processes of torch.distributed a trace is of."""

    rank: int
    world_size: int


@dataclass(frozen=True)
class TraceStep:
    """A step as the profiler marked it (`ProfilerStep#number`), on the CPU; seconds from the trace's start."""

    number: int
    start_s: float
    end_s: float


@dataclass(frozen=True)
class CopyKind:
    """Where a copy goes, and what the memory of the host is that it comes from or goes to; empty where unknown."""

    direction: CopyDirection
    host_memory: HostMemory


@dataclass(frozen=True, eq=False)
class TraceEvents:
    """What every table has: when each event began and ended (s), and the index of its name."""

    start_s: Floats
    end_s: Floats
    name: Int32s

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.start_s)


@dataclass(frozen=True, eq=False)
class TraceMarks(TraceEvents):
    """Annotations of the CPU (`Optimizer.step#...`, `nccl:all_reduce`), or calls of Python functions, by thread."""

    thread: Int32s


@dataclass(frozen=True, eq=False)
class TraceOperators(TraceMarks):
    """Operators on the CPU (`aten::conv2d`, nodes of autograd, `layer 3 C3k2`), in order of thread and start.

    `external_id` is the number by which calls and GPU work refer to their operator. `sequence` joins a forward operator
    with its node of autograd. `parent` is the row of the operator around it on the same thread.
    """

    external_id: Int64s
    sequence: Int64s
    parent: Int32s


@dataclass(frozen=True, eq=False)
class TraceCalls(TraceMarks):
    """Calls of the CUDA runtime and driver; `correlation` joins one with what it had the GPU do."""

    correlation: Int64s
    external_id: Int64s


@dataclass(frozen=True, eq=False)
class TraceGpuWork(TraceEvents):
    """Kernels, copies or memsets of the GPUs; `bytes` is of copies and memsets."""

    device: Int32s
    stream: Int64s
    correlation: Int64s
    external_id: Int64s
    bytes: Int64s


@dataclass(frozen=True, eq=False)
class TraceSyncs(TraceEvents):
    """Waits for the GPU as CUPTI saw them (`Stream Sync`, `Context Sync`, `Event Sync`)."""

    device: Int32s
    stream: Int64s
    correlation: Int64s


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace of PyTorch's profiler.

    `start_wall_s` is its start in seconds since 1970 (UTC), None where the trace does not say. `threads` are words such
    as `pid 12 tid 34`. `copy_kinds` has each name of `copies`. `problems` says in words what could not be read.
    """

    start_wall_s: float | None
    duration_s: float
    names: tuple[str, ...]
    threads: tuple[str, ...]
    devices: tuple[TraceDevice, ...]
    rank: TraceRank | None
    steps: tuple[TraceStep, ...]
    operators: TraceOperators
    calls: TraceCalls
    kernels: TraceGpuWork
    copies: TraceGpuWork
    memsets: TraceGpuWork
    syncs: TraceSyncs
    annotations: TraceMarks
    python: TraceMarks
    copy_kinds: Mapping[int, CopyKind]
    problems: tuple[str, ...] = ()

    @property
    def has_gpu_work(self) -> bool:
        """Tell whether the profiler saw the GPU do anything."""
        return bool(len(self.kernels) or len(self.copies) or len(self.memsets))
