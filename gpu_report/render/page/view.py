"""The page's whole vocabulary: what the template is given, in words and numbers ready to print.

Nothing here is NaN: a missing number is None or reads n/a. Text from outside stands as it came; the page escapes it.
"""

from dataclasses import dataclass

from gpu_report.render.run_clock import Moment


@dataclass(frozen=True)
class Fact:
    """A label and what is to be said under it; `note` explains it in smaller print."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table of text. `numeric` says column by column whether it is set to the right."""

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class LedgerItem:
    """A part of the ledger's bar, from `start_pct` of its width; `kind` picks its colour, `label` stands in it."""

    name: str
    kind: str
    start_pct: float
    width_pct: float
    label: str
    share: str
    time: str
    energy: str
    money: str


@dataclass(frozen=True)
class LedgerView:
    """Where the GPU time went, as parts of one bar, and what these seconds are of."""

    items: tuple[LedgerItem, ...]
    note: str


@dataclass(frozen=True)
class KernelRow:
    """A kernel event with what it means; `text` is the raw line, `distance` its place beside a finding."""

    moment: Moment
    severity: str
    title: str
    meaning: str
    action: str
    text: str
    gpu: str
    count: str
    distance: str = ""


@dataclass(frozen=True)
class AdviceView:
    """One thing to change: in words, and where it can be, the argument with its value now and the one to try."""

    text: str
    change: str
    now: str
    gain: str


@dataclass(frozen=True)
class ChartLine:
    """A line of a small chart: its colour's class, whether it is what the chart is about, and its SVG path.

    Of more readings than can be drawn the line is their mean, and `band` the area from the lowest to the highest.
    Of many GPUs one line stands for all `gpus`, as their mean.
    A path that is drawn more than once has an `id`, and stands only where it comes first; elsewhere both are empty.
    """

    colour: str
    is_own: bool
    path: str
    band: str = ""
    id: str = ""
    gpus: int = 1


@dataclass(frozen=True)
class ChartView:
    """What a finding is about in and around it, 1000 wide and 100 high; the bands (x, width) are the finding itself.

    `quantity` is what the lines show, `top` the value at the upper edge; the lower edge is 0. `has_wide_band` says that
    a band is more than a line, `has_range` that lines are means, each with the area from the lowest to the highest.
    """

    quantity: str
    top: str
    lines: tuple[ChartLine, ...]
    bands: tuple[tuple[float, float], ...]
    epochs: tuple[float, ...]
    kernel: tuple[float, ...]
    start: Moment
    end: Moment
    has_wide_band: bool = True
    has_range: bool = False


@dataclass(frozen=True)
class HeatCell:
    """A stretch of a GPU's strip, of 1000 in width; `level` 0 is nearly idle, 4 nearly full."""

    x: float
    width: float
    level: int


@dataclass(frozen=True)
class LearnMore:
    """What the documentation says of a rule or a cause: paragraphs, and points with a name (for, against, ...)."""

    name: str
    paragraphs: tuple[str, ...]
    points: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FindingView:
    """A finding as it is listed; `id` is its anchor, `number` stands on the timeline, too (empty of an expected one).

    `gist` is its cause and how long it took; `step` is where to look, before its advice; `is_told` says that
    the verdict tells it already.
    """

    id: str
    number: str
    title: str
    severity: str
    severity_word: str
    expected: bool
    start: Moment
    end: Moment
    gist: str
    summary: str
    facts: tuple[Fact, ...]
    cause: str
    cause_kind: str
    confidence: str
    explanation: str
    runner_up: str
    evidence: tuple[Fact, ...]
    kernel: tuple[KernelRow, ...]
    advice: tuple[AdviceView, ...]
    step: str = ""
    is_told: bool = False
    learn_more: tuple[LearnMore, ...] = ()
    chart: ChartView | None = None


@dataclass(frozen=True)
class FindingsView:
    """The section of findings: `cards` in full, of which the first `open_cards` are open, and `more` as rows.

    `at_the_top` stand under the verdict, too. `expected` are drops that their phase explains. `none_found` is what is
    said in their place.
    """

    cards: tuple[FindingView, ...]
    open_cards: int
    at_the_top: tuple[FindingView, ...]
    more: tuple[FindingView, ...]
    count: str
    is_filtered: bool
    expected: tuple[FindingView, ...]
    none_found: str


@dataclass(frozen=True)
class EpochRowView:
    """One epoch's row; `util_pct` draws its bar, None without one. `outliers` says in what it stands out."""

    anchor: str
    start: Moment
    end: Moment
    util_pct: float | None
    cells: tuple[str, ...]
    outliers: str = ""


@dataclass(frozen=True)
class EpochPart:
    """A part of an epoch's bar, of 100 in height, from above: wait, train, validation or checkpoint."""

    kind: str
    y: float
    height: float


@dataclass(frozen=True)
class EpochBar:
    """An epoch, or the mean of several, in the chart of epochs, which is 1000 wide; `title` is what it says."""

    x: float
    width: float
    parts: tuple[EpochPart, ...]
    outliers: bool
    title: str


