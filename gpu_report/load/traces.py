"""The traces of PyTorch's profiler in a run folder: of windows that the training reported, and imported ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.model import ProfilerWindow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gpu_report.load.run_clock import RunClock
    from gpu_report.model import InsideRun, Trace

MOST: Final = 8  # each takes a second to read

Loaded = tuple[dict[str, "Trace"], tuple[ProfilerWindow, ...], list[str]]


def load_traces(folder: Path, inside: Iterable[InsideRun], clock: RunClock, duration_s: float) -> Loaded:
    """Return the traces by the names of their windows, the windows of imported ones, and what could not be read."""
    windows = list(dict.fromkeys(window.name for run in inside for window in run.profiled if not window.failed))
    imported = sorted(path.name.partition(".")[0] for path in folder.glob(f"{schema.IMPORTED_TRACE}-*.json.gz"))
    traces: dict[str, Trace] = {}
    problems: list[str] = []
    for name in (*windows, *imported)[:MOST]:
        problems += _load(folder / f"{name}.json.gz", name, traces)
    if len(windows) + len(imported) > MOST:
        problems.append(f"{schema.PROFILE_DIR}/ has more than {MOST} traces: the first {MOST} are read")
    placed = [_placed(name, traces[name], clock, duration_s) for name in imported if name in traces]
    if None in placed:
        problems.append("an imported trace is not of the time of this run, or does not say when it was made")
    return traces, tuple(window for window in placed if window is not None), problems


def _load(path: Path, name: str, traces: dict[str, Trace]) -> list[str]:
    """Load one trace, and return what could not be read of it."""
    from gpu_report.load.trace import load_trace  # noqa: PLC0415 - most runs have none, and it takes 20 ms

    if not path.is_file():
        return [f"{schema.PROFILE_DIR}/{path.name} is missing: the recorder ended before it was packed"]
    try:
        traces[name] = load_trace(path)
    except InputError as error:
        return [str(error)]
    return [f"{schema.PROFILE_DIR}/{path.name}: {each}" for each in traces[name].problems]


def _placed(name: str, trace: Trace, clock: RunClock, duration_s: float) -> ProfilerWindow | None:
    """Return the window of an imported trace by its own clock, None where it is not of this run."""
    if trace.start_wall_s is None:
        return None
    start_t_s = trace.start_wall_s - clock.start_wall_s
    end_t_s = start_t_s + trace.duration_s
    if end_t_s < 0 or start_t_s > duration_s:
        return None
    return ProfilerWindow(name, "train", start_t_s, end_t_s, start_t_s, None, len(trace.steps), "imported")
