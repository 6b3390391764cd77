"""The traces of PyTorch's profiler in a run folder, each of a window that the training reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.load.trace import load_trace

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gpu_report.model import InsideRun, Trace

MOST: Final = 8  # each takes a second to read


def load_traces(folder: Path, inside: Iterable[InsideRun]) -> tuple[dict[str, Trace], list[str]]:
    """Return the traces by the names of their windows, and what could not be read."""
    windows = [window for run in inside for window in run.profiled if not window.failed]
    traces: dict[str, Trace] = {}
    problems: list[str] = []
    for window in windows[:MOST]:
        path = folder / f"{window.name}.json.gz"
        if not path.is_file():
            problems.append(f"{schema.PROFILE_DIR}/{path.name} is missing: the recorder ended before it was packed")
            continue
        try:
            traces[window.name] = load_trace(path)
        except InputError as error:
            problems.append(str(error))
        else:
            problems += [f"{schema.PROFILE_DIR}/{path.name}: {each}" for each in traces[window.name].problems]
    if len(windows) > MOST:
        problems.append(f"{schema.PROFILE_DIR}/ has {len(windows)} traces: the first {MOST} are read")
    return traces, problems
