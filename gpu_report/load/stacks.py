"""Where each process of a training stood (`stacks/*.jsonl`, written inside it), put on the run's clock."""

import base64
import binascii
import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside.notes import LETTERS, MORE
from gpu_report.load.limits import MIB, SHORT, Limits
from gpu_report.load.problems import lines_left_out
from gpu_report.load.process_files import process_files, read_head
from gpu_report.load.run_clock import RunClock
from gpu_report.load.yolo.callback_lines import text, whole
from gpu_report.model import Frame, LockHeld, ProcessStacks, Stack, ThreadStacks
from gpu_report.run_folder import finite, parse_events

KIND: Final = "stacks"
MOST_PROCESSES: Final = 1024  # 64 GPUs with 16 workers each
MOST_OF_BLOCK: Final = 4 * MIB  # unpacked: 20 s while everything is imported are 150 kB
LONGEST_BLOCK_S: Final = 600.0  # one that a stopped process wrote late is of the time up to then
MOST_NUMBER: Final = 100_000  # of a table: a process writes 50,000 at most
MOST_STEP_MS: Final = 60_000
MOST_THREAD: Final = 64  # a process notes 16 at a time
DEEPEST: Final = 64
GONE: Final = -1  # in the place of a stack's number
ROLES: Final = ("main", "rank ", "worker ")

Spans = list[tuple[float, float, int]]  # start, end, number of a stack


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


class _Names:
    """The tables of one process, each of which goes on where the block before left it."""

    def __init__(self) -> None:
        self._files: dict[int, str] = {}
        self._frames: dict[int, Frame] = {}
        self._stacks: dict[int, tuple[int, Frame | None]] = {}
        self._names: dict[int, str] = {}

    def take(self, content: Mapping[str, Any]) -> None:
        """Add what a block names."""
        self._files.update(_table(content.get("files"), text))
        self._names.update(_table(content.get("names"), text))
        self._frames.update(_table(content.get("frames"), self._frame))
        for number, (distance, frame) in _table(content.get("stacks"), _pair):
            self._stacks[number] = (number - distance if distance else 0, self._frames.get(frame))

    def stack(self, number: int) -> Stack:
        """Return a stack, innermost frame first; what lies outside of one has a lower number."""
        frames: list[Frame] = []
        while number > 0 and number in self._stacks and len(frames) < DEEPEST:
            number, frame = self._stacks[number]
            frames += [frame] if frame is not None else []
        return tuple(frames)

    def thread(self, number: int) -> str:
        """Return the name of a thread."""
        return self._names.get(number, "")

    def _frame(self, told: object) -> Frame | None:
        match told:
            case [int(file), int(line), str(function), *calls] if file in self._files:
                called = (text(calls[0]) or "") if len(calls) == 1 else ""
                return Frame(self._files[file], whole(line) or 0, text(function) or "", called)
        return None


class _Process:
    """The blocks of one process, and of those that had its pid before."""

    def __init__(self, clock: RunClock, end_t_s: float) -> None:
        self._clock, self._end_t_s = clock, end_t_s
        self._known = _Names()
        self._numbers: dict[int, int] = {}  # of stacks as they are written: with another process they begin anew
        self._stacks: dict[int, Stack] = {}
        self._spans: Spans = []
        self._threads: dict[str, Spans] = {}
        self._held: list[LockHeld] = []
        self._role = ""

    def take(self, line: Mapping[str, Any]) -> bool:
        """Add a block; return whether it could be read."""
        content, seconds, role = _unpacked(line.get("notes")), finite(line.get("seconds")), text(line.get("role"))
        if content is None or seconds is None or not 0 <= seconds <= LONGEST_BLOCK_S:
            return False
        step_s = _step_s(content.get("step_ms"))
        if step_s is None or role is None or not role.startswith(ROLES):
            return False
        self._role = role
        if _first(content.get("files")) == 0:
            self._known, self._numbers = _Names(), {}
        self._known.take(content)
        begin_s = self._clock.t(line["wall_s"], finite(line.get("mono_s")))
        end_s = min(begin_s + seconds, self._end_t_s)
        self._spans += _spans([(at, self._number(stack)) for at, stack in _notes(content, begin_s, step_s)], end_s)
        for name, notes in _of_threads(content.get("threads"), begin_s, step_s):
            known = self._threads.setdefault(self._known.thread(name), [])
            known += _spans([(at, self._number(stack)) for at, stack in notes], end_s)
        self._held += _held(content.get("held"), begin_s, step_s, end_s)
        return True

    def stacks_of(self, pid: int) -> ProcessStacks | None:
        """Return all that was taken, in order of time; None of nothing."""
        if not self._spans:
            return None
        threads = (ThreadStacks(name, *_columns(spans)) for name, spans in sorted(self._threads.items()) if spans)
        held = sorted(self._held, key=lambda held: held.start_t_s)
        return ProcessStacks(pid, self._role, *_columns(self._spans), self._stacks, tuple(threads), tuple(held))

    def _number(self, written: int) -> int:
        """Return the number under which a stack is told: 0 where nothing is known of it, GONE of a thread that went."""
        if written == GONE:
            return GONE
        if written not in self._numbers:
            stack = self._known.stack(written)
            self._numbers[written] = len(self._stacks) + 1 if stack else 0
            if stack:
                self._stacks[len(self._stacks) + 1] = stack
        return self._numbers[written]


