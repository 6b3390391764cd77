"""What slows a process that may know no ultralytics: looked at a few times a minute, by the thread that notes stacks.

Only what is set for a whole process: a debugger or a profiler is one thread's own.
"""

from __future__ import annotations

import threading
from typing import Any

from . import facts, setting_locations
from .lines import report

OF_PROCESS = (
    *("launch_blocking", "no_memory_caching", "cudnn_off", "cudnn_benchmark"),
    *("detect_anomaly", "memory_history", "tracemalloc", "frequent_gc"),
)


class ProcessModes:
    """What was on at each look so far, and which lines of the user's code switched it on."""

    def __init__(self) -> None:
        self._before: list[str] = []
        self._asked: set[str] = set()
        self._found: list[dict[str, Any]] = []

    def now(self) -> dict[str, Any]:
        """Return what is on, as fields of a line; where it is set is known at a later look."""
        on = facts.slow_modes(OF_PROCESS)
        new = [mode for mode in on if mode in self._before and mode not in self._asked]
        self._before = on
        if new:  # twice: no glance of a benchmark's
            self._asked.update(new)
            self._ask(new)
        return {**({"slow_modes": on} if on else {}), **({"set_in": self._found[:]} if self._found else {})}

    def _ask(self, names: list[str]) -> None:
        try:
            threading.Thread(target=self._find, args=(names,), name="gpu-report-modes", daemon=True).start()
        except RuntimeError:  # no more threads, or the interpreter ends: then nobody knows the line
            return

    def _find(self, names: list[str]) -> None:
        try:
            self._found += setting_locations.found(names)
        except Exception as error:  # noqa: BLE001 - the program must go on
            report("process_modes", error)
