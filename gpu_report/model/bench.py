"""A benchmark: the variants of some models, what was recorded of each, and what is to be said about them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpu_report.model.calls import ModelCalls
from gpu_report.model.inference import Latency, Quantile, calls_needed

Floats = npt.NDArray[np.floating[Any]]
Turn = tuple[float, float]  # from when to when, in seconds of the run
LimitOf = Literal["p50", "p95", "p99"]
# What is to be known of a variant beside its figures.
Remark = Literal["provider fell back", "outputs differ", "no boxes", "shapes differ", "random weights"]


@dataclass(frozen=True)
class BoxAgreement:
    """How far a variant finds the same boxes as `reference`, a variant's name, on the same images.

    `share` is that of the boxes of both that the other has as well, None where neither has any; `score_difference` the
    largest one of matched boxes.
    """

    reference: str
    images: int
    boxes: int
    share: float | None
    score_difference: float | None


@dataclass(frozen=True)
class HostLoop:
    """How long a loop of small operations took in a turn (ms, the mean of before and after it).

    `waited_share` is for how much of the turn (0 to 1) the thread that calls waited for a core, None where that is not
    known.
    """

    ms: float
    waited_share: float | None = None


@dataclass(frozen=True)
class HostSpeed:
    """How fast the host was in all turns of a benchmark: the loop's median (ms), and its ends in nine turns of ten.

    `waited_share` is for how much of all turns the threads that call waited for a core; None where that is not known.
    """

    ms: float
    low_ms: float
    high_ms: float
    waited_share: float | None = None


@dataclass(frozen=True, eq=False)
class BenchVariant:
    """A model in a format, precision and batch size, as it was asked for, and what became of it; None: not known.

    `given`: the model is such a file itself, and its precision its own. `build_s` is how long the export took, also
    where an earlier benchmark made it (`reused`). `load_s` is from nothing to the first result, without imports.
    `settings` are those in use, as of ModelCalls. `failed_in` (start, model, build, load, serve, check) and `reason`
    are of a variant that has failed. Of `calls` only those in `turns` count; `warm_up` is the time before.
    `loops` are of those turns of which it is known how fast the host was. `unreadable_images` are files of the source
    that could not be read.
    """

    name: str
    short: str
    format: str
    half: bool
    batch: int
    given: bool
    pid: int | None = None
    size_mib: float | None = None
    build_s: float | None = None
    reused: bool = False
    load_s: float | None = None
    random_weights: bool = False
    settings: Mapping[str, object] | None = None
    memory_mib: float | None = None
    gpu_memory_mib: float | None = None
    map50_95: float | None = None
    agreement: BoxAgreement | None = None
    failed_in: str | None = None
    reason: str | None = None
    warm_up: Turn | None = None
    turns: tuple[Turn, ...] = ()
    loops: tuple[HostLoop, ...] = ()
    unreadable_images: int = 0
    calls: tuple[ModelCalls, ...] = ()


@dataclass(frozen=True, eq=False)
class BenchRun:
    """All that was recorded of a benchmark. `device` is what was asked of ultralytics, `gpu` its name, None on a CPU.

    `power_t_s` and `power_w` are the readings of that GPU's power, empty without. `finished`: it came to its end.
    """

    path: str
    start_wall_s: float
    device: str | None
    gpu: str | None
    versions: Mapping[str, str]
    plan: Mapping[str, object]
    variants: tuple[BenchVariant, ...]
    power_t_s: Floats
    power_w: Floats
    problems: tuple[str, ...] = ()
    finished: bool = True


@dataclass(frozen=True)
class Rate:
    """Images per second: the mean of a variant's turns, and its 95 % interval; None with too few turns."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class FullSpeed:
    """The latency (ms) and images a second of a variant's fastest turns; p95 is None where turns have few calls."""

    p50_ms: float
    images_per_s: float
    p95_ms: float | None = None


