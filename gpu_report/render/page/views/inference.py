"""Models that were called."""

from dataclasses import dataclass

from gpu_report.render.page.views.tables import Fact, LedgerItem, NamedTable, TextTable
from gpu_report.render.run_clock import Moment


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
    gaps: TextTable
    groups: tuple[NamedTable, ...]
    settings: tuple[Fact, ...]


@dataclass(frozen=True)
class InferenceView:
    """The models that were called, the first of them in full, the others as rows of a table.

    `comes_first` says that the run did nothing else that the page is about.
    """

    note: str
    served: tuple[ServedView, ...]
    others: TextTable
    comes_first: bool
