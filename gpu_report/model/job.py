"""A job of several nodes: what each node's recording comes to, and what is to be said about all of them together.

Times `t_s` of a `NodeRun` are its own, those of a `Job` are seconds from the job's start on the reference node's clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpu_report.model.analysis import LedgerRow
from gpu_report.model.code import CodeLocation
from gpu_report.model.finding import Finding
from gpu_report.model.inside import InsideEpoch
from gpu_report.model.job_part import JobPart
from gpu_report.model.kernel_log import Severity
from gpu_report.model.nccl import Nccl
from gpu_report.model.time_span import TimeSpan
from gpu_report.model.verdict import Sentence

JobRule = Literal[
    "straggler",
    "stall-from-node",
    "missing-rank",
    "missing-node",
    "elastic-restart",
    "sockets",
    "unequal-gpus",
    "clocks-apart",
    "clocks-unknown",
    "same-host",
]


@dataclass(frozen=True, eq=False)
class NodeGpu:
    """A GPU of a node. `util_pct` (n, NaN: not read) is its mean utilisation in stretches of the node's `step_s`."""

    index: int
    uuid: str | None
    name: str | None
    memory_total_mib: float | None
    used: bool
    util_pct: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class RankTraining:
    """A rank's process: its epochs, and the lines of code in which it and its workers stood while it trained.

    `gpu` is its device index, `start` which of the processes of this rank it is: torchrun may start it again. The lines
    in `loading` are those while it waited for data, those in `working` of all other time, without waits for the GPU and
    for other ranks; each with its share of that time.
    """

    rank: int
    pid: int
    gpu: int | None
    start: int
    on_gpu: bool
    workers: int | None
    epochs: tuple[InsideEpoch, ...]
    loading: tuple[CodeLocation, ...] = ()
    working: tuple[CodeLocation, ...] = ()


@dataclass(frozen=True, eq=False)
class NodeRun:
    """What is kept of the analysis of one node: of 16 nodes all readings would be a gigabyte.

    `busy_pct` is of training, `findings` are the unexpected ones, worst first. `nccl` is what NCCL and torch's flight
    recorder left; of traces it has only what never completed as such.
    """

    path: str
    host: str | None
    start_wall_s: float
    duration_s: float
    step_s: float
    job: JobPart
    gpus: tuple[NodeGpu, ...]
    ranks: tuple[RankTraining, ...]
    verdict: str
    busy_pct: float | None
    findings: tuple[Finding, ...]
    ledger: tuple[LedgerRow, ...]
    problems: tuple[str, ...]
    ended_by: str | None = None
    nccl: Nccl = field(default_factory=Nccl)


@dataclass(frozen=True)
class NodeClock:
    """A node's clock against that of the reference node.

    It is `ahead_s` of it by the `barriers` that both passed together (None: there are none), which it fits to
    `residual_s` (p95; None with fewer than two). `error_s` is how far from UTC it was at most, as its kernel said.
    """

    ahead_s: float | None
    residual_s: float | None
    barriers: int
    error_s: float | None


@dataclass(frozen=True)
class UnreadNode:
    """A folder that was named as a node and cannot be read, with the reason; `node_rank` where its run.json says it."""

    path: str
    node_rank: int | None
    reason: str


@dataclass(frozen=True, eq=False)
class JobNode:
    """A node of the job: one that was recorded, one whose folder cannot be read, or one that nobody gave.

    `run` is None for both of the latter, `unread` says why the folder cannot be read. `shift_s` is what to add to its
    own `t_s` to get the job's.
    """

    name: str
    node_rank: int | None
    run: NodeRun | None
    clock: NodeClock | None = None
    shift_s: float = 0.0
    unread: str = ""

    @property
    def is_missing(self) -> bool:
        """Tell whether nothing of it was recorded, or given."""
        return self.run is None and not self.unread


@dataclass(frozen=True)
class JobFinding(TimeSpan):
    """Something about the job as a whole. `node` is the name of the node that it is of, `rank` the rank.

    `lost_gpu_s` are GPU seconds of the other ranks, `share_of_training` (0 to 1) of all of the training.
    """

    id: str
    rule: JobRule
    severity: Severity
    summary: str
    start_t_s: float
    end_t_s: float
    node: str | None = None
    rank: int | None = None
    cause: str | None = None
    where: tuple[CodeLocation, ...] = ()
    advice: str = ""
    lost_gpu_s: float | None = None
    share_of_training: float | None = None


@dataclass(frozen=True)
class RankRow:
    """A rank in numbers: per epoch that all ranks trained (means, s) its training and its wait for data, and its GPU.

    `last_share` (0 to 1) is in how many of these epochs it was the one that all others waited for, None where there is
    no other rank to compare it with.
    """

    rank: int
    node: str
    gpu: int | None
    epochs: int
    train_s: float | None
    data_wait_s: float | None
    busy_pct: float | None
    last_share: float | None


@dataclass(frozen=True, eq=False)
class Job:
    """A job of several nodes. `aligned` says whether clocks fit so well that a cause may cross from node to node.

    `why_not_aligned` says why not, in words. `epoch_starts_s` is when each epoch of the first rank began.
    """

    id: str | None
    scheduler: str | None
    start_wall_s: float
    duration_s: float
    nodes: tuple[JobNode, ...]
    ranks: tuple[RankRow, ...]
    findings: tuple[JobFinding, ...]
    verdict: tuple[Sentence, ...]
    aligned: bool
    why_not_aligned: str
    epoch_starts_s: tuple[float, ...] = ()
    busy_pct: float | None = None
    notes: tuple[str, ...] = field(default=())

    @property
    def recorded(self) -> list[tuple[JobNode, NodeRun]]:
        """Return the nodes of which there is a recording, with it."""
        return [(node, node.run) for node in self.nodes if node.run is not None]

    @property
    def gpu_count(self) -> int:
        """Return how many GPUs the recorded nodes have."""
        return sum(len(run.gpus) for _, run in self.recorded)
