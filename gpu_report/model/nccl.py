"""What NCCL and torch's flight recorder left of the exchange between ranks."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_report.model.code import Stack


@dataclass(frozen=True)
class NcclWarning:
    """A line that NCCL marks WARN, which it does for errors.

    `source` is its file and line of NCCL (bootstrap.cc:114), empty in some versions. `t_s` is None where the line has
    no time, or nobody knows the zone of its clock.
    """

    text: str
    source: str
    t_s: float | None


@dataclass(frozen=True)
class NcclProcess:
    """A process of a training by its lines in the file of NCCL_DEBUG_FILE; None and empty is what no line says.

    `rank`, `ranks` and `nodes` are of its largest communicator. `network` is that which NCCL uses between nodes (IB,
    Socket, or a plugin's name), whether or not there are others; `adapters` are its devices. `transports` are those of
    its connections to other ranks, without device numbers (P2P/CUMEM, SHM/direct/direct, NET/Socket). `settings` are
    the variables that switch a transport, as the environment has them.
    """

    pid: int
    host: str
    rank: int | None = None
    ranks: int | None = None
    nodes: int | None = None
    version: str | None = None
    network: str | None = None
    adapters: tuple[str, ...] = ()
    transports: tuple[str, ...] = ()
    settings: tuple[tuple[str, str], ...] = ()
    warnings: tuple[NcclWarning, ...] = ()


@dataclass(frozen=True)
class Collective:
    """A collective that a rank called: which of its group (1 is the first), and what. `stack` is the call's."""

    number: int
    name: str
    t_s: float
    completed: bool
    stack: Stack = ()


@dataclass(frozen=True)
class TracedGroup:
    """A process group in a rank's trace: its ranks, how many collectives this one called, and the last of them."""

    name: str
    ranks: tuple[int, ...]
    called: int
    last: tuple[Collective, ...]


@dataclass(frozen=True)
class RankTrace:
    """What torch's flight recorder knew of a rank when it was asked."""

    rank: int
    groups: tuple[TracedGroup, ...]


@dataclass(frozen=True)
class Nccl:
    """What a run folder has of NCCL: its processes by rank, and the flight recorder's traces by rank."""

    processes: tuple[NcclProcess, ...] = ()
    traces: tuple[RankTrace, ...] = ()

    @property
    def versions(self) -> tuple[str, ...]:
        """Return the versions of NCCL, each once."""
        return tuple(dict.fromkeys(each.version for each in self.processes if each.version))

    @property
    def transports(self) -> tuple[str, ...]:
        """Return how ranks are connected, each way once: within nodes first, then by the network (NET/...)."""
        found = dict.fromkeys(name for each in self.processes for name in each.transports)
        return tuple(sorted(found, key=lambda name: (name.startswith("NET/"), name)))
