"""All that the report says."""

from dataclasses import dataclass

from gpu_report.render.page.views.epochs import EpochsView
from gpu_report.render.page.views.findings import AdviceView, FindingsView, KernelRow
from gpu_report.render.page.views.inference import InferenceView
from gpu_report.render.page.views.profiler import ProfilerView
from gpu_report.render.page.views.tables import Fact, LedgerItem, NamedTable, TextTable
from gpu_report.render.run_clock import Moment


@dataclass(frozen=True)
class LedgerView:
    """Where the GPU time went, as parts of one bar, and what these seconds are of."""

    items: tuple[LedgerItem, ...]
    note: str


@dataclass(frozen=True)
class HeatCell:
    """A stretch of a GPU's strip, of 1000 in width; `level` 0 is nearly idle, 4 nearly full."""

    x: float
    width: float
    level: int


@dataclass(frozen=True)
class KernelView:
    """What is known of the kernel log. Unless it was read, `statement` says unknown and `command` what would help."""

    read: bool
    statement: str
    command: str
    lines: tuple[KernelRow, ...]


@dataclass(frozen=True)
class YoloView:
    """One YOLO run: where it lay, how its epochs were placed, and its arguments.

    `changed` are those that differ from their default or have another effect, `reported` what only the running training
    knew, `arguments` the rest.
    """

    title: str
    path: str
    placement: str
    changed: tuple[Fact, ...]
    changed_note: str
    reported: tuple[Fact, ...]
    arguments: tuple[Fact, ...]


@dataclass(frozen=True)
class RecorderEvent:
    """Anything that happened to the recording itself."""

    moment: Moment
    what: str
    detail: str


@dataclass(frozen=True)
class RecordingView:
    """How the data came about, and what of it is missing."""

    facts: tuple[Fact, ...]
    not_checked: tuple[str, ...]
    problems: tuple[str, ...]
    happenings: tuple[RecorderEvent, ...]
    happenings_left_out: str


@dataclass(frozen=True)
class GpuView:
    """A GPU as it is named on the page; `mean` is its utilisation, `throttled` is empty where nothing counted it.

    `alarms` are changes of its health during the run, `health_counters` their last values; empty where not recorded.
    """

    index: int
    number: str
    name: str
    uuid: str
    samples: str
    throttled: str
    alarms: tuple[str, ...]
    health_counters: str
    has_ring: bool
    mean: str
    strip: tuple[HeatCell, ...]


@dataclass(frozen=True)
class LegendItem:
    """A sign of a lane of the timeline: its class in the style sheet and what it means.

    `lane` is the lane's title (`quantity_labels.Lane`), `phases` or `events`.
    """

    lane: str
    sign: str
    label: str


@dataclass(frozen=True)
class CodeTimeView:
    """What the GPUs waited for: the roles and phases to choose from (key and words), and the worst lines.

    `has_ranks` says that some stacks wait for other ranks, `has_loader` that some wait for a data loader, `has_later`
    that there is more than start-up, which the lines are of. Not `by_idle`, where no GPU was read, all time counts.
    """

    title: str
    lines_title: str
    by_idle: bool

    roles: tuple[tuple[str, str], ...]
    phases: tuple[tuple[str, str], ...]
    lines: TextTable
    note: str
    has_ranks: bool
    has_loader: bool
    has_later: bool


@dataclass(frozen=True)
class VerdictView:
    """What stands on top: the lead with what it says to set (`copy`), what belongs to it, and the rest in small print.

    In all three code stands between backticks: ours alone.
    """

    lead: str
    copy: str
    rest: str
    more: str


@dataclass(frozen=True)
class HeaderView:
    """What run the page is of: its name, its model and machine, when it was recorded; `tool` made the page."""

    title: str
    subtitle: tuple[str, ...]
    start: Moment
    end: Moment
    duration: str
    tool: str


@dataclass(frozen=True)
class SeriesView:
    """Which series the page draws and holds: samples at all, a heat strip in place of lines, the host's."""

    has_samples: bool
    has_heat: bool
    has_host: bool


@dataclass(frozen=True)
class ReportView:
    """All that the page says."""

    header: HeaderView
    verdict: VerdictView
    status: str
    advice: tuple[AdviceView, ...]
    advice_title: str
    tiles: tuple[Fact, ...]
    more_tiles: tuple[Fact, ...]
    more_tiles_title: str
    gpus: tuple[GpuView, ...]
    gpu_overview: TextTable
    legend: tuple[LegendItem, ...]
    ledger: LedgerView
    speedup: NamedTable
    findings: FindingsView
    inference: InferenceView | None
    code_time: CodeTimeView | None
    profiler: tuple[ProfilerView, ...]
    profiler_failures: tuple[str, ...]
    phases_note: str
    epochs: EpochsView
    validation: TextTable
    statistics: TextTable
    processes: TextTable
    kernel: KernelView
    yolo: tuple[YoloView, ...]
    recording: RecordingView
    series: SeriesView
