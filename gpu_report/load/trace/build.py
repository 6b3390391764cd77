"""The tables of a trace become a `Trace`: on one clock, in order, with steps and nesting."""

import re
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from gpu_report.load.trace import header
from gpu_report.load.trace.copy_kinds import copy_kind
from gpu_report.load.trace.limits import LARGEST_DEVICE, LONGEST_US, MOST_STEPS
from gpu_report.load.trace.nesting import outer_first, parents
from gpu_report.load.trace.tables import Tables
from gpu_report.model import (
    Trace,
    TraceCalls,
    TraceEvents,
    TraceGpuWork,
    TraceMarks,
    TraceOperators,
    TraceStep,
    TraceSyncs,
)

Columns = dict[str, npt.NDArray[Any]]
Events = TypeVar("Events", bound=TraceEvents)

MICROSECOND_S: Final = 1e-6
CLOCK_OF_1980_US: Final = 3.2e14  # a time before it counts from the machine's start
# Traces of torch up to 1.12 have annotations among the operators.
_ANNOTATION: Final = re.compile(r"ProfilerStep#|Optimizer\.\w+#|enumerate\(DataLoader\)#|nccl:")
_STEP: Final = re.compile(r"ProfilerStep#([0-9]{1,9})")


def build_trace(tables: Tables, around: str) -> tuple[Trace, int]:
    """Return a trace without its problems, and how many events were left out for being days away from the others.

    The tables are empty then. `around` is the JSON around the events. Times count from the first event.
    """
    middle_us, names = tables.middle_us(), tables.names.texts
    columns = {kind: table.take() for kind, table in tables.of.items()}
    far = sum(_leave_out_far(each, middle_us) for each in columns.values())
    starts = [each["ts"].min() for each in columns.values() if len(each["ts"])]
    origin_us = float(min(starts, default=0.0))
    for each in columns.values():
        _to_seconds(each, origin_us)
    ends = [each["end_s"].max() for each in columns.values() if len(each["end_s"])]
    _move_annotations(columns, names)
    annotations = _in_order(TraceMarks, columns["annotations"])
    copies = _in_order(TraceGpuWork, _on_device(columns["copies"]))
    trace = Trace(
        start_wall_s=_wall_s(header.base_ns(around), origin_us) if starts else None,
        duration_s=float(max(ends, default=0.0)),
        names=tuple(names),
        threads=tuple(tables.threads.texts),
        devices=header.devices(around),
        rank=header.rank(around),
        steps=_steps(annotations, names),
        operators=_operators(columns["operators"]),
        calls=_in_order(TraceCalls, columns["calls"]),
        kernels=_in_order(TraceGpuWork, _on_device(columns["kernels"])),
        copies=copies,
        memsets=_in_order(TraceGpuWork, _on_device(columns["memsets"])),
        syncs=_in_order(TraceSyncs, _on_device(columns["syncs"])),
        annotations=annotations,
        python=_in_order(TraceMarks, columns["python"]),
        copy_kinds={int(name): copy_kind(names[name]) for name in np.unique(copies.name)},
    )
    return trace, far


def _leave_out_far(columns: Columns, middle_us: float) -> int:
    """Leave out events so far away that the others would lose their nanoseconds; return how many."""
    near = np.abs(columns["ts"] - middle_us) < LONGEST_US
    if not near.all():
        columns.update({name: values[near] for name, values in columns.items()})
    return int((~near).sum())


def _to_seconds(columns: Columns, origin_us: float) -> None:
    start_s = columns.pop("ts")
    start_s -= origin_us
    start_s *= MICROSECOND_S
    columns["start_s"] = start_s
    columns["end_s"] = start_s + columns.pop("dur") * MICROSECOND_S


def _move_annotations(columns: dict[str, Columns], names: Sequence[str]) -> None:
    """Move what is an annotation by its name from the operators to the annotations."""
    operators, annotations = columns["operators"], columns["annotations"]
    marks = np.fromiter((_ANNOTATION.match(name) is not None for name in names), dtype=bool, count=len(names))
    moved = marks[operators["name"]] if len(operators["name"]) else np.zeros(0, dtype=bool)
    if moved.any():
        for name, values in annotations.items():
            annotations[name] = np.concatenate([values, operators[name][moved]])
        operators.update({name: values[~moved] for name, values in operators.items()})


def _in_order(kind: type[Events], columns: Columns) -> Events:
    """Return a table by start."""
    order = np.argsort(columns["start_s"], kind="stable")
    return kind(**{name: columns.pop(name)[order] for name in kind.__dataclass_fields__})


def _operators(columns: Columns) -> TraceOperators:
    order = outer_first(columns["thread"], columns["start_s"], columns["end_s"])
    for name in list(columns):
        columns[name] = columns[name][order]
    return TraceOperators(**columns, parent=parents(columns["thread"], columns["start_s"], columns["end_s"]))


def _on_device(columns: Columns) -> Columns:
    device = columns["device"]
    columns["device"] = np.where((device >= 0) & (device <= LARGEST_DEVICE), device, -1).astype(np.int32)
    return columns


def _steps(annotations: TraceMarks, names: Sequence[str]) -> tuple[TraceStep, ...]:
    """Return the steps that the profiler marked, each up to the next one at most."""
    numbers = {index: int(found[1]) for index, name in enumerate(names) if (found := _STEP.fullmatch(name))}
    rows = [row for row, name in enumerate(annotations.name.tolist()) if name in numbers][:MOST_STEPS]
    starts_s, ends_s = annotations.start_s[rows].tolist(), annotations.end_s[rows].tolist()
    next_s = [*starts_s[1:], float("inf")]
    return tuple(
        TraceStep(numbers[int(annotations.name[row])], start_s, min(end_s, following_s))
        for row, start_s, end_s, following_s in zip(rows, starts_s, ends_s, next_s, strict=False)
        if min(end_s, following_s) > start_s
    )


def _wall_s(base_ns: int | None, origin_us: float) -> float | None:
    """Return the wall clock of the first event: a trace of torch up to 2.3 has it in the events themselves."""
    if base_ns is not None:
        return base_ns / 1e9 + origin_us / 1e6
    return origin_us / 1e6 if origin_us > CLOCK_OF_1980_US else None
