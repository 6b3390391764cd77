"""Where the CPU waited for the GPU."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

import numpy as np

from gpu_report.analyse.trace.families import NODE
from gpu_report.analyse.trace.gpu_work import COPY, NONE, Bools, Floats, Ints, take
from gpu_report.analyse.trace.name_masks import names_that
from gpu_report.analyse.trace.operator_tree import outermost, within_marks
from gpu_report.analyse.trace.window import TraceWindow
from gpu_report.model import CopyKind, SyncPoint, Trace, TraceEvents

WAITS: Final = r"^(?:cuda|cu|hip)(?:Stream|Device|Event|Ctx)Synchronize"
WHOLE_DEVICE: Final = r"^(?:cuda|hip)DeviceSynchronize|^cuCtxSynchronize"
ATEN: Final = r"^(?:aten|torchvision)::"
DATA_LOADER: Final = r"^enumerate\(DataLoader\)#"
BLOCKING: Final = CopyKind("DtoH", "pageable")  # the driver returns when such a copy is done


@dataclass(frozen=True, eq=False)
class SyncCalls:
    """The rows of the calls that wait for the GPU in used steps, and of the outermost ATen operator around each."""

    rows: Ints
    around: Ints


def sync_calls(window: TraceWindow) -> SyncCalls:
    """Return the calls that wait for the GPU.

    Waits of the data loader do not count, nor does the profiler's own: one for the whole device, by no operator.
    """
    rows = np.flatnonzero(_waits(window))
    aten = names_that(window.trace, ATEN)[window.trace.operators.name]  # `item` says more than what it calls
    return SyncCalls(rows, take(outermost(window.trace.operators, aten), window.call_operator[rows], NONE))


def sync_points(window: TraceWindow, waits: SyncCalls) -> tuple[SyncPoint, ...]:
    """Return the waits in used steps by operator and call, longest first.

    An operator that waits in several calls (a copy to pageable memory, and the synchronisation after it) waits once.
    """
    calls, rows = window.trace.calls, waits.rows
    operator = window.call_operator[rows]
    instance = np.where(operator == NONE, -2 - rows, operator)  # a call by no operator is a wait of its own
    found: defaultdict[tuple[str, str], _SyncWaits] = defaultdict(_SyncWaits)
    kinds: dict[int, tuple[str, str]] = {}
    for row, outer, at in zip(rows.tolist(), waits.around.tolist(), instance.tolist(), strict=True):
        kind = kinds.setdefault(at, (_operator_name(window.trace, outer), window.trace.names[calls.name[row]]))
        found[kind].add(row, outer, at)
    points = (each.point(window.trace, *kind) for kind, each in found.items())
    return tuple(sorted(points, key=lambda point: -point.wait_s))


def sync_spans(window: TraceWindow, waits: SyncCalls) -> Floats:
    """Return when the training waited for the GPU: rows of start and end (s) of operators around the calls, in order.

    A call by no operator is its own. Those of other threads than the one that makes the steps, and autograd's, are left
    out: while a thread of the user's waits, the training goes on.
    """
    calls, operators = window.trace.calls, window.trace.operators
    of_steps = np.isin(calls.thread[waits.rows], _threads_of_steps(window))
    rows, around = waits.rows[of_steps], waits.around[of_steps]
    starts_s = np.where(around == NONE, calls.start_s[rows], take(operators.start_s, around, 0))
    ends_s = np.where(around == NONE, calls.end_s[rows], take(operators.end_s, around, 0))
    spans = np.unique(np.column_stack([starts_s, ends_s]), axis=0)
    return spans.reshape(-1, 2)


def _threads_of_steps(window: TraceWindow) -> Ints:
    trace = window.trace
    steps = names_that(trace, r"^ProfilerStep#")[trace.annotations.name]
    nodes = names_that(trace, NODE)[trace.operators.name]
    return np.union1d(trace.annotations.thread[steps], trace.operators.thread[nodes])


class _SyncWaits:
    """Waits of one kind: the rows of their calls, of the outermost operators around them, and their instances."""

    def __init__(self) -> None:
        self._calls: list[int] = []
        self._operators: set[int] = set()
        self._instances: set[int] = set()

    def add(self, call: int, operator: int, instance: int) -> None:
        """Add a call; several of an instance are one wait."""
        self._calls.append(call)
        self._instances.add(instance)
        if operator != NONE:
            self._operators.add(operator)

    def point(self, trace: Trace, operator: str, call: str) -> SyncPoint:
        """Return them in numbers."""
        wait_s = _seconds(trace.calls, self._calls)
        around_s = _seconds(trace.operators, sorted(self._operators)) if self._operators else wait_s
        return SyncPoint(operator, call, len(self._instances), wait_s, around_s)


def _seconds(table: TraceEvents, rows: list[int]) -> float:
    return float((table.end_s[rows] - table.start_s[rows]).sum())


def _operator_name(trace: Trace, row: int) -> str:
    return trace.names[trace.operators.name[row]] if row != NONE else ""


def _waits(window: TraceWindow) -> Bools:
    """Return which calls are waits for the GPU in a used step."""
    trace, calls = window.trace, window.trace.calls
    whole_device = names_that(trace, WHOLE_DEVICE)[calls.name] & (window.call_operator == NONE)
    waits: Bools = names_that(trace, WAITS)[calls.name] & ~whole_device
    waits[_blocking_copies(window)] = True
    waits &= window.in_used(calls.start_s)
    loads = names_that(trace, DATA_LOADER)[trace.annotations.name]
    waits &= ~within_marks(trace.annotations, loads, calls.thread, calls.start_s)
    return waits


def _blocking_copies(window: TraceWindow) -> Ints:
    """Return the rows of the calls that copy to pageable memory."""
    kinds = [name for name, kind in window.trace.copy_kinds.items() if kind == BLOCKING]
    work = window.work
    blocking: Ints = work.call[(work.kind == COPY) & np.isin(work.name, kinds) & (work.call != NONE)]
    return blocking
