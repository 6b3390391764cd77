"""The vocabulary of a benchmark's page: what its template is given, in words and numbers ready to print."""

from dataclasses import dataclass

from gpu_report.render.page.views.tables import TextTable


@dataclass(frozen=True)
class VariantDot:
    """A variant in the chart: its number in the tables, its place in percent, and the ends of its interval.

    `colour` counts the models, `hollow` is FP16; `title` is what it says when it is pointed at.
    """

    number: str
    x: float
    y: float
    low: float
    high: float
    colour: int
    hollow: bool
    chosen: bool
    title: str


@dataclass(frozen=True)
class VariantChart:
    """Latency against throughput, both on logarithmic scales; places are percent of the width and height.

    `limit` is the place of the limit, None without or where it lies outside.
    """

    x_label: str
    dots: tuple[VariantDot, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    limit: float | None
    limit_words: str
    models: tuple[str, ...]
    has_half: bool


@dataclass(frozen=True)
class TableSection:
    """A table with its heading and what is to be known of it."""

    id: str
    title: str
    about: str
    table: TextTable


@dataclass(frozen=True)
class BenchView:
    """All that the page says. `status` is good, warning or critical."""

    title: str
    status: str
    verdict: str
    verdict_rest: str
    chart: VariantChart | None
    sections: tuple[TableSection, ...]
    failed: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]
    tool: str
