"""What became of a run since its baselines: `Comparison` and its parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from gpu_report.model.analysis import Analysis
from gpu_report.model.kernel_log import Severity

Judgement = Literal["better", "worse", "same", "changed", "unknown"]
Outcome = Literal["passed", "failed", "not measured"]


@dataclass(frozen=True)
class Difference:
    """Something of the set-up that is not the same in two runs, or not known of one (None).

    `kind`: `hard` makes comparing meaningless, `argument` is a changed argument of the training and as such the likely
    reason of a change, `soft` is all else that may have a part in one.
    """

    name: str
    baseline: str | None
    run: str | None
    kind: Literal["hard", "argument", "soft"]


@dataclass(frozen=True)
class MetricComparison:
    """One metric of two runs: a statistic of its values, the change from baseline to run, and what that comes to.

    Values, `change` and `interval` (of the change) are in `unit`; of a metric in percent the change is in percentage
    points. `change_share` and `interval_share` are of the baseline (0.1 is 10 %). `counts` says how many epochs,
    windows of training or calls each side has (`basis`; `run` is one figure a run), `correlation` what neighbours of
    them may have in common (0 to 1). `significant` is None where there are too few to say; it may be
    known without an interval, where values are far apart. `enough` is set
    where a change would be certain if neighbours had nothing in common, and is not: so many ordinary epochs of each
    run would show it. Of calls it is set wherever a change is not certain, in calls. `model` names the
    model where a run has several. `each` has the values of several baselines, newest first; `band` is where one more
    like them would lie, from three on, and `in_band` says that a change is more than chance, and yet no more than the
    baselines differ by: it cannot be judged. `in_noise` says that nothing shows more than chance. `least_change` is the
    smallest change that counts, in `unit`. `outliers` counts the values of each side that are left out because they
    stand far out from their siblings.
    """

    metric: str
    statistic: str
    unit: str
    baseline: float | None
    run: float | None
    change: float | None = None
    change_share: float | None = None
    interval: tuple[float, float] | None = None
    interval_share: tuple[float, float] | None = None
    basis: Literal["epochs", "windows", "run", "calls"] = "epochs"
    counts: tuple[int, int] = (0, 0)
    correlation: float = 0.0
    enough: int | None = None
    significant: bool | None = None
    each: tuple[float, ...] = ()
    band: tuple[float, float] | None = None
    in_band: bool = False
    in_noise: bool = False
    least_change: float | None = None
    outliers: tuple[int, int] = (0, 0)
    judgement: Judgement = "unknown"
    note: str = ""
    model: str = ""


@dataclass(frozen=True)
class FindingChange:
    """Findings of one rule, cause and GPU in baseline and run. `gpu` is the index in the run, else in the baseline.

    `counts` and `seconds` are of the baseline (the median of several) and of the run, `ids` the findings in the run.
    `each` has how many and how long they are in every baseline, newest first; `longest_s` is the longest of all.
    """

    rule: str
    cause: str | None
    gpu: int | None
    severity: Severity
    status: Literal["new", "gone", "still there"]
    counts: tuple[float, int]
    seconds: tuple[float, float]
    summary: str
    ids: tuple[str, ...] = ()
    each: tuple[tuple[int, float], ...] = ()
    longest_s: float = 0.0

    @property
    def in_baselines(self) -> tuple[tuple[int, float], ...]:
        """Return `each` of those baselines that have it."""
        return tuple(known for known in self.each if known[0])


@dataclass(frozen=True)
class LineChange:
    """A line of code whose idle GPU time changed: GPU seconds of an epoch in which a GPU was idle while it ran.

    `process` is `main` (all ranks together) or `workers`. A line has a number in each run, None where no process was
    ever in it; `file` is the run's where both have the line. `waits_for` says that a main process asked its loader for
    a batch.
    """

    process: Literal["main", "workers"]
    function: str
    file: str
    baseline_line: int | None
    run_line: int | None
    baseline_idle_gpu_s: float
    run_idle_gpu_s: float
    waits_for: Literal["data"] | None = None

    @property
    def change_gpu_s(self) -> float:
        """Return how much longer GPUs are idle in an epoch; negative where it is less."""
        return self.run_idle_gpu_s - self.baseline_idle_gpu_s

    @property
    def status(self) -> Literal["new", "gone", "slower", "faster"]:
        """Return what became of the line."""
        if self.baseline_line is None or self.run_line is None:
            return "new" if self.baseline_line is None else "gone"
        return "slower" if self.change_gpu_s > 0 else "faster"


@dataclass(frozen=True)
class EpochCause:
    """What most of a change of the epoch time comes of: a part of the epoch, in seconds of an epoch in either run.

    `share` is how much of the change it explains: 1 is all, and more where another part went the other way. `line` is
    the line of code where it is one. Of several GPUs the seconds are the mean.
    """

    kind: Literal["data loading", "line of code", "GPU work"]
    baseline_s: float
    run_s: float
    share: float
    line: LineChange | None = None


@dataclass(frozen=True)
class CallCause:
    """The part of a call that most of a change of latency comes of: its mean, in milliseconds of a call in either run.

    `share` is how much of the change of the mean it explains: 1 is all.
    """

    kind: Literal["preprocess", "inference", "postprocess", "other"]
    baseline_ms: float
    run_ms: float
    share: float


@dataclass(frozen=True)
class Gate:
    """A limit on a metric of a run, as it was written in `text` (grammar: docs/compare.md).

    `kind` is of the limit: `share` and `amount` limit the change from the baseline, as a fraction of it or in the
    metric's unit (percentage points of a metric in percent), and are signed: +0.05 is exceeded by a rise of 5 %.
    `most` and `least` bound the run's own value. `optional` gates may go unmeasured: the defaults are.
    """

    text: str
    metric: str
    statistic: str
    kind: Literal["share", "amount", "most", "least"]
    limit: float
    level: Literal["fail", "warn"] = "fail"
    optional: bool = False

    @property
    def needs_baseline(self) -> bool:
        """Tell whether a run alone can never decide it: it limits a change, or counts what no baseline has."""
        return self.limits_change or (self.metric, self.statistic) == ("findings", "new")

    @property
    def limits_change(self) -> bool:
        """Tell whether it limits the change of a metric."""
        return self.kind in {"share", "amount"}


@dataclass(frozen=True)
class GateResult:
    """What came of a gate, in one sentence. `unsure` says that it passed only because a change is within the noise.

    `why` says in few words what kept it from being measured, or from deciding on what was measured. `of_ending` says
    that it counted nothing but how the run was cut short.
    """

    gate: Gate
    outcome: Outcome
    summary: str
    value: float | None = None
    unsure: bool = False
    why: str = ""
    of_ending: bool = False

    @property
    def fails_without_metric(self) -> bool:
        """Tell whether it failed on something that is no change of a metric, such as an Xid."""
        return self.outcome == "failed" and self.gate.level == "fail" and not self.gate.limits_change

    @property
    def undecided(self) -> bool:
        """Tell whether there is a figure, and yet nobody can tell what it means for the training."""
        return self.outcome == "not measured" and self.value is not None


@dataclass(frozen=True)
class Obstacle:
    """Why nothing can be said of two runs: what it is about (`name`), and the particulars, in a sentence together."""

    kind: Literal["set-up", "cut short", "too little data", "no baseline"]
    name: str
    particulars: str = ""

    @property
    def text(self) -> str:
        """Return it as a sentence without its full stop."""
        return f"{self.name}: {self.particulars}" if self.particulars else self.name


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run compared with its baselines (none: `check`), and what its gates made of it.

    `obstacles` say why nothing can be said (set-ups that cannot be compared, too little data: then `metrics` are not
    judged), or why nothing passes: of a run that was cut short they are judged by its whole epochs. `first_epochs` are
    those that warm a process up, judged by nobody, `all_epochs` the mean time of all ordinary ones, where disturbed
    time was set aside. `drop_time` says of the baseline and the run how many unexpected drops there were. `notes` say
    which epochs were left out. `outcome` is what the gates come to. `judgement` is of the whole, None with obstacles,
    without a baseline, or where baselines differ by as much as the epoch time changed and nothing else is certain;
    `verdict` is one or two sentences. `setup` names the run's set-up in letters that any file or server takes.
    `left_out` are the numbers of the epochs that do more than train, of the baseline and of the run. `cause` is what
    most of the change of the epoch time or of the latency comes of, None where that is not known.
    """

    baselines: tuple[Analysis, ...]
    run: Analysis
    obstacles: tuple[Obstacle, ...]
    differences: tuple[Difference, ...]
    metrics: tuple[MetricComparison, ...]
    first_epochs: MetricComparison | None
    findings: tuple[FindingChange, ...]
    all_epochs: MetricComparison | None
    drop_time: tuple[str, str]
    gates: tuple[GateResult, ...]
    outcome: Outcome
    judgement: Literal["better", "worse", "same", "mixed"] | None
    verdict: str
    setup: str
    notes: tuple[str, ...] = ()
    left_out: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())
    code_lines: tuple[LineChange, ...] | None = None
    cause: EpochCause | CallCause | None = None

    @property
    def exit_code(self) -> int:
        """Return the exit code of a command whose gates came to this."""
        return {"passed": 0, "failed": 1, "not measured": 3}[self.outcome]
