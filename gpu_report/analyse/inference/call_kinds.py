"""What a thread does in a call besides the model's own parts, by its stack: your code, tracking, drawing, saving."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal

from gpu_report.analyse.inference.gap_kinds import is_stream
from gpu_report.analyse.signals.code.stack_kinds import kind_of, location_of
from gpu_report.model import Frame, ProcessStacks, Stack

CallKind = Literal["own code", "tracking", "cutting out boxes", "writing labels", "drawing and saving"]
FORWARD: Final = "forward"  # of the user's own layers: part of the model
TRACKERS: Final = re.compile(r"[\\/]ultralytics[\\/]trackers[\\/]")
RESULTS: Final = re.compile(r"[\\/]ultralytics[\\/](?:engine[\\/](?:predictor|results)|utils[\\/]plotting)\.py$")
# What ultralytics' predictor calls for an argument of its own (engine/predictor.py, write_results), within what draws.
OF_ARGUMENTS: Final[Mapping[str, CallKind]] = {"save_crop": "cutting out boxes", "save_txt": "writing labels"}
SAVES: Final = frozenset(
    {"write_results", "save_predicted_images", "plot", "show", "save", "save_txt", "save_crop", "result", "verbose"}
)


@lru_cache(maxsize=8192)
def kind_in_call(stack: Stack) -> CallKind | None:
    """Return what a thread does in a stack within a call; None outside one, and in the model's own parts."""
    inner = _within(stack)
    if any(_is_own(frame) for frame in inner):
        return "own code"
    if any(TRACKERS.search(frame.file) for frame in inner):
        return "tracking"
    saves = [frame.function for frame in inner if frame.function in SAVES and RESULTS.search(frame.file)]
    of_argument = next((OF_ARGUMENTS[function] for function in saves if function in OF_ARGUMENTS), None)
    return of_argument or ("drawing and saving" if saves else None)


def lines_in_calls(process: ProcessStacks, seconds: Mapping[int, float]) -> dict[CallKind, dict[Frame, float]]:
    """Return how long a thread stood in each line within its calls, by kind; `seconds` by the number of a stack."""
    lines: dict[CallKind, dict[Frame, float]] = {}
    for number, spent in seconds.items():
        stack = process.stacks.get(number, ())
        kind = kind_in_call(stack)
        line = None if kind is None else _line(_within(stack))
        if kind is not None and line is not None:
            of = lines.setdefault(kind, {})
            of[line] = of.get(line, 0.0) + spent
    return lines


def _within(stack: Stack) -> Stack:
    """Return the frames of a stack that lie within a call."""
    return stack[: next((at for at, frame in enumerate(stack) if is_stream(frame)), 0)]


def _line(inner: Stack) -> Frame | None:
    """Return the user's innermost line, else ultralytics' own."""
    own = next((frame for frame in inner if _is_own(frame)), None)
    return location_of(inner) if own is None else own._replace(called="")


def _is_own(frame: Frame) -> bool:
    return kind_of(frame) == "own" and frame.function != FORWARD
