"""Where each process of a training stood (`stacks/*.jsonl`, written inside it), put on the run's clock."""

import base64
import binascii
import json
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpu_report import schema
from gpu_report.load.limits import MIB, SHORT, Limits
from gpu_report.load.problems import lines_left_out
from gpu_report.load.process_files import process_files, read_head
from gpu_report.load.run_clock import RunClock
from gpu_report.load.yolo.callback_lines import text, whole
from gpu_report.model import Frame, ProcessStacks, Stack
from gpu_report.run_folder import finite, parse_events

KIND: Final = "stacks"
MOST_PROCESSES: Final = 1024  # 64 GPUs with 16 workers each
MOST_OF_BLOCK: Final = 4 * MIB  # unpacked: 5 s of 20 notes are 10 kB, with all of their names
LONGEST_BLOCK_S: Final = 600.0  # one that a stopped process wrote late is of the time up to then
MOST_STACKS: Final = 10_000  # of a process, which writes 5,000 at most
DEEPEST: Final = 64
ROLES: Final = ("main", "rank ", "worker ")


def load_stacks(
    folder: Path, clock: RunClock, end_t_s: float, limits: Limits = SHORT
) -> tuple[tuple[ProcessStacks, ...], tuple[str, ...]]:
    """Return the stacks of each process, by pid, and what could not be read; `end_t_s` is the end of the recording."""
    found, problems, left = [], [], limits.stack_bytes
    for path in process_files(folder, MOST_PROCESSES):
        pid = whole(int(path.stem)) if path.stem.isdecimal() and len(path.stem) < len("1000000000") else None
        data, cut = read_head(path, left)
        left -= len(data)
        if cut:
            problems.append(f"{schema.STACKS_DIR}/{path.name}: {cut}")
        lines, bad = parse_events(data)
        process = _Process(clock, end_t_s)
        bad += sum(not process.take(line) for line in lines if line["kind"] == KIND)
        if bad:
            problems.append(lines_left_out(f"{schema.STACKS_DIR}/{path.name}", bad))
        stacks = process.stacks_of(pid) if pid is not None else None
        found += [stacks] if stacks is not None else []
    return tuple(found), tuple(problems)


class _Process:
    """The blocks of one process, each of which takes up the numbers of those before it."""

    def __init__(self, clock: RunClock, end_t_s: float) -> None:
        self._clock, self._end_t_s = clock, end_t_s
        self._frames: dict[int, Frame] = {}
        self._stacks: dict[int, Stack] = {}
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._numbers: list[int] = []
        self._role = ""

    def take(self, line: Mapping[str, Any]) -> bool:
        """Add a block; return whether it could be read."""
        content, seconds, role = _unpacked(line.get("notes")), finite(line.get("seconds")), text(line.get("role"))
        if (
            content is None
            or seconds is None
            or not 0 <= seconds <= LONGEST_BLOCK_S
            or not (role or "").startswith(ROLES)
        ):
            return False
        self._role = role or ""
        self._frames.update(_frames(content.get("frames")))
        self._stacks.update(list(self._named(content.get("stacks")))[: MOST_STACKS - len(self._stacks)])
        begin_s = self._clock.t(line["wall_s"], finite(line.get("mono_s")))
        end_s = min(begin_s + seconds, self._end_t_s)
        notes = list(_notes(content.get("at"), begin_s, end_s))
        self._starts += [start for start, _ in notes]
        self._ends += [*(start for start, _ in notes[1:]), *([end_s] if notes else [])]
        self._numbers += [number for _, number in notes]
        return True

    def stacks_of(self, pid: int) -> ProcessStacks | None:
        """Return all that was taken, in order of time; None of nothing."""
        if not self._starts:
            return None
        starts, ends = np.array(self._starts), np.array(self._ends)
        order = np.argsort(starts, kind="stable")
        numbers = np.array(self._numbers, dtype=np.int32)[order]
        return ProcessStacks(pid, self._role, starts[order], ends[order], numbers, self._stacks)

    def _named(self, stacks: object) -> Iterator[tuple[int, Stack]]:
        for stack in stacks if isinstance(stacks, list) else ():
            match stack:
                case [int(number), list(frames)] if number > 0:
                    known = [self._frames.get(frame) if isinstance(frame, int) else None for frame in frames[:DEEPEST]]
                    yield number, tuple(frame for frame in known if frame is not None)


def _frames(frames: object) -> Iterator[tuple[int, Frame]]:
    for frame in frames if isinstance(frames, list) else ():
        match frame:
            case [int(number), str(file), int(line), str(function)]:
                yield number, Frame(text(file) or "", whole(line) or 0, text(function) or "")


def _notes(notes: object, begin_s: float, end_s: float) -> Iterator[tuple[float, int]]:
    """Yield when a thread came to stand somewhere, and the number of its stack, in order of time."""
    last_s = begin_s
    for note in notes if isinstance(notes, list) else ():
        match note:
            case [int(milliseconds), int(number)] if 0 <= number <= np.iinfo(np.int32).max:
                at_s = begin_s + milliseconds / 1000
                if last_s <= at_s <= end_s:
                    last_s = at_s
                    yield at_s, number


def _unpacked(notes: object) -> Mapping[str, Any] | None:
    """Return what a block holds, None where it is none, or far too large."""
    try:
        packed = base64.b64decode(notes if isinstance(notes, str) else "", validate=True)
        unpacker = zlib.decompressobj()
        content = json.loads(unpacker.decompress(packed, MOST_OF_BLOCK)) if packed else None
    except (ValueError, RecursionError, binascii.Error, zlib.error):
        return None
    return content if isinstance(content, dict) else None
