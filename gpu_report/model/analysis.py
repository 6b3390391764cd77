"""What is to be said about a run: `Analysis` and its parts."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_report.model.code import CodeLine, CodeLocation, CodeTime
from gpu_report.model.finding import Advice, Finding
from gpu_report.model.inference import ServedModel
from gpu_report.model.inside import ProfilerWindow
from gpu_report.model.recorded import Run
from gpu_report.model.speedup import EpochNow, Projection, SpeedupLimit
from gpu_report.model.summaries import EpochSummary, GpuSummary
from gpu_report.model.time_span import TimeSpan
from gpu_report.model.trace_analysis import TraceAnalysis
from gpu_report.model.verdict import Ending, Hypothesis, NotChecked, Verdict
from gpu_report.model.yolo import Phase, Validation


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
    def longest_gap_s(self) -> float:
        """Return the longest time (s) without samples that should be there."""
        return max((gap.duration_s for gap in self.gaps), default=0.0)

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
