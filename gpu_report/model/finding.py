"""`Finding`, with what supports it, what caused it and what to change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from typing import Literal

from gpu_report.model.code import CodeLocation
from gpu_report.model.kernel_log import KernelEvent, Severity
from gpu_report.model.time_span import TimeSpan

Reference = Literal[
    "",
    "typical",
    "typical of next",
    "first of next",
    "before of next",
    "under less load",
    "highest",
    "limit",
    "capacity",
    "allowance",
    "before the end",
]


@dataclass(frozen=True)
class Evidence:
    """A number from the run that supports a finding.

    `key` names the number where code asks for it. `reference` says what the number before it is compared with by this
    one (the next, with "typical of next", or what that was at first or before a change, "first of next" and "before of
    next"), empty where it stands by itself.
    """

    text: str
    value: float | None = None
    unit: str = ""
    key: str = ""
    reference: Reference = ""


@dataclass(frozen=True)
class Cause:
    """What took the GPU's time (names: catalogue.CAUSES). `confidence` is 0 to 1."""

    name: str
    confidence: float
    explanation: str
    runner_up: str | None = None


@dataclass(frozen=True)
class NearbyKernelEvent:
    """A kernel event near a finding; `offset_s` is negative before its start, 0 inside it, positive after."""

    event: KernelEvent
    offset_s: float


@dataclass(frozen=True)
class Setting:
    """An argument of the run, its value now and the one to try, as they are typed."""

    argument: str
    from_value: str | None
    to_value: str


UNSURE = 0.5  # what is only known to win at most so much stands behind what is likely to win half of that


@dataclass(frozen=True)
class Advice:
    """One thing to change: in words, and as an argument of the run with its value now and the one to try.

    `gain_at_most` is the share of the time of training steps (0 to 1) that can be won at all, `gain_estimate` what this
    change is likely to win of it; None where that cannot be worked out. Both are of whole epochs where `of_epoch`, with
    their validation. `short` is the same in a few words, empty where the text is no longer than that; `resume` is the
    command that it says to resume the training with, after which epoch `resume_after`. `also` are arguments that are
    set with it, or instead of one; `images_times` is how often the training images are to be listed, `images_px` to
    which longer side they are to be resized. `reads_kernel_log` says that it is how to read the kernel log next time,
    `for_next` that it is for the next training: this one is resumed as it is, `of_slow_scan` that it is on the storage
    that answered slowly as the images were listed, `is_next` that it is for when the rest of the advice was followed.
    """

    text: str
    argument: str | None = None
    from_value: str | None = None
    to_value: str | None = None
    gain_at_most: float | None = None
    gain_estimate: float | None = None
    short: str = ""
    resume: str = ""
    resume_after: int | None = None
    of_epoch: bool = False
    also: tuple[Setting, ...] = ()
    images_times: int | None = None
    images_px: int | None = None
    reads_kernel_log: bool = False
    for_next: bool = False
    of_slow_scan: bool = False
    is_next: bool = False

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Return all arguments that it sets."""
        if self.argument is None or self.to_value is None:
            return self.also
        return Setting(self.argument, self.from_value, self.to_value), *self.also

    @property
    def typed(self) -> str:
        """Return its arguments as they are typed, empty of advice that needs more than arguments."""
        known = self.settings if self.argument is not None else ()
        return " ".join(f"{each.argument}={each.to_value}" for each in known)

    @property
    def now(self) -> str:
        """Return the values that these arguments have now, in words; empty where one of them is not known."""
        values = [each.from_value for each in self.settings if self.argument is not None]
        return "" if None in values else " and ".join(value for value in values if value is not None)


@dataclass(frozen=True)
class Occurrence(TimeSpan):
    """One time that something happened, which is found again and again: when, on which GPUs, and what it took of them.

    `lost_gpu_s` are GPU seconds of work at the level before it, None where that is not known.
    """

    start_t_s: float
    end_t_s: float
    gpus: tuple[int, ...]
    lost_gpu_s: float | None


def recurring(spans: Sequence[tuple[float, float]], gpus: tuple[int, ...] = ()) -> tuple[Occurrence, ...]:
    """Return what happened in some spans as occurrences whose cost is not known; of one span none."""
    return tuple(Occurrence(*span, gpus, None) for span in spans) if len(spans) > 1 else ()


GPUS = "{gpus}"  # in a summary, for the names of several


@dataclass(frozen=True)
class Finding(TimeSpan):
    """Anything a rule says about a run. `id` is stable (`drop-3`) and is the report's anchor.

    `gpus` are those that felt it, `gpu` the only one, None where it was several or concerns the run as a whole. What
    recurs is one finding, from the first of its `occurrences` to the end of the last; empty of what happened once.
    `lost_gpu_s` (GPU seconds) and `share_of_training` (0 to 1) are what all of it took, None where that is not known;
    of what holds up the ends of epochs it is a share of the epochs with their ends.
    `where` are the lines in which the training stood meanwhile, most of the time first.
    `at_boundary` says that it touches the end of an epoch; `expected` that its phase explains it.
    `level_pct` and `low_pct` are utilisation before a drop and the mean within it. `ran_out` says that memory grew
    until there was no more of it, `names_epoch` that the summary says in which epoch it was. Of a cause
    that may be several things `waited_for` names the one. `every_epochs` says that it comes at the end of each so
    many-th epoch, as what somebody has planned does; None where it does not. `of_gpus` is the summary of several GPUs
    of which it is true at once, with GPUS in the place of their names; empty where each has a finding of its own.
    `which_training` names the one that it is of, as training 1 of 2; empty where there is one, or it is of several.
    `was_resumed` says of the end of a training that it went on later in the recording, as its summary says.
    """

    id: str
    rule: str
    severity: Severity
    gpu: int | None
    start_t_s: float
    end_t_s: float
    summary: str
    expected: bool = False
    epoch: int | None = None
    phase: str | None = None
    at_boundary: bool = False
    level_pct: float | None = None
    low_pct: float | None = None
    evidence: tuple[Evidence, ...] = ()
    cause: Cause | None = None
    kernel_events: tuple[NearbyKernelEvent, ...] = ()
    advice: tuple[Advice, ...] = ()
    ran_out: bool = False
    names_epoch: bool = False
    gpus: tuple[int, ...] = ()
    lost_gpu_s: float | None = None
    share_of_training: float | None = None
    occurrences: tuple[Occurrence, ...] = ()
    where: tuple[CodeLocation, ...] = ()
    waited_for: str = ""
    of_gpus: str = ""
    every_epochs: int | None = None
    which_training: str = ""
    was_resumed: bool = False

    @property
    def times(self) -> int:
        """Return how many times it happened."""
        return len(self.occurrences) or 1

    @cached_property
    def each(self) -> tuple[Finding, ...]:
        """Return it once for each time that it happened."""
        if not self.occurrences:
            return (self,)
        return tuple(
            replace(self, start_t_s=start, end_t_s=end, gpus=one.gpus, lost_gpu_s=one.lost_gpu_s, occurrences=())
            for one in self.occurrences
            for start, end in (one.span,)
        )

    @property
    def cause_name(self) -> str:
        """Return the name of its cause, empty where it has none."""
        return self.cause.name if self.cause else ""

    @property
    def is_explained(self) -> bool:
        """Tell whether its cause is known."""
        return self.cause is not None and self.cause.confidence > 0

    @property
    def took_s(self) -> float:
        """Return how long it lasted, all times together."""
        return sum(one.duration_s for one in self.each)

    @property
    def costs_s(self) -> float:
        """Return the GPU time (s) that it cost, where that is not known by how far utilisation fell meanwhile."""
        if self.lost_gpu_s is not None:
            return self.lost_gpu_s
        level_pct, low_pct = (0.0 if pct is None or isnan(pct) else pct for pct in (self.level_pct, self.low_pct))
        return self.took_s * max(level_pct - low_pct, 1.0) / 100  # without a fall it still is longer than none

    def number(self, key: str) -> float | None:
        """Return the number that its evidence has of a key, None where it has none."""
        return next((each.value for each in self.evidence if each.key == key), None)

    @property
    def longest(self) -> Finding:
        """Return it as it was the longest time that it happened."""
        return max(self.each, key=lambda one: one.duration_s)
