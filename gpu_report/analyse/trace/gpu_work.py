"""What a GPU did, in order, each piece joined with the call that launched it and the operator that made that call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gpu_report.model import Trace, TraceOperators

KERNEL: Final = 0
COPY: Final = 1
MEMSET: Final = 2
NONE: Final = -1  # no row
DEEPEST: Final = 200  # operators within each other: those of a YOLO are 10 deep

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class GpuWork:
    """Kernels, copies and memsets of one GPU by start (s); `kind` is KERNEL, COPY or MEMSET.

    `call` is the row of the call that launched a piece, `operator` the row of the innermost operator around that call;
    NONE where not known. `bytes` is -1 where not known.
    """

    device: int
    kind: Ints
    start_s: Floats
    end_s: Floats
    name: Ints
    stream: Ints
    bytes: Ints
    call: Ints
    operator: Ints

    def __len__(self) -> int:
        """Return the number of pieces."""
        return len(self.start_s)

    @property
    def length_s(self) -> Floats:
        """Return how long each piece took."""
        return self.end_s - self.start_s

    @property
    def spans(self) -> Floats:
        """Return rows of (start, end) in seconds."""
        return np.column_stack([self.start_s, self.end_s])

    def where(self, mask: Bools) -> GpuWork:
        """Return some of the pieces."""
        columns = {name: getattr(self, name)[mask] for name in self.__dataclass_fields__ if name != "device"}
        return GpuWork(self.device, **columns)


def gpu_work(trace: Trace, call_operator: Ints) -> GpuWork:
    """Return the work of the GPU that was busy for longest: a process of YOLO trains on one.

    `call_operator` is what `call_operators` returns.
    """
    tables = (trace.kernels, trace.copies, trace.memsets)
    start_s, end_s, name, device, stream, correlation, external_id, sizes = (
        np.concatenate([getattr(table, column) for table in tables])
        for column in ("start_s", "end_s", "name", "device", "stream", "correlation", "external_id", "bytes")
    )
    kind = np.repeat([KERNEL, COPY, MEMSET], [len(table) for table in tables])
    busiest = _busiest(device, end_s - start_s)
    rows = np.flatnonzero(device == busiest)
    rows = rows[np.argsort(start_s[rows], kind="stable")]
    call = rows_of(correlation[rows], trace.calls.correlation)
    own = rows_of(external_id[rows], trace.operators.external_id)
    return GpuWork(
        device=busiest,
        kind=kind[rows],
        start_s=start_s[rows],
        end_s=end_s[rows],
        name=name[rows],
        stream=stream[rows],
        bytes=sizes[rows],
        call=call,
        operator=np.where(own == NONE, take(call_operator, call, NONE), own),
    )


def call_operators(trace: Trace) -> Ints:
    """Return the row of the innermost operator around each call: by its number, else by time on its thread."""
    calls = trace.calls
    own = rows_of(calls.external_id, trace.operators.external_id)
    unknown = np.flatnonzero(own == NONE)
    own[unknown] = innermost_at(trace.operators, calls.thread[unknown], calls.start_s[unknown])
    return own


def rows_of(wanted: Ints, there: Ints) -> Ints:
    """Return the row in which each number is found among `there`, NONE where it is not; 0 and less is no number."""
    order = np.argsort(there, kind="stable")
    at = np.minimum(np.searchsorted(there, wanted, sorter=order), max(len(there) - 1, 0))
    if not len(there):
        return np.full(len(wanted), NONE)
    rows = order[at]
    return np.where((there[rows] == wanted) & (wanted > 0), rows, NONE)


def innermost_at(operators: TraceOperators, thread: Ints, at_s: Floats) -> Ints:
    """Return the row of the innermost operator that runs on a thread at a moment, NONE where there is none."""
    rows = np.full(len(at_s), NONE)
    for each in np.unique(thread).tolist():
        first, last = np.searchsorted(operators.thread, [each, each + 1])
        here = np.flatnonzero(thread == each)
        begun = np.searchsorted(operators.start_s[first:last], at_s[here], side="right") + first - 1
        rows[here] = np.where(begun >= first, begun, NONE)
    over = np.flatnonzero(rows != NONE)
    for _ in range(DEEPEST):
        over = over[operators.end_s[rows[over]] < at_s[over]]
        rows[over] = operators.parent[rows[over]]
        over = over[rows[over] != NONE]
    rows[over] = NONE
    return rows


def take(values: Ints, rows: Ints, missing: int) -> Ints:
    """Return the value in each row, `missing` where the row is NONE."""
    if not len(values):
        return np.full(len(rows), missing)
    return np.where(rows == NONE, missing, values[np.maximum(rows, 0)])


def sums_by_row(rows: Ints, values: Floats, count: int) -> Floats:
    """Return the sum of the values of each of `count` rows; those of NONE are in no sum."""
    known = rows != NONE
    sums: Floats = np.bincount(rows[known], weights=values[known], minlength=count).astype(np.float64)  # int64 of none
    return sums


def _busiest(device: Ints, length_s: Floats) -> int:
    if not len(device):
        return 0
    devices, inverse = np.unique(device, return_inverse=True)
    return int(devices[np.bincount(inverse, weights=length_s).argmax()])