def _columns(spans: Spans) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    spans = sorted(spans, key=lambda span: span[0])
    starts, ends, numbers = zip(*spans, strict=True)
    return np.array(starts), np.array(ends), np.array(numbers, dtype=np.int32)


def _spans(notes: list[tuple[float, int]], end_s: float) -> Spans:
    """Return from when to when a thread stood in each stack."""
    ends = [*(at for at, _ in notes[1:]), end_s]
    pairs = zip(notes, ends, strict=False)
    return [(at, min(end, end_s), number) for (at, number), end in pairs if number >= 0 and at < min(end, end_s)]


def _table(told: object, read: Callable[[object], Any]) -> Iterator[tuple[int, Any]]:
    """Yield the entries of a table with their numbers: it is told as the number of its first, and all of them."""
    first = _first(told)
    for number, entry in enumerate(told[1:] if isinstance(told, list) else (), first if first is not None else 0):
        value = read(entry) if first is not None and number <= MOST_NUMBER else None
        if value is not None:
            yield number, value


def _first(told: object) -> int | None:
    match told:
        case [int(first), *_] if 0 <= first <= MOST_NUMBER:
            return first
    return None


def _pair(told: object) -> tuple[int, int] | None:
    match told:
        case [int(distance), int(frame)] if distance >= 0:
            return distance, frame
    return None


def _step_s(told: object) -> float | None:
    step_ms = whole(told)
    return step_ms / 1000 if step_ms and step_ms <= MOST_STEP_MS else None


def _notes(content: Mapping[str, Any], begin_s: float, step_s: float) -> Iterator[tuple[float, int]]:
    """Yield when the main thread came to stand somewhere, and the number of its stack, in order of time."""
    used, steps = (list(itertools.accumulate(_numbers(content.get(name)))) for name in ("used", "steps"))
    for step, place in zip(steps, _places(content.get("at")), strict=False):
        if place < len(used) and used[place] <= MOST_NUMBER and step <= MOST_NUMBER:
            yield begin_s + step * step_s, used[place]


def _places(told: object) -> Iterator[int]:
    """Yield the places that a text stands for: a letter each, or MORE and two."""
    letters = iter(told if isinstance(told, str) else "")
    for letter in letters:
        pair = (next(letters, ""), next(letters, "")) if letter == MORE else ("#", letter)
        high, low = (LETTERS.find(each) if each else -1 for each in pair)
        if high < 0 or low < 0:
            return
        yield high * len(LETTERS) + low


def _of_threads(told: object, begin_s: float, step_s: float) -> Iterator[tuple[int, list[tuple[float, int]]]]:
    """Yield the number of the name of each other thread, and when it came to stand somewhere."""
    now: dict[int, tuple[int, list[tuple[float, int]]]] = {}
    for note in told if isinstance(told, list) else ():
        match note:
            case [int(at), int(place), *rest] if 0 <= at <= MOST_NUMBER and 0 <= place <= MOST_THREAD:
                at_s, before = begin_s + at * step_s, now.pop(place, None)
                match rest:
                    case [int(name), int(stack)] if before is not None and before[0] == name:
                        before[1].append((at_s, stack))
                        now[place] = before
                        continue
                    case [int(name), int(stack)]:
                        now[place] = name, [(at_s, stack)]
                if before is not None:
                    before[1].append((at_s, GONE))
                    yield before
    yield from now.values()


def _held(told: object, begin_s: float, step_s: float, end_s: float) -> Iterator[LockHeld]:
    for note in told if isinstance(told, list) else ():
        match note:
            case [int(at), int(held_ms), int(cpu_ms)] if 0 <= at <= MOST_NUMBER and held_ms >= 0 and cpu_ms >= 0:
                start_s = begin_s + at * step_s
                if start_s < end_s:
                    yield LockHeld(start_s, min(start_s + held_ms / 1000, end_s), min(cpu_ms, held_ms) / 1000)


def _numbers(told: object) -> list[int]:
    """Return a list of whole numbers; from the first on that is none nothing of it."""
    numbers: list[int] = []
    for each in told if isinstance(told, list) else ():
        if type(each) is not int or not 0 <= each <= np.iinfo(np.int32).max:
            break
        numbers.append(each)
    return numbers


def _unpacked(notes: object) -> Mapping[str, Any] | None:
    """Return what a block holds, None where it is none, or far too large."""
    try:
        packed = base64.b64decode(notes if isinstance(notes, str) else "", validate=True)
        unpacker = zlib.decompressobj()
        content = json.loads(unpacker.decompress(packed, MOST_OF_BLOCK)) if packed else None
    except (ValueError, RecursionError, binascii.Error, zlib.error):
        return None
    return content if isinstance(content, dict) else None
