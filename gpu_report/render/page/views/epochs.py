"""The section of epochs: its table and its chart."""

from dataclasses import dataclass

from gpu_report.render.run_clock import Moment


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
