"""What passes between the stages: typed, frozen values. Times `t_s` are seconds from the run's start.

`Run` is what was recorded, `Analysis` what is to be said about it. Wall times are UTC seconds since 1970;
`run.start_wall_s + t_s` labels a moment, and analysis itself only ever uses `t_s` (monotonic).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

Severity = Literal["critical", "warning", "info"]


@dataclass(frozen=True)
class Gpu:
    """A device as it stood at the start; what was not known is None.

    `parent_index` is the GPU that a MIG device lies on, `mig_index` its number there; both None for a GPU.
    `health_start` and `health_end` hold what was known of schema.GPU_HEALTH then; None when nothing was asked.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    pci_bus_id: str | None = None
    memory_total_mib: float | None = None
    power_limit_w: float | None = None
    max_sm_clock_mhz: float | None = None
    health_start: Mapping[str, int | str] | None = None
    health_end: Mapping[str, int | str] | None = None
    parent_index: int | None = None
    mig_index: int | None = None


@dataclass(frozen=True)
class Mount:
    """A filesystem of the machine: `device` is its disk's name, `rotational` None where that does not tell.

    `free_mib` is what was free on a local disk or in memory when the recording began, None for others.
    """

    point: str
    type: str
    source: str
    device: str | None = None
    rotational: bool | None = None
    free_mib: float | None = None


@dataclass(frozen=True)
class Recording:
    """How the data came about: by whom, where, when, and how it ended.

    `cuda_visible_devices` is what the command found of that variable, None where it was not set or is not known.
    `ended_by` is duration, signal, command, import, or None when there is no end marker (the recorder was
    killed, crashed, or the machine went down). `interval_s` is the intended distance of two ticks.
    `cores` is by CPU affinity, `cpu_limit` the cores' worth of time that cgroups allow; `memory_limit_mib` is theirs,
    too. `oom_kills` counts the processes that the kernel killed for memory meanwhile, by `machine` and `cgroup` (the
    trainer's): what nobody could count is not in it.
    """

    tool_version: str | None = None
    host: str | None = None
    os: str | None = None
    cores: int | None = None
    cores_online: int | None = None
    cpu_limit: float | None = None
    memory_mib: float | None = None
    memory_limit_mib: float | None = None
    shm_total_mib: float | None = None
    mounts: tuple[Mount, ...] = ()
    oom_kills: Mapping[str, int] = field(default_factory=dict)
    driver: str | None = None
    cuda: str | None = None
    python: str | None = None
    torch: str | None = None
    ultralytics: str | None = None
    command: tuple[str, ...] = ()
    cuda_visible_devices: str | None = None
    interval_s: float | None = None
    ended_by: str | None = None
    exit_code: int | None = None
    exit_signal: str | None = None
    source: str = "gpu-report record"
    recorder_cpu_pct: float | None = None
    recorder_rss_mib: float | None = None
    tick_p50_ms: float | None = None
    tick_p99_ms: float | None = None
    late_ticks: int | None = None

    @property
    def usable_cores(self) -> float | None:
        """Return how many cores' worth of time the training could have, None where that is not known."""
        known = [cores for cores in (self.cores, self.cpu_limit) if cores is not None]
        return min(known, default=None)


@dataclass(frozen=True)
class EpochRow:
    """A row of results.csv and when it appeared: after the epoch's validation, before its checkpoint.

    `epoch` is 1-based; `run` counts YOLO runs in this recording from 1; `segment` counts resumes from 1.
    `metrics` holds the row's other columns by their names in the file. `saved_t_s` is when its checkpoint had been
    written, by the files' times; None where nobody looked at them in time.
    """

    run: int
    segment: int
    epoch: int
    row_t_s: float
    start_t_s: float
    metrics: Mapping[str, float] = field(default_factory=dict)
    saved_t_s: float | None = None


@dataclass(frozen=True)
class YoloRun:
    """The YOLO run that was watched: where it lay, its arguments, and how its epochs were put on our clock.

    `anchor` is recorded (rows stamped as they appeared), file-time, train-start, fitted, none, or no-epoch (nothing to
    place, since it did not come to the end of one);
    `uncertainty_s` is the stated error of that placement, None where it is exact to the tick. `started_t_s` is when
    args.yaml was written, which YOLO does first of all; `checkpoint_s` how long its last checkpoint took to write, by
    the files' times; both None where those are not known.
    """

    number: int
    path: str | None
    args: Mapping[str, object]
    anchor: Literal["recorded", "file-time", "train-start", "fitted", "none", "no-epoch"]
    uncertainty_s: float | None
    note: str = ""
    started_t_s: float | None = None
    checkpoint_s: float | None = None


