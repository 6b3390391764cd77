"""A window of PyTorch's profiler."""

from dataclasses import dataclass

from gpu_report.render.page.views.tables import NamedTable, TextTable


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
class ProfilerView:
    """A window of the profiler: sentences, a bar a step, tables, and where its trace lies."""

    title: str
    lead: str
    sentences: tuple[str, ...]
    steps: tuple[StepView, ...]
    totals: tuple[StepPartTotal, ...]
    families: TextTable
    tables: tuple[NamedTable, ...]
    trace: str
