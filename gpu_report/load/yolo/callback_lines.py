"""The lines of one process of YOLO (`inside/*.jsonl`): read in blocks, put on the run's clock, each as what it says.

A training of a week has half a million of them. What ranks beyond the first say between the beginning and the end of a
run, all of which rank 0 says too, is passed over where it is much. In a job of several nodes each node's first rank is
read whole, and of the others all epochs.
"""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise, zip_longest
from typing import Any, Final, NamedTuple, get_args

import numpy as np

from gpu_report import schema
from gpu_report.load.run_clock import ABSURD_DISTANCE_S, RunClock
from gpu_report.model import VALIDATION_PARTS, InsideEpoch, PhaseName, Progress, Validation
from gpu_report.run_folder import finite, parse_events

PHASE_NAMES: Final = frozenset(get_args(PhaseName))
LARGEST_NUMBER: Final = 1e9  # images, epochs, pids, MiB; what lies beyond is a garbled line
LONGEST_TEXT: Final = 1000
BLOCK_BYTES: Final = 1 << 20
SUM_SLACK: Final = 0.01  # of a validation's length: its parts are rounded, and counted by two clocks
LEFT_OUT: Final = "left out"  # the kind of a line of our own, where lines are passed over
KEPT_BYTES: Final = 1 << 15  # on either side of what a rank beyond the first says seldom: some hundred lines
EPOCH: Final = b'"kind": "epoch"'
SELDOM: Final = re.compile(rb'"kind": "(?!phase|epoch|batches|progress)')


class BegunPhase(NamedTuple):
    """A phase as it begins; `name` is empty where it is none that we know."""

    name: str
    epoch: int | None
    detail: str


class Counted(NamedTuple):
    """What a line says of an epoch: the epoch so far, and how far it is; None where it makes no sense."""

    epoch: InsideEpoch | None
    progress: Progress | None


class CallbackLine(NamedTuple):
    """A line on the run's clock; `content` is a BegunPhase, Counted, a Validation (None where it makes no sense).

    For all other kinds it is the line itself.
    """

    t_s: float
    kind: str
    content: Any


def lines_of(data: bytes, clock: RunClock, end_t_s: float) -> tuple[list[CallbackLine], int]:
    """Return the lines of a file in order of time, and how many could not be read or placed."""
    lines: list[CallbackLine] = []
    bad = 0
    for number, span in enumerate(_spans(data)):
        if number and lines:
            lines.append(CallbackLine(lines[-1].t_s, LEFT_OUT, None))
        for block in _blocks(span):
            placed, bad_here = _placed(block, clock, end_t_s)
            lines += placed
            bad += bad_here
    in_order = all(a.t_s <= b.t_s for a, b in pairwise(lines))
    return lines if in_order else sorted(lines, key=lambda line: line.t_s), bad


def whole(value: object) -> int | None:
    """Return a whole number that may count something, None for anything else."""
    if type(value) is int:
        return value if 0 <= value <= LARGEST_NUMBER else None
    number = finite(value)
    return int(number) if number is not None and 0 <= number <= LARGEST_NUMBER and number == int(number) else None


def seconds(value: object) -> float | None:
    """Return a length of time, None for anything else."""
    number = value if type(value) is float else finite(value)
    return number if number is not None and 0 <= number < ABSURD_DISTANCE_S else None


def text(value: object) -> str | None:
    """Return a text, cut where it is absurdly long."""
    return value[:LONGEST_TEXT] if isinstance(value, str) else None


def _spans(data: bytes) -> list[bytes]:
    """Return the stretches of a file to be read: all of it, but of a rank beyond the first."""
    said = {} if len(data) <= 4 * KEPT_BYTES else _first(data)
    if not whole(said.get("rank")) or _leads(said):
        return [data]
    marks = [0, *(match.start() for match in SELDOM.finditer(data)), len(data)]
    spans: list[tuple[int, int]] = []
    for mark in marks:
        begin = data.rfind(b"\n", 0, max(mark - KEPT_BYTES, 0)) + 1
        end = data.find(b"\n", min(mark + KEPT_BYTES, len(data))) + 1 or len(data)
        if spans and begin <= spans[-1][1]:
            spans[-1] = spans[-1][0], max(end, spans[-1][1])
        else:
            spans.append((begin, end))
    kept = [data[begin:end] for begin, end in spans]
    if not _is_of_several_nodes(said):
        return kept
    between = [_epochs_in(data[end:begin]) for (_, end), (begin, _) in pairwise(spans)]
    return [each for pair in zip_longest(kept, between, fillvalue=b"") for each in pair if each]


def _epochs_in(data: bytes) -> bytes:
    """Return what a rank says of whole epochs: of the ranks of other nodes nobody else says how long they waited."""
    return b"".join(line for line in data.splitlines(keepends=True) if EPOCH in line)


def _first(data: bytes) -> Mapping[str, Any]:
    """Return the first line of a file, by which it is known whose it is."""
    try:
        first = json.loads(data[: data.find(b"\n")])
    except (ValueError, RecursionError):
        return {}
    return first if isinstance(first, dict) else {}


