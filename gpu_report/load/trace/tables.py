"""All events of a trace that we use, by kind, while it is read."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from gpu_report.load.trace.columns import COLUMNS
from gpu_report.load.trace.limits import MOST_ROWS
from gpu_report.load.trace.names import Names, Threads
from gpu_report.load.trace.table import EventTable

COMPLETE: Final = "X"  # the phase of an event that has a duration

# The second name of each is that of torch up to 1.12. What the GPU's twin of an annotation spans (gpu_user_annotation)
# is no work of its own.
KINDS: Final = {
    "cpu_op": "operators",
    "Operator": "operators",
    "cuda_runtime": "calls",
    "Runtime": "calls",
    "cuda_driver": "calls",
    "kernel": "kernels",
    "Kernel": "kernels",
    "gpu_memcpy": "copies",
    "Memcpy": "copies",
    "gpu_memset": "memsets",
    "Memset": "memsets",
    "cuda_sync": "syncs",
    "user_annotation": "annotations",
    "python_function": "python",
    "Python": "python",
}


class Tables:
    """A table for each kind of event, with the names and threads that all of them share."""

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        """Begin with no events; more than `most_rows` are too many."""
        self.names, self.threads = Names(), Threads()
        self.of = {kind: EventTable(kind, self.names, self.threads) for kind in COLUMNS}
        self._most_rows = most_rows

    def add(self, events: Iterable[Any]) -> None:
        """Add a batch of decoded events; those of kinds that we do not use are left out."""
        by_category: defaultdict[str, list[Any]] = defaultdict(list)
        for event in events:
            if event.ph == COMPLETE:
                by_category[event.cat].append(event)
        for category, rows in by_category.items():
            if (kind := KINDS.get(category)) is not None:
                self.of[kind].add(rows)

    @property
    def full(self) -> bool:
        """Tell whether there are too many events."""
        return sum(table.rows for table in self.of.values()) >= self._most_rows

    @property
    def bad(self) -> int:
        """Return how many events had no time that a clock can show."""
        return sum(table.bad for table in self.of.values())

    def middle_us(self) -> float:
        """Return a moment in the middle of the trace (µs), 0 without events."""
        middles = [table.middle_us() for table in self.of.values() if table.rows]
        return float(np.median(middles)) if middles else 0.0