@dataclass(frozen=True)
class BenchRow:
    """What is said of a variant. Milliseconds are of a call, which is a batch; what nobody knows is None.

    `images_per_s` and `latency` are None of a variant that has not served. `preprocess_ms`, `inference_ms` and
    `postprocess_ms` are medians. `warm_up_calls` were slower at the beginning and took `warm_up_s`. `joules` are those
    of the GPU's board for an image. `full_speed` is of the fastest turns, by which variants are ranked. `rates` are
    the images a second of each turn.
    """

    variant: BenchVariant
    images_per_s: Rate | None = None
    latency: Latency | None = None
    preprocess_ms: float | None = None
    inference_ms: float | None = None
    postprocess_ms: float | None = None
    first_call_ms: float | None = None
    warm_up_calls: int | None = None
    warm_up_s: float | None = None
    joules: float | None = None
    remarks: tuple[Remark, ...] = ()
    rates: tuple[float, ...] = ()
    full_speed: FullSpeed | None = None

    @property
    def measured(self) -> bool:
        """Tell whether there are figures."""
        return self.latency is not None

    @property
    def calls_per_s(self) -> float | None:
        """Return how many calls it makes a second of its turns, None of one that has not served."""
        seconds = sum(end_s - start_s for start_s, end_s in self.variant.turns)
        return self.latency.calls / seconds if self.latency is not None and seconds > 0 else None

    @property
    def may_be_chosen(self) -> bool:
        """Tell whether it served to the end, and found what the others find."""
        return self.measured and self.variant.failed_in is None and "outputs differ" not in self.remarks


@dataclass(frozen=True)
class LatencyLimit:
    """What a call may take: a quantile of its latency, in milliseconds."""

    of: LimitOf
    ms: float

    @property
    def text(self) -> str:
        """Return it as the command line has it."""
        return f"{self.of}:{self.ms:g}ms"

    @property
    def calls_needed(self) -> int:
        """Return how many calls of a variant its quantile needs."""
        return calls_needed(int(self.of.removeprefix("p")) / 100)

    def quantile(self, row: BenchRow) -> Quantile:
        """Return the quantile of a variant's latency that the limit is about, empty where it is not known."""
        return self._up_to_it(row)[-1]

    def is_surely_broken(self, row: BenchRow) -> bool:
        """Tell whether a variant takes longer for certain: so it does where a lower quantile already does."""
        return any(each.low_ms is not None and each.low_ms > self.ms for each in self._up_to_it(row))

    def _up_to_it(self, row: BenchRow) -> tuple[Quantile, ...]:
        if row.latency is None:
            return (Quantile(),)
        return (row.latency.p50, row.latency.p95, row.latency.p99)[: ("p50", "p95", "p99").index(self.of) + 1]


@dataclass(frozen=True)
class BenchResult:
    """A benchmark and what to choose, as places in `rows`; None where nothing can be chosen.

    `rows` are in order of rank: images a second at full speed, then those that may not be chosen, last those without
    figures. `choice` has the most of them, of those within the limit where there is one; `keeps_limit` says that its
    interval is within it too, or that there is no limit. `rivals` may serve as many images a second as the choice: the
    interval of their ratio, from turns of the same rounds, reaches 1. `quickest` has the lowest median latency.
    Variants that failed, or whose outputs differ, are not chosen.
    """

    run: BenchRun
    rows: tuple[BenchRow, ...]
    limit: LatencyLimit | None
    choice: int | None
    keeps_limit: bool
    quickest: int | None
    rivals: tuple[int, ...] = ()
    host: HostSpeed | None = None

    @property
    def sure(self) -> bool:
        """Tell whether the choice is certain: within the limit, and nobody may be as fast."""
        return self.choice is not None and self.keeps_limit and not self.rivals

    @property
    def is_too_short(self) -> bool:
        """Tell whether of no variant that may be chosen it is known what the limit is about: too few calls.

        Where the median is over the limit, more calls change nothing.
        """
        usable = [row for row in self.rows if row.may_be_chosen]
        if self.limit is None or any(self.limit.quantile(row).value_ms is not None for row in usable):
            return False
        return not all(map(self.limit.is_surely_broken, usable))