def _leads(said: Mapping[str, Any]) -> bool:
    """Tell whether a rank is the first of a node on which no rank 0 says what all ranks do."""
    return _is_of_several_nodes(said) and whole(said.get("local_rank")) == 0


def _is_of_several_nodes(said: Mapping[str, Any]) -> bool:
    return (whole(said.get("nodes")) or 1) > 1


def _blocks(data: bytes) -> Iterator[bytes]:
    begin = 0
    while begin < len(data):
        end = data.find(b"\n", begin + BLOCK_BYTES) + 1 or len(data)
        yield data[begin:end]
        begin = end


def _placed(block: bytes, clock: RunClock, end_t_s: float) -> tuple[list[CallbackLine], int]:
    """Return the lines of a block, and how many could not be read or placed."""
    read, bad = parse_events(block)
    walls = np.array([line["wall_s"] for line in read], dtype=float)
    monos = np.array([np.nan if line["mono_s"] is None else line["mono_s"] for line in read], dtype=float)
    times = clock.times(walls, monos).tolist()
    first, last = -ABSURD_DISTANCE_S, end_t_s + ABSURD_DISTANCE_S
    placed = [
        _line(line, t_s)
        for line, t_s in zip(read, times, strict=True)
        if first < t_s < last and line["kind"] in schema.INSIDE_KINDS
    ]
    return placed, bad + len(read) - len(placed)


def _line(line: Mapping[str, Any], t_s: float) -> CallbackLine:
    kind = line["kind"]
    if kind == "phase":
        name = line.get("name")
        known = name if isinstance(name, str) and name in PHASE_NAMES else ""
        return CallbackLine(t_s, kind, BegunPhase(known, whole(line.get("epoch")), text(line.get("detail")) or ""))
    if kind in {"epoch", "batches"}:
        return CallbackLine(t_s, kind, Counted(_epoch(line, t_s), _progress(line, t_s) if kind == "batches" else None))
    if kind == "progress":
        return CallbackLine(t_s, kind, Counted(None, _progress(line, t_s)))
    return CallbackLine(t_s, kind, _validation(line, t_s) if kind == "validation" else line)


def _progress(line: Mapping[str, Any], t_s: float) -> Progress | None:
    done, wait_s = whole(line.get("batches")), seconds(line.get("data_wait_s"))
    if done is None or wait_s is None:
        return None
    counts = (whole(line.get(name)) for name in ("hooks", "callbacks"))
    return Progress(t_s, done, wait_s, mib(line.get("allocated_mib")), *counts)


def mib(value: object) -> float | None:
    """Return an amount of memory that may be one."""
    number = finite(value)
    return number if number is not None and 0 <= number <= LARGEST_NUMBER else None


def _validation(line: Mapping[str, Any], t_s: float) -> Validation | None:
    """Return what a line says of a validation, None where it makes no sense: its parts are no longer than itself."""
    took_s, batches = _took_s(line), whole(line.get("batches"))
    told = {part: seconds(line.get(f"{part}_s")) for part in VALIDATION_PARTS}
    parts = {part: each for part, each in told.items() if each is not None}
    if took_s is None or batches is None or sum(parts.values()) > (1 + SUM_SLACK) * took_s + SUM_SLACK:
        return None
    return Validation(
        start_t_s=t_s - took_s,
        end_t_s=t_s,
        epoch=whole(line.get("epoch")),
        images=whole(line.get("images")),
        batches=batches,
        seconds=parts,
        first_wait_s=min(seconds(line.get("first_wait_s")) or 0.0, parts.get("data", 0.0)),
        batch=whole(line.get("batch")),
        workers=whole(line.get("workers")),
    )


def _took_s(line: Mapping[str, Any]) -> float | None:
    """Return how long ago what a line tells of began, None where that makes no sense."""
    begun = finite(line.get("start_mono_s"))
    return None if begun is None or line["mono_s"] is None else seconds(line["mono_s"] - begun)


def _epoch(line: Mapping[str, Any], t_s: float) -> InsideEpoch | None:
    """Return what a line says of an epoch, None where it makes no sense."""
    epoch, attempt, batches = whole(line.get("epoch")), whole(line.get("attempt")), whole(line.get("batches"))
    wait, first = seconds(line.get("data_wait_s")), seconds(line.get("first_wait_s"))
    longest, took_s = seconds(line.get("longest_wait_s")), _took_s(line)
    if not epoch or not attempt or batches is None or took_s is None:
        return None
    if wait is None or first is None or longest is None:
        return None
    return InsideEpoch(
        epoch=epoch,
        attempt=attempt,
        start_t_s=t_s - took_s,
        end_t_s=t_s if line["kind"] == "epoch" else None,
        images=whole(line.get("images")),
        batches=batches,
        data_wait_s=wait,
        first_wait_s=first,
        longest_wait_s=longest,
        loss=finite(line.get("loss")),
        lr=finite(line.get("lr")),
    )
