"""What one recording knows of the job of several nodes that it is part of."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ClockState:
    """How well a node's wall clock was set, as its kernel knew it; all in seconds, None where nobody kept it.

    It is at most `max_error_s` from UTC, and `estimated_error_s` by the estimate of the daemon that keeps it.
    """

    synchronised: bool | None = None
    offset_s: float | None = None
    max_error_s: float | None = None
    estimated_error_s: float | None = None


@dataclass(frozen=True)
class Rank:
    """A process of the training: its number in the whole job, and on its node; None is what is not known."""

    rank: int
    local_rank: int | None = None
    gpu_uuid: str | None = None
    pid: int | None = None


@dataclass(frozen=True)
class JobPart:
    """A node of a job, by its launcher's variables and its ranks; None is what nobody said.

    `nodes` and `world_size` (ranks) are of the whole job, `restarts` how often torchrun had restarted its ranks.
    """

    id: str | None = None
    scheduler: str | None = None
    node_rank: int | None = None
    nodes: int | None = None
    world_size: int | None = None
    restarts: int | None = None
    ranks: tuple[Rank, ...] = ()
    clock_start: ClockState | None = None
    clock_end: ClockState | None = None

    @property
    def max_error_s(self) -> float | None:
        """Return how far the clock was from UTC at most, in seconds, while it was recorded; None where unknown."""
        clocks = [clock for clock in (self.clock_start, self.clock_end) if clock is not None]
        known = [clock.max_error_s for clock in clocks if clock.max_error_s is not None]
        return max(known) if known and len(known) == len(clocks) else None

    @property
    def is_of_several_nodes(self) -> bool:
        """Tell whether the job has ranks on other nodes."""
        if self.nodes is not None:
            return self.nodes > 1
        return bool(self.ranks) and (self.world_size or 1) > len(self.ranks)
