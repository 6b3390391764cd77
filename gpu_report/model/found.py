"""What is to be said about a run: `Analysis` and its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import isnan
from typing import Literal

from gpu_report.model.code import CodeLine, CodeLocation, CodeTime
from gpu_report.model.inference import ServedModel
from gpu_report.model.inside import ProfilerWindow
from gpu_report.model.kernel_log import KernelEvent, Severity
from gpu_report.model.recorded import Gpu, Run
from gpu_report.model.time_span import TimeSpan
from gpu_report.model.trace_analysis import TraceAnalysis
from gpu_report.model.yolo import Phase, Validation


@dataclass(frozen=True)
class Stats:
    """Mean, extremes and percentiles of one quantity, weighted by the time each sample stands for."""

    mean: float
    min: float
    p5: float
    p50: float
    p95: float
    max: float


@dataclass(frozen=True)
class GpuSummary:
    """One GPU over the whole run. `quantities` has only what was recorded; `energy_j` is None where unknown.

    So it is where a part of the run was not measured, for a sum would be low by that. `energy_source` is what it was
    read from all the same, none where nothing was.

    `used` says whether the run worked on it at all: a GPU that it did not use is no part of the run's means. One that
    is `of_others` is no part of its GPU time either: only other processes worked on it, or its MIG devices did.
    """

    gpu: Gpu
    samples: int
    quantities: Mapping[str, Stats]
    energy_j: float | None
    energy_source: Literal["counter", "power", "none"]
    used: bool = True
    of_others: bool = False


PartName = Literal["train", "validation", "checkpoint", "data wait", "stall"]


@dataclass(frozen=True)
class Outlier:
    """A part of an epoch that took far longer than the same part of its siblings.

    `stall` is time between batches that a finding has another cause for than the loader: `cause`.
    """

    part: PartName
    seconds: float
    typical_s: float
    cause: str = ""


@dataclass(frozen=True)
class EpochSummary(TimeSpan):
    """One epoch: from the end of the one before (or the start of training) to its own row of results.csv.

    One that was reported by callbacks lasts from the start of its training to the end of its checkpoint. `gpu_util_pct`
    and `energy_j` are over all GPUs but those of others, `gpus` and `gpu_utils_pct` (means) per device index.
    `train_s`, `validation_s` and `checkpoint_s` are its phases, None where not distinguished; `source` is its
    training's, whose end is known to `uncertainty_s`.
    `warm_up_s` is what of it was startup still: the first batch of a process; 0 in any other epoch. Images and data
    wait are of `train_s`, and known from inside only; `data_wait_share` is of it, 0 to 1. `stall_s` are seconds between
    its batches for which a finding has another cause (`stall_cause`) than the loader: reported as a wait for data, and
    not in it. `outliers` say in what it stands out from its siblings; `first` that its process had just begun,
    `closing` that the mosaic was closed for it, `profiled` that PyTorch's profiler made it longer, `partial` that it
    was cut short: not all its batches were trained, or its validation was broken off.
    """

    run: int
    epoch: int
    attempt: int
    start_t_s: float
    end_t_s: float
    gpu_util_pct: float | None
    memory_peak_mib: float | None
    energy_j: float | None
    gpus: Mapping[int, Mapping[str, Stats]]
    loss: float | None
    lr: float | None
    train_s: float | None = None
    validation_s: float | None = None
    checkpoint_s: float | None = None
    images_per_s: float | None = None
    data_wait_s: float | None = None
    data_wait_share: float | None = None
    longest_wait_s: float | None = None
    outliers: tuple[Outlier, ...] = ()
    source: str = ""
    first: bool = False
    closing: bool = False
    profiled: bool = False
    partial: bool = False
    gpu_utils_pct: Mapping[int, float | None] = field(default_factory=dict)
    warm_up_s: float | None = None
    stall_s: float | None = None
    stall_cause: str = ""
    uncertainty_s: float | None = None

    @property
    def is_special(self) -> bool:
        """Tell whether an epoch of its kind takes more or less time than others: no cause for concern."""
        return self.first or self.closing or self.profiled or self.partial


@dataclass(frozen=True)
class Interval(TimeSpan):
    """A stretch of one GPU's time, with the mean utilisation in it."""

    gpu: int
    start_t_s: float
    end_t_s: float
    mean_pct: float


@dataclass(frozen=True)
class Gap(TimeSpan):
    """A stretch in which samples that should be there are not; `gpu` is None when it concerns every GPU."""

    gpu: int | None
    start_t_s: float
    end_t_s: float
    reason: str


