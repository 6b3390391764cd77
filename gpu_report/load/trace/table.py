"""A table of events that grows by a batch of decoded ones at a time."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gpu_report.load.trace.columns import COLUMNS, NO_ARGS, ON_CPU
from gpu_report.load.trace.limits import LARGEST_US, LONGEST_US
from gpu_report.load.trace.names import Names, Threads
from gpu_report.release_memory import give_back_memory

Array = npt.NDArray[Any]
DTYPES: Final = {"ts": np.float64, "dur": np.float64, "name": np.int32, "thread": np.int32}  # others: int64
MANY_ROWS: Final = 50_000  # a column of which takes 0.4 MiB


class EventTable:
    """Events of one kind by column: `ts` and `dur` (µs), `name`, on the CPU `thread`, and what `COLUMNS` has."""

    def __init__(self, kind: str, names: Names, threads: Threads) -> None:
        """Begin with no rows; names and threads are those of all tables."""
        self._columns, self._names, self._threads = COLUMNS[kind], names, threads
        self._on_cpu = kind in ON_CPU
        common = ("ts", "dur", "name", "thread") if self._on_cpu else ("ts", "dur", "name")
        self._chunks: dict[str, list[Array]] = {each: [] for each in (*common, *self._columns)}
        self.rows = self.bad = 0

    def add(self, events: Sequence[Any]) -> None:
        """Add events; one without a start and a duration that a clock can show is counted as `bad`."""
        ts, dur = np.array([e.ts for e in events]), np.array([e.dur for e in events])
        fine = (np.abs(ts) < LARGEST_US) & (dur >= 0) & (dur < LONGEST_US)  # no comparison with NaN is true
        if not fine.all():
            self.bad += int((~fine).sum())
            events, ts, dur = [e for e, ok in zip(events, fine.tolist(), strict=True) if ok], ts[fine], dur[fine]
        self.rows += len(events)
        names, threads = self._names, self._threads
        self._append("ts", ts)
        self._append("dur", dur)
        self._append("name", np.array([names[e.name] for e in events], dtype=np.int32))
        if self._on_cpu:
            self._append("thread", np.array([threads[e.pid, e.tid] for e in events], dtype=np.int32))
        args = [e.args or NO_ARGS for e in events]
        for column, values in self._columns.items():
            self._append(column, np.array(values(events, args), dtype=np.int64))

    def middle_us(self) -> float:
        """Return the median start (µs), NaN without rows."""
        return float(np.median(np.concatenate(self._chunks["ts"]))) if self.rows else float("nan")

    def take(self) -> dict[str, Array]:
        """Return the columns, whole; the table is empty then. One at a time, for all at once would be there twice."""
        whole = {}
        for column in list(self._chunks):
            chunks = self._chunks.pop(column)
            whole[column] = np.concatenate(chunks) if chunks else np.empty(0, dtype=DTYPES.get(column, np.int64))
            del chunks
            if self.rows > MANY_ROWS:
                give_back_memory()
        return whole

    def _append(self, column: str, values: Array) -> None:
        self._chunks[column].append(values)
