"""What passes between the stages: typed, frozen values. Times `t_s` are seconds from the run's start.

`Run` is what was recorded, `Analysis` what is to be said about it, `Comparison` what became of it since its baselines.
All other code takes them from here.
"""

from gpu_report.model.comparison import (
    Comparison,
    Difference,
    FindingChange,
    Gate,
    GateResult,
    Judgement,
    MetricComparison,
    Obstacle,
    Outcome,
)
from gpu_report.model.found import (
    HEALTHY_PCT,
    STARVED_PCT,
    WELL_COVERED,
    Advice,
    Analysis,
    Cause,
    Ending,
    EndingName,
    EpochSummary,
    Evidence,
    Finding,
    Gap,
    GpuSummary,
    Interval,
    LedgerRow,
    NearbyKernelEvent,
    NotChecked,
    Occurrence,
    Options,
    Outlier,
    PartName,
    Reference,
    Sentence,
    SpeedupLimit,
    Stats,
    Verdict,
)
from gpu_report.model.recorded import (
    EpochRow,
    Gpu,
    InsideEpoch,
    InsideRun,
    KernelEvent,
    KernelLog,
    Mount,
    OomReport,
    Phase,
    PhaseName,
    Progress,
    RecordedEvent,
    Recording,
    Run,
    Severity,
    Stretch,
    YoloRun,
)