PhaseName = Literal["startup", "train", "validation", "checkpoint", "final evaluation", "idle", "predict", "export"]


@dataclass(frozen=True)
class Phase:
    """What YOLO was doing from `start_t_s` to `end_t_s`, and where that is known from.

    `detail` names the part of a phase where that is known: of startup `imports`, `setup`, `data set`, `model` or
    `first batch`, of train `close mosaic`.
    """

    name: PhaseName
    epoch: int | None
    start_t_s: float
    end_t_s: float
    source: str
    detail: str = ""


@dataclass(frozen=True)
class InsideEpoch:
    """The training part of one epoch as our callbacks saw it, from on_train_epoch_start to on_train_epoch_end.

    `epoch` is 1-based; `attempt` counts from 1 how often it was begun (NaN recovery, out-of-memory retry). `end_t_s` is
    None when it never ended. `data_wait_s` is the time between batches that the trainer waited for its loader.
    """

    epoch: int
    attempt: int
    start_t_s: float
    end_t_s: float | None
    images: int | None
    batches: int
    data_wait_s: float
    first_wait_s: float
    longest_wait_s: float
    loss: float | None = None
    lr: float | None = None


@dataclass(frozen=True)
class Progress:
    """How far a process was in the epoch that it trained at a moment: batches done, and seconds waited for data."""

    t_s: float
    batches: int
    data_wait_s: float


@dataclass(frozen=True)
class InsideRun:
    """What our callbacks wrote in one process of YOLO: rank 0 of a training, another rank, a prediction, an export.

    `run` is the number of its YoloRun where one lies in the same folder. `settings` are the effective ones (workers,
    batch, accumulate, amp, world_size, parameters, gflops, images, torch, cuda, ultralytics ...), None where unknown.
    `ended` says how: finished, early stop, exception (`error` is its name), or None when nothing said so (killed).
    `progress` is how far it was within its epochs, every few seconds, in order. Ranks beyond the first keep step with
    it: of theirs, in a long run, `phases`, `epochs` and `progress` hold the beginning and the end only.
    """

    run: int | None
    rank: int
    pid: int
    task: Literal["train", "val", "predict", "export"]
    settings: Mapping[str, object]
    phases: tuple[Phase, ...]
    epochs: tuple[InsideEpoch, ...]
    ended: str | None = None
    error: str | None = None
    progress: tuple[Progress, ...] = ()


@dataclass(frozen=True)
class OomReport:
    """What the kernel printed of a kill for want of memory, each in MiB and None where it did not say.

    `usage_mib` and `limit_mib` are of the cgroup that reached its limit; `group_own_mib` is what its processes held of
    their own (anonymous memory: without files and shared memory). `killed_own_mib` and `killed_shared_mib` are of the
    process that was killed.
    """

    usage_mib: float | None = None
    limit_mib: float | None = None
    group_own_mib: float | None = None
    killed_own_mib: float | None = None
    killed_shared_mib: float | None = None


@dataclass(frozen=True)
class KernelEvent:
    """One message of the kernel log, or several of the same fault folded into one (`count`, `last_t_s`).

    `kind` is xid, gpu-lost, oom, aer, nvme, ata, nfs, filesystem, block, thermal, lockup, hung-task, segfault,
    amdgpu, mce, hotplug, suspend, drop-caches, driver or other. `text` is the raw line, hostile until escaped. `gpu`
    is the device index where it could be told. For an Xid, `code`, `meaning` and `action` come from our own table.
    `oom` is the kernel's report of a kill for want of memory. `of_another` says that its process was none of the
    training, which went on; the analysis finds that out.
    """

    t_s: float
    kind: str
    severity: Severity
    text: str
    meaning: str
    action: str = ""
    gpu: int | None = None
    code: int | None = None
    pid: int | None = None
    process: str | None = None
    count: int = 1
    last_t_s: float | None = None
    source: str = ""
    oom: OomReport | None = None
    of_another: bool = False

    def who(self, unnamed: str) -> str:
        """Return the process that it names, in words; `unnamed` where it tells only a pid."""
        return f"{self.process or unnamed} (pid {self.pid})"


