"""What is to be said about the calls of a model: latency, throughput, and where the time went."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from gpu_report.model.code import CodeLocation

if TYPE_CHECKING:
    from gpu_report.model.calls import ModelCalls

GroupKind = Literal["batch", "shape", "gap", "sm-clock"]
GapKind = Literal[
    "waiting for calls", "decoding", "network", "receiving from a process", "loading the model", "own code"
]

BEYOND_AT_LEAST = 10  # calls beyond a quantile: fewer say nothing of it


def calls_needed(share: float) -> int:
    """Return how many calls a quantile (0 to 1) needs: the median 10, for half of them lie beyond it; p99 1,000."""
    if share == 0.5:
        return BEYOND_AT_LEAST
    return math.ceil(round(BEYOND_AT_LEAST / min(share, 1.0 - share), 6))


@dataclass(frozen=True)
class Quantile:
    """A quantile of latency with its 95 % interval, in milliseconds; all None where there are too few calls for it."""

    value_ms: float | None = None
    low_ms: float | None = None
    high_ms: float | None = None


@dataclass(frozen=True)
class Latency:
    """How long some calls took, in milliseconds a call."""

    calls: int
    mean_ms: float
    worst_ms: float
    p50: Quantile = Quantile()
    p95: Quantile = Quantile()
    p99: Quantile = Quantile()


@dataclass(frozen=True)
class CallGroup:
    """Calls that have something in common.

    `label` says what in words: their batch (`8 images`), their shape (`640 x 384`), the pause before them, or the
    SM clock at their beginning. Groups of one kind come in order, the smallest first.
    """

    kind: GroupKind
    label: str
    images: int
    latency: Latency


@dataclass(frozen=True)
class CallParts:
    """The mean of each part of a call, in milliseconds; None where ultralytics did not report it (embeddings).

    `other_ms` is what is left: tracking, drawing, saving, callbacks.
    """

    preprocess_ms: float | None
    inference_ms: float | None
    postprocess_ms: float | None
    other_ms: float | None
    total_ms: float


@dataclass(frozen=True)
class GapPart:
    """What a process did between its calls: so many seconds of it, and the line of code that most of them went to.

    `waited_for`: another thread did it, and the one that makes the calls waited for it. `function_s` of the seconds
    went to the function of that line, 0 where there is none. `others` are further functions with a line of each and
    their seconds, the longest first. `is_near`: the line waits, yet the thread computed: there, or in a line near it.
    """

    kind: GapKind
    seconds: float
    where: CodeLocation | None = None
    waited_for: bool = False
    function_s: float = 0.0
    others: tuple[tuple[CodeLocation, float], ...] = ()
    is_near: bool = False


@dataclass(frozen=True, eq=False)
class ServedModel:
    """One model in one process: its calls, and what they come to after warming up.

    The first `warm_up_calls` took `warm_up_s` in all, the very first `first_ms`. The rest of this is of the calls after
    them, which lasted from `start_s` to `end_s` (seconds of the run): `images` in all, `images_per_s` of that time with
    the gaps in it, `images_per_s_in_calls` without. `in_calls_share` (0 to 1) is the share of that time in which a call
    was going on. `gap_s` is the rest, `gap_parts` what the process did then, as far as its stacks say: the longest
    first, in seconds that add up to `gap_s` or less.
    `gpu_busy_share` (0 to 1) is how much of that time the GPU worked, whoever had it work; `gpu_ms` is the GPU's work
    of one call, None where others shared the GPU, or where calls are too seldom for the driver's readings.
    `differs` is in which settings it differs from others of the same file (`quantize=16`), empty where there are none.
    `joules_per_image` is the GPU's energy of that time, divided among the models that used it by their inference time;
    `money_per_million` images by the price of a GPU hour, where that was given.
    """

    calls: ModelCalls
    warm_up_calls: int
    warm_up_s: float
    first_ms: float
    start_s: float
    end_s: float
    images: int
    latency: Latency
    parts: CallParts
    groups: tuple[CallGroup, ...] = ()
    images_per_s: float | None = None
    images_per_s_in_calls: float | None = None
    in_calls_share: float = 0.0
    gap_s: float = 0.0
    gap_parts: tuple[GapPart, ...] = ()
    gpu_busy_share: float | None = None
    gpu_ms: float | None = None
    joules_per_image: float | None = None
    money_per_million: float | None = None
    differs: str = ""

    @property
    def name(self) -> str:
        """Return the model's file, with what differs from others of the same file."""
        return self.calls.name + (f" ({self.differs})" if self.differs else "")

    @cached_property
    def steady_calls(self) -> ModelCalls:
        """Return the calls after warming up: those that all else here is of."""
        return self.calls.after(self.warm_up_calls)

    @property
    def batch(self) -> float:
        """Return how many images a call has, on average."""
        return self.images / self.latency.calls if self.latency.calls else 0.0

    def groups_by(self, kind: GroupKind) -> tuple[CallGroup, ...]:
        """Return the groups of one kind."""
        return tuple(group for group in self.groups if group.kind == kind)
