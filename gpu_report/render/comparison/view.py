"""The comparison page's whole vocabulary: what its template is given, in words and numbers ready to print.

Text from outside stands as it came; the page escapes it.
"""

from dataclasses import dataclass

from gpu_report.render.page.views.tables import TextTable


@dataclass(frozen=True)
class RunView:
    """A run in the page's head: what it is called, when it was recorded, how it ended, and its own verdict."""

    role: str
    name: str
    start: str
    ending: str
    verdict: str


@dataclass(frozen=True)
class Whisker:
    """The interval of a change on a scale of 200 with zero at 100; `low` and `high` are cut off at its ends."""

    low: float
    high: float
    change: float


@dataclass(frozen=True)
class MetricRow:
    """A metric's row; `status` is better, worse, changed, same, in-band or empty.

    `band` is what several baselines differ by, and where one more may lie.
    """

    label: str
    before: str
    after: str
    change: str
    interval: str
    judgement: str
    status: str
    note: str
    whisker: Whisker | None = None
    band: tuple[str, str] = ("", "")


@dataclass(frozen=True)
class GateRow:
    """A row of gates of which the same is to be said; `status` is failed, warning, unsure, skipped or passed."""

    word: str
    status: str
    gates: tuple[str, ...]
    summary: str


@dataclass(frozen=True)
class DifferenceRow:
    """Something of the set-up that differs; `kind` is hard, argument or soft."""

    name: str
    before: str
    after: str
    kind: str


@dataclass(frozen=True)
class FindingRow:
    """A kind of finding in either run; `status` is new, still there or gone."""

    status: str
    severity: str
    title: str
    before: str
    after: str
    summary: str


@dataclass(frozen=True)
class LineRow:
    """A line of code whose idle GPU time per epoch changed; `status` is slower, faster, new or gone."""

    status: str
    line: str
    before: str
    after: str
    change: str


@dataclass(frozen=True)
class EpochLane:
    """One run's utilisation over its epochs, each as wide as the others: SVG paths by GPU, and its phases below."""

    role: str
    name: str
    paths: tuple[tuple[str, str], ...]
    phases: tuple[tuple[str, float, float], ...]


@dataclass(frozen=True)
class Dot:
    """An epoch's value in a panel; `kind` is before, after, or either with `apart` for what is not compared."""

    x: float
    y: float
    kind: str


@dataclass(frozen=True)
class Panel:
    """A quantity of every epoch of both runs, from `low` to `high`."""

    label: str
    low: str
    high: str
    dots: tuple[Dot, ...]
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class EpochColumn:
    """The place of an epoch in the charts, and what is reported of it."""

    x: float
    width: float
    title: str


@dataclass(frozen=True)
class ChartsView:
    """The two timelines aligned by epoch, and below them each epoch in numbers. 1000 wide, 100 high."""

    lanes: tuple[EpochLane, ...]
    panels: tuple[Panel, ...]
    columns: tuple[EpochColumn, ...]
    ticks: tuple[tuple[float, str], ...]
    table: TextTable
    note: str


@dataclass(frozen=True)
class ComparisonView:
    """All that the page says. `status` is good, warning, critical or unknown; `verdict` is the first sentence of it.

    `band` heads the column of what several baselines differ by; empty without. `lines` are None where unknown.
    """

    title: str
    status: str
    verdict: str
    verdict_rest: str
    outcome: str
    obstacles: tuple[str, ...]
    runs: tuple[RunView, ...]
    baselines: str
    band: str
    metrics: tuple[MetricRow, ...]
    whiskers: str
    gates: tuple[GateRow, ...]
    differences: tuple[DifferenceRow, ...]
    findings: tuple[FindingRow, ...]
    lines: tuple[LineRow, ...] | None
    charts: ChartsView | None
    notes: tuple[str, ...]
    tool: str