@dataclass(frozen=True)
class KernelLog:
    """What is known of the kernel log. Unless `status` is read, an empty `events` says nothing at all."""

    status: Literal["read", "restricted", "unavailable"]
    source: str | None = None
    reason: str = ""
    advice: str = ""
    events: tuple[KernelEvent, ...] = ()
    xid_events: Literal["listening", "unavailable"] = "unavailable"


@dataclass(frozen=True)
class RecordedEvent:
    """Anything else that happened while recording: gaps, clock steps, NVML errors, markers (schema.EVENT_KINDS)."""

    t_s: float
    kind: str
    gpu: int | None
    fields: Mapping[str, object]


@dataclass(frozen=True, eq=False)
class Run:
    """All that was recorded, on one clock.

    `samples`: one row a GPU and tick, sorted by gpu then t_s, columns t_s, gpu and schema.GPU_QUANTITIES. `ring`: t_s,
    gpu and schema.RING_QUANTITIES, what the driver kept between ticks, sorted by gpu then t_s. `host`: t_s and
    schema.HOST_QUANTITIES. Readings are float64, or float32 in columns that this holds exactly (whole numbers), NaN
    where missing; a column never recorded is all NaN.
    `processes`: t_s, gpu, pid, name, memory_used_mib, change, owner (schema.PROCESS_OWNERS), gpu_util_pct. `problems`
    says in whole sentences what of the input could not be read.
    """

    path: str
    start_wall_s: float
    duration_s: float
    recording: Recording
    gpus: tuple[Gpu, ...]
    samples: pd.DataFrame
    ring: pd.DataFrame
    host: pd.DataFrame
    processes: pd.DataFrame
    yolo_runs: tuple[YoloRun, ...]
    epoch_rows: tuple[EpochRow, ...]
    kernel: KernelLog
    events: tuple[RecordedEvent, ...]
    problems: tuple[str, ...] = ()
    inside: tuple[InsideRun, ...] = ()

    def samples_of(self, gpu: int) -> pd.DataFrame:
        """Return a GPU's rows of `samples`, which are not copied."""
        return _of_gpu(self.samples, gpu)

    def ring_of(self, gpu: int) -> pd.DataFrame:
        """Return a GPU's rows of `ring`, which are not copied."""
        return _of_gpu(self.ring, gpu)


def _of_gpu(frame: pd.DataFrame, gpu: int) -> pd.DataFrame:
    """Return a GPU's rows of a table that is sorted by GPU."""
    of = frame["gpu"].to_numpy()
    first, last = (of.searchsorted(of.dtype.type(each)) for each in (gpu, gpu + 1))  # of another type, it copies `of`
    return frame.iloc[int(first) : int(last)]


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

    `used` says whether the run worked on it at all: a GPU that it did not use is no part of the run's means.
    """

    gpu: Gpu
    samples: int
    quantities: Mapping[str, Stats]
    energy_j: float | None
    energy_source: Literal["counter", "power", "none"]
    used: bool = True


@dataclass(frozen=True)
class EpochSummary:
    """One epoch: from the end of the one before (or the start of training) to its own row of results.csv.

    One that was told from inside lasts from the start of its training to the end of its checkpoint. `gpu_util_pct` and
    `energy_j` are over all recorded GPUs, `gpus` and `gpu_utils_pct` (means) per device index. `train_s`,
    `validation_s` and `checkpoint_s` are its phases, None where not told apart; `source` is its training's. `warm_up_s`
    is what of it was startup still: the first batch of a process; 0 in any other epoch. Images and data wait are of
    `train_s`, and known from inside only; `data_wait_share` is of it, 0 to 1.
    `held_s` are seconds between its batches for which a finding has another cause (`held_by`) than the loader: told as
    a wait for data, and not in it.
    `odd` says in what it stands out from its siblings, in whole phrases; `first` that its process had just begun,
    `closing` that the mosaic was closed for it.
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
    odd: tuple[str, ...] = ()
    source: str = ""
    first: bool = False
    closing: bool = False
    gpu_utils_pct: Mapping[int, float | None] = field(default_factory=dict)
    warm_up_s: float | None = None
    held_s: float | None = None
    held_by: str = ""


@dataclass(frozen=True)
class Interval:
    """A stretch of one GPU's time, with the mean utilisation in it."""

    gpu: int
    start_t_s: float
    end_t_s: float
    mean_pct: float

    @property
    def duration_s(self) -> float:
        """Return its length in seconds."""
        return self.end_t_s - self.start_t_s


