"""The vocabulary of a job's page: what its template is given, in words and numbers ready to print."""

from dataclasses import dataclass

from gpu_report.render.page.views.tables import TextTable


@dataclass(frozen=True)
class StripPath:
    """All columns of a strip in which utilisation is in one class, as an SVG path: M3 0h2 is two columns from 3 on."""

    level: int
    path: str


@dataclass(frozen=True)
class StripRow:
    """A row of the timeline: a node's mean, or a GPU."""

    name: str
    note: str
    paths: tuple[StripPath, ...]


@dataclass(frozen=True)
class NodeStrips:
    """A node's row, and those of its GPUs within it. `is_late` marks the node that the others wait for."""

    id: str
    mean: StripRow
    gpus: tuple[StripRow, ...]
    is_late: bool
    is_missing: bool


@dataclass(frozen=True)
class TimelineView:
    """The rows, of `columns` columns of `step_s` seconds each, from `start_wall_s` (UTC) on.

    `ticks` are places (0 to 100 % of the width) with their times, `epochs` where epochs begin (columns).
    """

    columns: int
    step_s: float
    start_wall_s: float
    nodes: tuple[NodeStrips, ...]
    ticks: tuple[tuple[float, str], ...]
    epochs: tuple[float, ...]
    levels: tuple[str, ...]
    open: bool


@dataclass(frozen=True)
class JobFindingView:
    """A finding of the job, or of one of its nodes."""

    id: str
    title: str
    severity: str
    severity_word: str
    summary: str
    where: str
    advice: str
    when: str


@dataclass(frozen=True)
class NodeView:
    """One node: what its own report says first, and the command that makes all of that report."""

    id: str
    name: str
    host: str
    verdict: str
    findings: tuple[JobFindingView, ...]
    ledger: tuple[tuple[str, str], ...]
    command: str


@dataclass(frozen=True)
class JobView:
    """All that the page says. `status` is good, warning or critical."""

    title: str
    subtitle: str
    status: str
    verdict: str
    verdict_rest: str
    findings: tuple[JobFindingView, ...]
    timeline: TimelineView
    nodes: TextTable
    clocks: str
    nccl: str
    ranks: TextTable
    more_ranks: str
    each_node: tuple[NodeView, ...]
    notes: tuple[str, ...]
    tool: str
