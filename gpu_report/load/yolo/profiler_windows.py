"""The windows in which PyTorch's profiler ran because of us, as the training reported each at its end."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from gpu_report.load.limits import MIB
from gpu_report.load.stack_tables import StackTables, numbers, unpacked
from gpu_report.load.yolo.callback_lines import CallbackLine, text, whole
from gpu_report.model import ProfilerWindow, WindowLines
from gpu_report.run_folder import finite

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST: Final = 64  # of one training
MOST_LINES: Final = MIB  # unpacked; of eight steps it is 40 kB
CUTS: Final = {"time", "events"}
MOST_NOTES: Final = 12_000  # of where the training stood in a window
MOST_BREAKS: Final = 8
LONGEST_S: Final = 600.0  # with its export; a minute is what a window may take
PHASES: Final = {"train", "validation"}
FAILURES: Final = {"no_space", "other_profiler", "too_short", "interrupted", "export", "error"}
NAME: Final = re.compile(r"\d{1,10}-\d{1,6}")  # it becomes the name of a file


def profiler_windows(lines: Sequence[CallbackLine]) -> tuple[ProfilerWindow, ...]:
    """Return the windows of a process in order; what makes no sense is left out."""
    said = [(line.t_s, line.content) for line in lines if line.kind == "profile"]
    windows = [_window(t_s, content) for t_s, content in said[:MOST]]
    return tuple(window for window in windows if window is not None)


def _window(end_t_s: float, said: Mapping[str, Any]) -> ProfilerWindow | None:
    name, phase, failed = (text(said.get(key)) or "" for key in ("name", "phase", "failed"))
    begin_s = _before_end(said, "begin_mono_s")
    if phase not in PHASES or begin_s is None or not NAME.fullmatch(name):
        return None
    kept_s = _before_end(said, "kept_mono_s")
    return ProfilerWindow(
        name=name,
        phase="train" if phase == "train" else "validation",
        start_t_s=end_t_s - begin_s,
        end_t_s=end_t_s,
        kept_t_s=None if kept_s is None else end_t_s - kept_s,
        epoch=whole(said.get("epoch")),
        steps=whole(said.get("kept_steps")) or 0,
        reason=text(said.get("reason")) or "",
        full=said.get("full") is True,
        failed="error" if failed and failed not in FAILURES else failed,
        graphs_before=whole(said.get("graphs_before")),
        graphs=whole(said.get("graphs")),
        breaks=tuple(filter(None, map(text, _list(said.get("breaks"))[:MOST_BREAKS]))),
        cut=cut if (cut := text(said.get("cut")) or "") in CUTS else "",
        lines=None if failed else _lines(end_t_s, said),
    )


def _lines(end_t_s: float, said: Mapping[str, Any]) -> WindowLines | None:
    """Return where the training stood, None where nothing was noted or nothing can be read."""
    content, begin_s, end_s = (
        unpacked(said.get("lines"), MOST_LINES),
        finite(said.get("lines_mono_s")),
        finite(said.get("mono_s")),
    )
    starts = [finite(each) for each in _list(said.get("starts_mono_s"))]
    if content is None or begin_s is None or end_s is None or not starts or None in starts:
        return None
    tables = StackTables()
    tables.take(content)
    steps_us, stood = numbers(content.get("at_us")), numbers(content.get("stood"))
    count = min(len(steps_us), len(stood), MOST_NOTES)
    return WindowLines(
        at_s=end_t_s - end_s + begin_s + 1e-6 * np.cumsum(steps_us[:count], dtype=np.float64),
        number=np.array(stood[:count], dtype=np.int64),
        stack=tables.stack,
        step_starts_s=end_t_s - end_s + np.array(starts, dtype=np.float64),
    )


def _list(told: object) -> list[Any]:
    return told[:MOST_NOTES] if isinstance(told, list) else []


def _before_end(said: Mapping[str, Any], name: str) -> float | None:
    """Return how long before the line itself a moment was, None where it makes no sense."""
    moment, end = finite(said.get(name)), finite(said.get("mono_s"))
    lasted_s = None if moment is None or end is None else end - moment
    return lasted_s if lasted_s is not None and 0 <= lasted_s <= LONGEST_S else None