@dataclass(frozen=True)
class Gap:
    """A stretch in which samples that should be there are not; `gpu` is None when it concerns every GPU."""

    gpu: int | None
    start_t_s: float
    end_t_s: float
    reason: str


@dataclass(frozen=True)
class Evidence:
    """A number from the run that supports a finding."""

    text: str
    value: float | None = None
    unit: str = ""


@dataclass(frozen=True)
class Cause:
    """What took the GPU's time (names: DESIGN.md, Words). `confidence` is 0 to 1."""

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
class Advice:
    """One thing to change: in words, and as an argument of the run with its value now and the one to try.

    `gain_at_most` is the share of the time of training (0 to 1) that can be won at all, `gain_estimate` what this
    change is likely to win of it; None where that cannot be worked out.
    """

    text: str
    argument: str | None = None
    from_value: str | None = None
    to_value: str | None = None
    gain_at_most: float | None = None
    gain_estimate: float | None = None


@dataclass(frozen=True)
class Bound:
    """What the training part of an epoch could be without one cause, in seconds.

    `epoch_s_now` is the median of ordinary epochs where the cause holds all the time, else the mean of all; the first
    epoch of a process and the one that closes the mosaic are in neither.
    `epoch_s_at_best` cannot be beaten by removing this cause alone; `epoch_s_estimate` is what the best repair among
    the advice (`repair`, as it is typed) is likely to reach, None where that cannot be worked out. `basis` says what
    the figures rest on.
    """

    cause: str
    epoch_s_now: float
    epoch_s_at_best: float
    basis: str
    epoch_s_estimate: float | None = None
    repair: str = ""

    @property
    def speed_up_at_most(self) -> float:
        """Return now over at best, 1 where nothing can be won."""
        return self.epoch_s_now / self.epoch_s_at_best

    @property
    def speed_up_estimate(self) -> float | None:
        """Return now over the estimate, None without one."""
        return self.epoch_s_now / self.epoch_s_estimate if self.epoch_s_estimate else None


