"""What passes between the stages: typed, frozen values. Times `t_s` are seconds from the run's start.

`Run` is what was recorded, `Analysis` what is to be said about it, `Comparison` what became of it since its baselines.
All other code takes them from here.
"""

from gpu_report.model.analysis import (
    HEALTHY_PCT,
    STARVED_PCT,
    WELL_COVERED,
    Analysis,
    Gap,
    Interval,
    LedgerRow,
    Options,
    ProfiledSteps,
)
from gpu_report.model.bench import (
    BenchResult,
    BenchRow,
    BenchRun,
    BenchVariant,
    BoxAgreement,
    FullSpeed,
    HostLoop,
    HostSpeed,
    LatencyLimit,
    LimitOf,
    Rate,
    Remark,
    Turn,
)
from gpu_report.model.calls import ModelCalls, asked_for_cpu, fell_back_to_cpu, provider_in_use
from gpu_report.model.code import CodeFrame, CodeKind, CodeLine, CodeLocation, CodeTime, Frame, Stack
from gpu_report.model.comparison import (
    CallCause,
    Comparison,
    Difference,
    EpochCause,
    FindingChange,
    Gate,
    GateResult,
    Judgement,
    LineChange,
    MetricComparison,
    Obstacle,
    Outcome,
)
from gpu_report.model.finding import (
    GPUS,
    UNSURE,
    Advice,
    Cause,
    Evidence,
    Finding,
    NearbyKernelEvent,
    Occurrence,
    Reference,
    Setting,
    recurring,
)
from gpu_report.model.inference import (
    CallGroup,
    CallParts,
    GapKind,
    GapPart,
    GroupKind,
    Latency,
    Quantile,
    ServedModel,
    calls_needed,
)
from gpu_report.model.inside import (
    NAN_GRADIENT,
    InsideEpoch,
    InsideRun,
    MemoryHolder,
    ProfilerWindow,
    Progress,
    Raised,
    RebuiltPredictor,
    RefusedAllocation,
    SettingLocation,
    WindowLines,
)
from gpu_report.model.job import (
    Job,
    JobFinding,
    JobNode,
    JobRule,
    NodeClock,
    NodeGpu,
    NodeRun,
    RankRow,
    RankTraining,
    UnreadNode,
)
from gpu_report.model.job_part import ClockState, JobPart, Rank
from gpu_report.model.kernel_log import KernelEvent, KernelLog, OomReport, Severity
from gpu_report.model.nccl import Collective, Nccl, NcclProcess, NcclWarning, RankTrace, TracedGroup
from gpu_report.model.processes import (
    BusyThreads,
    CollectionCounts,
    LockHeld,
    LongCollections,
    OtherProgram,
    Probes,
    ProcessDumps,
    ProcessStacks,
    ProcessWait,
    ThreadStacks,
)
from gpu_report.model.recorded import SLEPT_LEAST_S, Gpu, Mount, RecordedEvent, RecorderCost, Recording, Run
from gpu_report.model.speedup import LEAST_SPEED_UP, EpochNow, Projection, SpeedupLimit, epoch_now_s, longest_now
from gpu_report.model.summaries import EpochSummary, GpuSummary, Outlier, PartName, Stats
from gpu_report.model.time_span import TimeSpan
from gpu_report.model.trace import (
    CopyDirection,
    CopyKind,
    HostMemory,
    Trace,
    TraceCalls,
    TraceDevice,
    TraceEvents,
    TraceGpuWork,
    TraceMarks,
    TraceOperators,
    TraceRank,
    TraceStep,
    TraceSyncs,
)
from gpu_report.model.trace_analysis import (
    AllocatorCalls,
    Bound,
    CopyTime,
    CpuFreeStep,
    FamilyName,
    FamilyTime,
    KernelTime,
    LaunchTiming,
    LayerTime,
    OperatorTime,
    OptimizerStyle,
    OptimizerTime,
    SyncPoint,
    TensorCores,
    TraceAnalysis,
    TraceQuality,
    TraceStepTime,
)
from gpu_report.model.verdict import Ending, EndingName, Hypothesis, NotChecked, Sentence, Verdict
from gpu_report.model.yolo import (
    AT_EPOCH_END,
    FROM_CALLBACKS,
    FROM_TENSORBOARD,
    OF_EPOCHS,
    VALIDATION_PARTS,
    EpochRow,
    Phase,
    PhaseName,
    Validation,
    ValidationPart,
    YoloRun,
)
