"""What py-spy saw of processes that note no lines themselves (`stacks/dumps.jsonl`), put on the run's clock."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpu_report import schema
from gpu_report.load.limits import SHORT, Limits
from gpu_report.load.problems import lines_left_out
from gpu_report.load.process_files import read_head
from gpu_report.load.run_clock import RunClock
from gpu_report.load.stack_tables import DEEPEST
from gpu_report.load.stacks import MOST_PROCESSES
from gpu_report.load.yolo.callback_lines import text, whole
from gpu_report.model import Frame, ProcessDumps, Stack
from gpu_report.run_folder import finite, parse_events

MOST_STACKS: Final = 10_000  # a recorder writes 2,000 out, and another one may go on in its folder
ROLES: Final = ("main", "worker")


def load_dumps(
    folder: Path, clock: RunClock, end_t_s: float, limits: Limits = SHORT
) -> tuple[tuple[ProcessDumps, ...], tuple[str, ...]]:
    """Return the dumps of each process, by pid, and what could not be read; `end_t_s` is the end of the recording."""
    data, cut = read_head(folder / schema.DUMPS_JSONL, limits.stack_bytes) if _is_there(folder) else (b"", "")
    lines, bad = parse_events(data)
    reader = _Reader(end_t_s)
    bad += sum(not reader.take(line, clock.t(line["wall_s"], finite(line.get("mono_s")))) for line in lines)
    name = f"{schema.STACKS_DIR}/{schema.DUMPS_JSONL}"
    problems = (*([f"{name}: {cut}"] if cut else ()), *([lines_left_out(name, bad)] if bad else ()))
    return reader.processes, problems


def _is_there(folder: Path) -> bool:
    try:
        return (folder / schema.DUMPS_JSONL).exists()
    except OSError:
        return False


class _Reader:
    """The dumps of each process, and the stacks that were written out so far."""

    def __init__(self, end_t_s: float) -> None:
        self._end_t_s = end_t_s
        self._known: dict[int, Stack] = {}
        self._taken: dict[tuple[int, str, int | None], list[tuple[float, Stack]]] = {}

    def take(self, line: Mapping[str, Any], at_s: float) -> bool:
        """Add a line; return whether it could be read."""
        pid, role, number = whole(line.get("pid")), text(line.get("role")), whole(line.get("stack"))
        if line["kind"] != schema.DUMP_KIND or pid is None or role not in ROLES or number is None:
            return False
        if "frames" in line and len(self._known) < MOST_STACKS:
            self._known[number] = _stack(line["frames"])
        who = pid, role, whole(line.get("parent"))
        if 0 <= at_s <= self._end_t_s and (who in self._taken or len(self._taken) < MOST_PROCESSES):
            self._taken.setdefault(who, []).append((at_s, self._known.get(number, ())))
        return True

    @property
    def processes(self) -> tuple[ProcessDumps, ...]:
        """Return the dumps of each process in order of time, main processes first."""
        order = sorted(self._taken, key=lambda who: (who[1], who[0]))
        return tuple(_process(*who, self._taken[who]) for who in order)


def _process(pid: int, role: str, parent: int | None, taken: list[tuple[float, Stack]]) -> ProcessDumps:
    in_order = sorted(taken, key=lambda each: each[0])
    at_s = np.array([at_s for at_s, _ in in_order], dtype=np.float64)
    return ProcessDumps(pid, role, at_s, tuple(stack for _, stack in in_order), parent)


def _stack(said: object) -> Stack:
    frames = said[:DEEPEST] if isinstance(said, list) else []
    return tuple(frame for each in frames if (frame := _frame(each)) is not None)


def _frame(said: object) -> Frame | None:
    match said:
        case [str(file), int(line), str(function)]:
            return Frame(text(file) or "", whole(line) or 0, text(function) or "")
    return None
