"""What a process did between its calls, by the stacks of the thread that makes them."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import numpy as np

from gpu_report.analyse.context import Context
from gpu_report.analyse.inference import thresholds as th
from gpu_report.analyse.signals.idle_stacks import IdleStacks
from gpu_report.analyse.signals.stack_notes import WAITING_CALLS, location_of
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import CodeLocation, Frame, GapKind, GapPart, Stack

PREDICTOR: Final = re.compile(r"[\\/]ultralytics[\\/]engine[\\/]predictor\.py$")
STREAM: Final = "stream_inference"  # its function in which all of a call lies
LOADERS: Final = re.compile(r"[\\/]ultralytics[\\/]data[\\/]loaders\.py$")
# Functions of C and files that make an image of bytes.
DECODES: Final = frozenset({"imread", "imdecode", "imdecodemulti", "VideoCapture", "grab", "retrieve", "fromfile"})
DECODERS: Final = re.compile(r"[\\/](?:PIL|imageio|av|decord|torchcodec)[\\/]|[\\/]torchvision[\\/]io[\\/]")
# Clients of a network; servers wait in `selectors`, `socketserver` and queues.
NETWORK: Final = re.compile(
    r"[\\/](?:http[\\/]client|ssl|urllib[\\/]request|ftplib)\.py$|[\\/](?:urllib3|requests|httpx|httpcore|botocore|aiohttp[\\/]client\w*"
    r"|redis|pika|paramiko|grpc[\\/]_channel)(?:[\\/]|\.py$)"
)
SERVERS: Final = re.compile(
    r"[\\/](?:selectors|socketserver|queue|threading|asyncio[\\/]\w+|multiprocessing[\\/](?:queues|connection))\.py$"
)
LOADS_MODEL: Final = re.compile(
    r"[\\/]ultralytics[\\/](?:nn[\\/](?:tasks|autobackend|backends[\\/]\w+)|engine[\\/](?:model|predictor))\.py$"
)
BUILDS: Final = frozenset({"_new", "_load", "__init__", "setup_model", "load_checkpoint", "parse_model"})


def noted_thread(context: Context, pid: int) -> IdleStacks | None:
    """Return the notes of a process's main thread, None where there are none, or of several recordings of a pid."""
    mains = [each for each in context.signals.idle_stacks if each.process.pid == pid]
    return mains[0] if len(mains) == 1 else None


def _seconds_by_stack(stacks: IdleStacks, span: Span) -> dict[int, float]:
    """Return how many seconds of a span a process stood in each stack, by its number."""
    rows, share = stacks.within([span])
    seconds = np.bincount(stacks.number[rows], stacks.seconds(rows) * share).tolist()
    return {number: spent for number, spent in enumerate(seconds) if spent > 0}


def gap_parts(stacks: IdleStacks, span: Span, gap_s: float) -> tuple[GapPart, ...]:
    """Return what a process did between its calls within a span, the longest first.

    `gap_s` is how long it had no call then. Notes say what share of that went to what, for they are too few to be
    laid beside calls of milliseconds. Nothing where the thread that is noted makes no calls.
    """
    spent = _seconds_by_stack(stacks, span)
    kinds = {number: kind_between_calls(stacks.process.stacks.get(number, ())) for number in spent}
    between = {number: s for number, s in spent.items() if kinds[number] is not None}
    noted, called = sum(between.values()), sum(spent.values()) - sum(between.values())
    if gap_s <= 0 or noted < th.GAP_NOTES_S or called < th.CALLS_IN_THREAD * max(span[1] - span[0] - gap_s, 0.0):
        return ()
    return tuple(sorted(_parts(stacks, between, kinds, gap_s / noted), key=lambda part: -part.seconds))


def _parts(
    stacks: IdleStacks, between: Mapping[int, float], kinds: Mapping[int, GapKind | None], scale: float
) -> list[GapPart]:
    lines: dict[GapKind, dict[Frame | None, float]] = {}
    for number, seconds in between.items():
        kind = kinds[number]
        if kind is not None:
            of = lines.setdefault(kind, {})
            line = location_of(stacks.process.stacks.get(number, ()))
            of[line] = of.get(line, 0.0) + seconds
    return [_part(kind, of, scale) for kind, of in lines.items()]


def _part(kind: GapKind, lines: Mapping[Frame | None, float], scale: float) -> GapPart:
    total = sum(lines.values())
    line = max(lines, key=lambda each: lines[each])
    where = None
    if line is not None:
        where = CodeLocation("main", line.function, line.file, line.line, lines[line] / total)
    return GapPart(kind, total * scale, where)


@lru_cache(maxsize=8192)
def kind_between_calls(stack: Stack) -> GapKind | None:
    """Return what a thread does in a stack if it is in no call, else None; a stack has its innermost frame first."""
    at = next((at for at, frame in enumerate(stack) if _is_stream(frame)), None)
    if at is not None and not any(LOADERS.search(frame.file) for frame in stack[:at]):
        return "loading the model" if _builds(stack[:at]) else None
    if not stack:
        return None
    if any(LOADERS.search(frame.file) or DECODERS.search(frame.file) for frame in stack) or _called(stack) in DECODES:
        return "decoding"
    if any(NETWORK.search(frame.file) for frame in stack):
        return "network"
    if _called(stack) in WAITING_CALLS or SERVERS.search(stack[0].file):
        return "waiting for calls"
    return "loading the model" if _builds(stack) else "own code"


def lines_within(stacks: IdleStacks, span: Span, function: str) -> tuple[CodeLocation, ...]:
    """Return the lines in which a process stood within a function that its calls have, the most time first."""
    lines: dict[Frame, float] = {}
    for number, spent in _seconds_by_stack(stacks, span).items():
        stack = stacks.process.stacks.get(number, ())
        if any(frame.function == function for frame in stack) and any(map(_is_stream, stack)):
            line = location_of(stack)
            if line is not None:
                lines[line] = lines.get(line, 0.0) + spent
    total = sum(lines.values())
    if total < th.GAP_NOTES_S:
        return ()
    most = sorted(lines.items(), key=lambda each: -each[1])[: th.SHOWN_LINES]
    return tuple(CodeLocation("main", line.function, line.file, line.line, s / total) for line, s in most)


def _is_stream(frame: Frame) -> bool:
    return frame.function == STREAM and PREDICTOR.search(frame.file) is not None


def _builds(stack: Stack) -> bool:
    return any(frame.function in BUILDS and LOADS_MODEL.search(frame.file) for frame in stack)


def _called(stack: Stack) -> str:
    return stack[0].called if stack else ""