@dataclass(frozen=True)
class EpochLine:
    """A panel under the bars: its SVG path, 1000 wide and 100 high, and the values at its lower and upper edge."""

    label: str
    kind: str
    path: str
    low: str
    high: str


@dataclass(frozen=True)
class EpochChartView:
    """The epochs one after the other: how long their parts took, and lines of what else went with them.

    `ticks` are the middles of some bars, of 1000 in width, with their epochs, `few_ticks` those for a phone.
    """

    bars: tuple[EpochBar, ...]
    top: str
    kinds: tuple[str, ...]
    lines: tuple[EpochLine, ...]
    ticks: tuple[tuple[float, str], ...]
    few_ticks: tuple[tuple[float, str], ...]
    note: str


@dataclass(frozen=True)
class EpochsView:
    """The section of epochs. `columns` are those after epoch and start; `util_column` has bars, None without a GPU.

    `outliers_note` and `unknown_note` are sentences: which epochs stand out, and what is not known or not listed.
    """

    columns: tuple[str, ...]
    util_column: int | None
    rows: tuple[EpochRowView, ...]
    chart: EpochChartView | None
    outliers_note: str
    unknown_note: str


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
    lines: Table
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
class StepPartView:
    """A part of a step's bar, from `start_pct` of the longest step."""

    name: str
    kind: str
    start_pct: float
    width_pct: float
    time: str


@dataclass(frozen=True)
class StepView:
    """A step: its number as the profiler has it, its length, and its parts."""

    name: str
    time: str
    parts: tuple[StepPartView, ...]


@dataclass(frozen=True)
class StepPartTotal:
    """A part of all steps: how long a step, and its share."""

    name: str
    kind: str
    time: str
    share: str


@dataclass(frozen=True)
class NamedTable:
    """A table with its heading and what is to be known of it."""

    title: str
    note: str
    table: Table


@dataclass(frozen=True)
class ProfilerView:
    """A window of the profiler: sentences, a bar a step, tables, and where its trace lies."""

    title: str
    lead: str
    sentences: tuple[str, ...]
    steps: tuple[StepView, ...]
    totals: tuple[StepPartTotal, ...]
    families: Table
    tables: tuple[NamedTable, ...]
    trace: str


@dataclass(frozen=True)
class LatencyBin:
    """A bar of a distribution: its upper edge of 1000 in height, its width of 100, and what it says."""

    y: float
    width: float
    title: str


@dataclass(frozen=True)
class LatencyChartView:
    """Latency over the time of the run, 1000 wide and high, and beside it as a distribution on the same axis.

    `ranges` is a path with a stroke a bucket of time, `sparse` where few have calls. `medians` is a line in steps,
    empty with few calls; `worst` are dots.
    `warm_up` is where its calls lie and how wide that is. `ticks` are heights in percent from above with their words,
    `quantiles` names (p50, p95, p99) with theirs of 1000. `label` says the chart in words.
    """

    label: str
    ranges: str
    sparse: bool
    medians: str
    worst: str
    warm_up: tuple[float, float] | None
    ticks: tuple[tuple[float, str], ...]
    bins: tuple[LatencyBin, ...]
    quantiles: tuple[tuple[str, float], ...]
    start: Moment
    middle: Moment
    end: Moment


@dataclass(frozen=True)
class SlowCall:
    """A call that took long: when it began, and its cells."""

    start: Moment
    cells: tuple[str, ...]


@dataclass(frozen=True)
class ServedView:
    """A model that was called: its key numbers, the parts of a call, latency over time, and what lies between calls.

    `title` is its file, `about` how it ran in a few words each. `warning` is what of its settings costs speed, empty
    where nothing does. `slow_columns` are the heads of `slow`'s cells. `between` says what time between calls comes to,
    `gaps` what it went to. `groups` are calls by what they have in common, where there is more than one such group.
    """

    title: str
    about: tuple[str, ...]
    warning: str
    tiles: tuple[Fact, ...]
    parts_title: str
    parts: tuple[LedgerItem, ...]
    parts_note: str
    warm_up: str
    chart: LatencyChartView | None
    slow_columns: tuple[str, ...]
    slow: tuple[SlowCall, ...]
    between: str
    gaps: Table
    groups: tuple[NamedTable, ...]
    settings: tuple[Fact, ...]


@dataclass(frozen=True)
class InferenceView:
    """The models that were called, the first of them in full, the others as rows of a table.

    `comes_first` says that the run did nothing else that the page is about.
    """

    note: str
    served: tuple[ServedView, ...]
    others: Table
    comes_first: bool


@dataclass(frozen=True)
class ReportView:
    """All that the page says."""

    title: str
    verdict: VerdictView
    mood: str
    advice: tuple[AdviceView, ...]
    advice_title: str
    subtitle: tuple[str, ...]
    duration: str
    start: Moment
    end: Moment
    tiles: tuple[Fact, ...]
    more_tiles: tuple[Fact, ...]
    more_tiles_title: str
    gpus: tuple[GpuView, ...]
    gpu_overview: Table
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
    validation: Table
    statistics: Table
    processes: Table
    kernel: KernelView
    yolo: tuple[YoloView, ...]
    recording: RecordingView
    has_samples: bool
    has_heat: bool
    has_host: bool
    tool: str