@dataclass(frozen=True)
class Finding:
    """Anything a rule says about a run. `id` is stable (`drop-3`) and is the report's anchor.

    `at_boundary` says that it touches the end of an epoch; `expected` that its phase explains it.
    `level_pct` and `low_pct` are utilisation before a drop and the mean within it.
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

    @property
    def duration_s(self) -> float:
        """Return its length in seconds."""
        return self.end_t_s - self.start_t_s


EndingName = Literal["finished", "early stop", "failed", "going on", "unknown"]


@dataclass(frozen=True)
class Ending:
    """How the last training of a run ended: in one sentence, when, the epoch it had come to and how many were to come.

    `last_minute` is what its GPUs and the host's memory were like in the minute before.
    """

    name: EndingName
    text: str
    t_s: float
    epoch: int | None = None
    epochs: int | None = None
    last_minute: tuple[Evidence, ...] = ()


@dataclass(frozen=True)
class LedgerRow:
    """Where GPU time went. Rows add up to duration x GPUs exactly. `share` is of all GPU seconds, 0 to 1.

    `energy_j` is None where that of a good part of the row's time is not known: the rest of it would be too low.
    """

    name: str
    expected: bool
    gpu_seconds: float
    energy_j: float | None
    money: float | None
    share: float


@dataclass(frozen=True)
class Options:
    """What the user may set. Defaults are the project's definition of a drop (DESIGN.md, Words).

    A drop falls by more than `drop_percent` of its level, for `drop_seconds` or more.
    """

    drop_percent: float = 50.0
    drop_seconds: float = 10.0
    price_per_hour: float | None = None

    @property
    def line_share(self) -> float:
        """Return the share of the level (0 to 1) under which utilisation is in a drop."""
        return 1 - self.drop_percent / 100


# Of the time (0 to 1): with less of it measured "no drop" is no news, a sum would be too low, and a mean or a peak says
# of how much it is. A tick or two that a busy host missed in a minute leave more.
WELL_COVERED = 0.95


@dataclass(frozen=True, eq=False)
class Analysis:
    """What is to be said about a run. `coverage` is the share of expected samples that are there, 0 to 1."""

    run: Run
    options: Options
    verdict: str
    gpus: tuple[GpuSummary, ...]
    epochs: tuple[EpochSummary, ...]
    phases: tuple[Phase, ...]
    low_intervals: tuple[Interval, ...]
    gaps: tuple[Gap, ...]
    findings: tuple[Finding, ...]
    ledger: tuple[LedgerRow, ...]
    bounds: tuple[Bound, ...]
    coverage: float
    longest_gap_s: float
    ending: Ending | None = None


# --- comparing runs (analyse/compare) ---

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
    points. `change_share` and `interval_share` are of the baseline (0.1 is 10 %). `counts` says how many epochs or
    windows of training each side has (`basis`; `run` is one figure a run), `block` how long the blocks of the bootstrap
    are. `significant` is None where there are too few for an interval. `each` has the values of several baselines,
    newest first; `band` is where one more like them would lie, from three on, and `in_band` says that a change is more
    than chance, and yet no more than the baselines differ by: it cannot be judged. `least_change` is the smallest
    change that counts, in `unit`. `outliers` counts the values of each side that are left out because they stand far
    out from their siblings.
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
    basis: Literal["epochs", "windows", "run"] = "epochs"
    counts: tuple[int, int] = (0, 0)
    block: int = 1
    significant: bool | None = None
    each: tuple[float, ...] = ()
    band: tuple[float, float] | None = None
    in_band: bool = False
    least_change: float | None = None
    outliers: tuple[int, int] = (0, 0)
    judgement: Judgement = "unknown"
    note: str = ""


@dataclass(frozen=True)
class FindingChange:
    """Findings of one rule, cause and GPU in baseline and run. `gpu` is the index in the run, else in the baseline.

    `counts` and `seconds` are of the baseline (the median of several) and of the run, `ids` the findings in the run.
    `each` has how many and how long they are in every baseline, newest first.
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

    @property
    def in_baselines(self) -> tuple[tuple[int, float], ...]:
        """Return `each` of those baselines that have it."""
        return tuple(known for known in self.each if known[0])


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

    `why` says in few words what kept it from being measured, or from deciding on what was measured.
    """

    gate: Gate
    outcome: Outcome
    summary: str
    value: float | None = None
    unsure: bool = False
    why: str = ""

    @property
    def undecided(self) -> bool:
        """Tell whether there is a figure, and yet nobody can tell what it means for the training."""
        return self.outcome == "not measured" and self.value is not None


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run held against its baselines (none: `check`), and what its gates made of it.

    `obstacles` say in whole sentences why nothing can be said: set-ups that cannot be compared, a run cut short, too
    little data. `metrics` are empty then. `first_epochs` are those that warm a process up, judged by nobody. `stutter`
    says of the baseline and the run whether the GPU stood still at times. `notes` say which epochs were left out.
    `judgement` is of the whole, None with obstacles, without a baseline, or where baselines differ by as much as the
    epoch time changed and nothing else is certain; `verdict` is one or two sentences. `setup`
    names the run's set-up in letters that any file or server takes. `left_out` are the numbers of the epochs that do
    more than train, of the baseline and of the run.
    """

    baselines: tuple[Analysis, ...]
    run: Analysis
    obstacles: tuple[str, ...]
    differences: tuple[Difference, ...]
    metrics: tuple[MetricComparison, ...]
    first_epochs: MetricComparison | None
    findings: tuple[FindingChange, ...]
    stutter: tuple[str, str]
    gates: tuple[GateResult, ...]
    judgement: Literal["better", "worse", "same", "mixed"] | None
    verdict: str
    setup: str
    notes: tuple[str, ...] = ()
    left_out: tuple[frozenset[int], frozenset[int]] = (frozenset(), frozenset())

    @property
    def exit_code(self) -> int:
        """Return the exit code of a command whose gates came to this."""
        return {"passed": 0, "failed": 1, "not measured": 3}[self.outcome]

    @property
    def outcome(self) -> Outcome:
        """Return what the gates of level `fail` come to: one that failed decides; nothing measured is no pass.

        Where there are only gates that warn, it is enough that one of them was measured. A gate that could not decide
        on what it measured keeps the rest from passing, also one that may go unmeasured.
        """
        gates = [result for result in self.gates if result.gate.level == "fail"]
        if any(result.outcome == "failed" for result in gates):
            return "failed"
        unmeasured = [result for result in gates if result.outcome == "not measured"]
        must = [result for result in unmeasured if not result.gate.optional or result.undecided]
        asked = gates or self.gates
        nothing = all(result.outcome == "not measured" for result in asked)
        return "not measured" if self.obstacles or must or nothing else "passed"