Reference = Literal[
    "",
    "typical",
    "typical of next",
    "first of next",
    "before of next",
    "under less load",
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
    that answered slowly as the images were listed.
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


LEAST_SPEED_UP = 1.05  # times as fast: less is not worth a person's time, and within what epochs differ by anyway


@dataclass(frozen=True)
class SpeedupLimit:
    """What the training part of an epoch could be without one cause, in seconds.

    `epoch_s_now` is the median of steady epochs where the cause holds all the time, else the mean of all; the first
    epoch of a process and the one that closes the mosaic are in neither.
    `epoch_s_at_best` cannot be beaten by removing this cause alone; `epoch_s_estimate` is what the best fix among
    the advice (`fix`, as it is typed) is likely to reach, None where that cannot be worked out. `basis` says what
    the best rests on, `now_is` which epochs the epoch now is of, and `is_mean` that it is their mean. `rest_s`
    is what an epoch takes besides training (validation, checkpoint): it stays. `at_epoch_ends` says that it is of whole
    epochs, whose ends the cause makes longer, `in_epochs` the first and the last that
    it made longer, where it is of some of them, None of a last one where it lasts to the end. `function` is the user's
    own that it is of, with its line; empty where it is of none, or of several. `waits_s` is what the training part
    waits for data now, 0 where that is not known.
    """

    cause: str
    epoch_s_now: float
    epoch_s_at_best: float
    basis: str
    epoch_s_estimate: float | None = None
    fix: str = ""
    rest_s: float = 0.0
    now_is: str = ""
    at_epoch_ends: bool = False
    is_mean: bool = False
    function: str = ""
    waits_s: float = 0.0
    in_epochs: tuple[int, int | None] | None = None

    @property
    def whole_s(self) -> float:
        """Return what an epoch takes now with all that it takes besides training, in seconds."""
        return self.epoch_s_now + self.rest_s

    @property
    def saves_at_most_s(self) -> float:
        """Return the seconds of an epoch that go with its cause."""
        return self.epoch_s_now - self.epoch_s_at_best

    @property
    def saves_s(self) -> float | None:
        """Return the seconds of an epoch that the fix is likely to save, None without an estimate."""
        return None if self.epoch_s_estimate is None else self.epoch_s_now - self.epoch_s_estimate

    @property
    def speed_up_at_most(self) -> float:
        """Return now over at best, 1 where nothing can be won."""
        return self.epoch_s_now / self.epoch_s_at_best

    @property
    def is_worthwhile(self) -> bool:
        """Tell whether it is worth a person's time: it is a limit of the analysis only then."""
        return self.speed_up_at_most >= LEAST_SPEED_UP

    @property
    def speed_up_estimate(self) -> float | None:
        """Return now over the estimate, None without one."""
        return self.epoch_s_now / self.epoch_s_estimate if self.epoch_s_estimate else None


def epoch_now_s(limits: Sequence[SpeedupLimit]) -> float | None:
    """Return the length in seconds of the epoch that all limits are compared with, None without any.

    It is the mean of all epochs where a limit is of what disturbed some of them, else the median of the steady ones.
    """
    return None if (longest := longest_now(limits)) is None else longest.epoch_s_now + longest.rest_s


def longest_now(limits: Sequence[SpeedupLimit]) -> SpeedupLimit | None:
    """Return the limit whose epoch now is the longest, by which all are shown; None without any."""
    return max(limits, key=lambda limit: limit.epoch_s_now + limit.rest_s, default=None)


@dataclass(frozen=True)
class EpochNow:
    """What an epoch of the run takes, in seconds: the one length that every place of a report gives.

    `now_is` says of which epochs it is, and whether their median or mean. The parts are the same of the same epochs;
    None where they are not known.
    """

    seconds: float
    now_is: str
    train_s: float | None = None
    validation_s: float | None = None
    checkpoint_s: float | None = None
    data_wait_s: float | None = None
    images_per_s: float | None = None

    @property
    def train_share(self) -> float:
        """Return the share (0 to 1) of it that training steps take, all where that is not known."""
        return min(self.train_s / self.seconds, 1.0) if self.train_s and self.seconds else 1.0

    @property
    def model_share(self) -> float:
        """Return the share (0 to 1) of it in which the model runs: training steps and validation, all if not known."""
        if not self.train_s or not self.seconds:
            return 1.0
        return min((self.train_s + (self.validation_s or 0.0)) / self.seconds, 1.0)


@dataclass(frozen=True)
class Projection:
    """What one fix is likely to do to a whole epoch, and to all epochs that are projected, in seconds.

    `epochs` are those that were left when the training ended or the recording did (`left`), from where it can be
    resumed, else all that were asked for. Start-up and final evaluation are not in it. `price_per_s` is that of all
    GPUs of the training, None without a price.
    """

    fix: str
    cause: str
    epoch_s_now: float
    epoch_s_expected: float
    epochs: int | None = None
    left: bool = False
    price_per_s: float | None = None

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Return what all the epochs take now, and with the fix; None where nobody knows how many there are."""
        return None if not self.epochs else (self.epochs * self.epoch_s_now, self.epochs * self.epoch_s_expected)

    @property
    def money(self) -> tuple[float, float] | None:
        """Return what all the epochs cost now, and with the fix; None without a price."""
        if self.seconds is None or self.price_per_s is None:
            return None
        now_s, expected_s = self.seconds
        return now_s * self.price_per_s, expected_s * self.price_per_s


@dataclass(frozen=True)
class Occurrence(TimeSpan):
    """One time that something happened, which is found again and again: when, on which GPUs, and what it took of them.

    `lost_gpu_s` are GPU seconds of work at the level before it, None where that is not known.
    """

    start_t_s: float
    end_t_s: float
    gpus: tuple[int, ...]
    lost_gpu_s: float | None


GPUS = "{gpus}"  # in a summary, for the names of several


@dataclass(frozen=True)
class Finding(TimeSpan):
    """Anything a rule says about a run. `id` is stable (`drop-3`) and is the report's anchor.

    `gpus` are those that felt it, `gpu` the only one, None where it was several or concerns the run as a whole. What
    recurs is one finding, from the first of its `occurrences` to the end of the last; empty of what happened once.
    `lost_gpu_s` (GPU seconds) and `share_of_training` (0 to 1) are what all of it took, None where that is not known.
    `where` are the lines in which the training stood meanwhile, most of the time first.
    `at_boundary` says that it touches the end of an epoch; `expected` that its phase explains it.
    `level_pct` and `low_pct` are utilisation before a drop and the mean within it. `ran_out` says that memory grew
    until there was no more of it, `names_epoch` that the summary says in which epoch it was. Of a cause
    that may be several things `waited_for` names the one. `every_epochs` says that it comes at the end of each so
    many-th epoch, as what somebody has planned does; None where it does not. `of_gpus` is the summary of several GPUs
    of which it is true at once, with GPUS in the place of their names; empty where each has a finding of its own.
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
    every_epochs: int | None = None
    of_gpus: str = ""

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


@dataclass(frozen=True)
class Sentence:
    """A sentence of the verdict: what kind it is, the findings that it reports (their ids), and what it is about.

    `about` is a cause or another row of the ledger, empty where that is nothing of the kind. `advice` is what it says
    to do, None where it says nothing of the kind: nobody needs to say that again, unless it says only what and
    not `how`. `replaces` is advice in whose place it stands. `names_own` says that it is to look at a function of the
    user's.
    """

    kind: str
    text: str
    findings: tuple[str, ...] = ()
    about: str = ""
    advice: Advice | None = None
    names_own: bool = False
    how: bool = True
    replaces: Advice | None = None


@dataclass(frozen=True)
class Verdict:
    """What a run comes to, in sentences; and how busy its GPUs were in training (%), None where that was too short.

    `is_healthy` says that they were busy enough once training was warm. `order` has the ids of findings by what a
    reader wins: what it begins with, then what saves most; what is worth too little to begin with is not in it.
    """

    sentences: tuple[Sentence, ...]
    busy_pct: float | None = None
    is_healthy: bool = False
    order: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return all sentences as one text."""
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def findings(self) -> frozenset[str]:
        """Return the ids of the findings that it reports."""
        return frozenset(found for sentence in self.sentences for found in sentence.findings)


EndingName = Literal["finished", "early stop", "interrupted", "failed", "going on", "unknown"]


@dataclass(frozen=True)
class Ending:
    """How the last training of a run ended (wording.ending_words says it), and when.

    `epoch` is the one it had come to, or with `whole_epochs` the last that came to its end; `epochs` are how many were
    to come. `failure` is the summary of the finding that it failed with, or was interrupted (Ctrl-C), which with
    `names_epoch` says in which epoch; `type` and `message` are those of the exception that ended it;
    `patience` in epochs is what an early stop had waited for. `last_minute` is what its GPUs and the host's memory were
    like in the minute before.
    """

    name: EndingName
    t_s: float
    epoch: int | None = None
    epochs: int | None = None
    last_minute: tuple[Evidence, ...] = ()
    whole_epochs: bool = False
    failure: str = ""
    names_epoch: bool = False
    patience: int | None = None
    type: str | None = None
    message: str | None = None


@dataclass(frozen=True)
class LedgerRow:
    """Where GPU time went. Rows add up to duration x GPUs exactly. `share` is of all GPU seconds, 0 to 1.

    `energy_j` is None where that of a good part of the row's time is not known: the rest of it would be too low.
    `where` are the lines in which the training stood meanwhile, most of the time first, where that was noted.
    """

    name: str
    expected: bool
    gpu_seconds: float
    energy_j: float | None
    money: float | None
    share: float
    where: tuple[CodeLocation, ...] = ()


@dataclass(frozen=True)
class Hypothesis:
    """A guess at what holds a training back, where nothing that was measured explains it, and what would decide it.

    `confidence` (0 to 1) ranks guesses. `argument` is the argument of YOLO that it is about.
    """

    text: str
    confidence: float
    decided_by: str
    argument: str


@dataclass(frozen=True)
class NotChecked:
    """A rule that could not look, or not closely enough, and the reason: what to do about it is part of that.

    `under_s` is set where only what is shorter than that goes unseen.
    """

    rule: str
    reason: str
    under_s: float | None = None


@dataclass(frozen=True)
class Options:
    """What the user may set. Defaults are the project's definition of a drop (docs/findings.md).

    A drop falls by more than `drop_percent` of its level, for `drop_seconds` or more.
    """

    drop_percent: float = 50.0
    drop_seconds: float = 10.0
    price_per_hour: float | None = None

    @property
    def line_share(self) -> float:
        """Return the share of the level (0 to 1) under which utilisation is in a drop."""
        return 1 - self.drop_percent / 100


# Mean utilisation of training (%) from which on it is healthy for YOLO; below there is room.
HEALTHY_PCT = 60.0
STARVED_PCT = 40.0  # ... and below this the GPU mostly waits

# Of the time (0 to 1): with less of it measured "no drop" is no news, a sum would be too low, and a mean or a peak says
# of how much it is. A tick or two that a busy host missed in a minute leave more.
WELL_COVERED = 0.95


@dataclass(frozen=True)
class ProfiledSteps:
    """A window of PyTorch's profiler, what its trace shows, and the length of a step without it (None: unknown).

    `sync_lines` are the lines in which the CPU waited for the GPU, and their share of those waits.
    """

    window: ProfilerWindow
    steps: TraceAnalysis
    typical_step_s: float | None = None
    sync_lines: tuple[CodeLocation, ...] = ()

    @property
    def slowed_by(self) -> float | None:
        """Return how many times longer the profiler made a step, None where that is not known."""
        step_s = self.steps.step_s
        return step_s / self.typical_step_s if step_s and self.typical_step_s else None


@dataclass(frozen=True, eq=False)
class Analysis:
    """What is to be said about a run. `coverage` is the share of expected samples that are there, 0 to 1.

    `served` are the models that were called. A run `is_inference` where nothing trained beside that, and
    `is_validation` where models were only validated.
    """

    run: Run
    options: Options
    verdict: Verdict
    gpus: tuple[GpuSummary, ...]
    epochs: tuple[EpochSummary, ...]
    phases: tuple[Phase, ...]
    low_intervals: tuple[Interval, ...]
    gaps: tuple[Gap, ...]
    findings: tuple[Finding, ...]
    ledger: tuple[LedgerRow, ...]
    speedup_limits: tuple[SpeedupLimit, ...]
    coverage: float
    longest_gap_s: float
    ending: Ending | None = None
    not_checked: tuple[NotChecked, ...] = ()
    code_time: tuple[CodeTime, ...] = ()
    code_lines: tuple[CodeLine, ...] = ()
    projection: Projection | None = None
    hypotheses: tuple[Hypothesis, ...] = ()
    profiled: tuple[ProfiledSteps, ...] = ()
    epoch_now: EpochNow | None = None
    served: tuple[ServedModel, ...] = ()
    is_inference: bool = False
    is_validation: bool = False

    @property
    def is_training(self) -> bool:
        """Return whether the run is spoken of as a training: one of which nothing is known is taken for one."""
        return not (self.is_inference or self.is_validation)

    @property
    def validations(self) -> tuple[Validation, ...]:
        """Return the validations that told of their parts."""
        phases = (phase for run in self.run.inside for phase in run.phases)
        return tuple(phase.validated for phase in phases if phase.validated is not None)

    def gpus_of(self, finding: Finding) -> tuple[int, ...]:
        """Return the GPUs that a finding is about: of one that concerns the run as a whole those that the run used."""
        used = tuple(each.gpu.index for each in self.gpus if each.used)
        return finding.gpus or ((finding.gpu,) if finding.gpu is not None else used)

    def gains_of(self, advice: Advice) -> tuple[float | None, float | None]:
        """Return the shares (0 to 1) of a whole epoch that advice wins at most and is likely to win, None if unknown.

        They are of training steps where no epoch is known, and of all time where models were called. What makes steps
        shorter may make validation so, too, at most as much.
        """
        most, likely, now = advice.gain_at_most, advice.gain_estimate, self.epoch_now
        if advice.of_epoch or now is None:
            return most, likely
        return most and most * now.model_share, likely and likely * now.train_share
