"""Where each process of a training stood (`stacks/*.jsonl`, written inside it), put on the run's clock."""

import base64
import binascii
import json
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside.notes import LETTERS, MORE
from gpu_report.load.limits import MIB, SHORT, Limits
from gpu_report.load.problems import lines_left_out
from gpu_report.load.process_files import process_files, read_head
from gpu_report.load.run_clock import RunClock
from gpu_report.load.yolo.callback_lines import text, whole
from gpu_report.model import Frame, LockHeld, Probes, ProcessStacks, Stack, ThreadStacks
from gpu_report.run_folder import finite, parse_events

KIND: Final = "stacks"
MOST_PROCESSES: Final = 1024  # 64 GPUs with 16 workers each
MOST_OF_BLOCK: Final = 4 * MIB  # unpacked: 20 s while everything is imported are 150 kB
LONGEST_BLOCK_S: Final = 600.0  # one that a stopped process wrote late is of the time up to then
MOST_NUMBER: Final = 100_000  # of a table: a process writes 50,000 at most
MOST_DISTANCE: Final = np.iinfo(np.int32).max
MOST_STEP_MS: Final = 60_000
MOST_THREAD: Final = 64  # a process notes 16 at a time
DEEPEST: Final = 160
GONE: Final = -1  # in the place of a stack's number
ROLE: Final = re.compile(r"main|(?:rank|worker) [0-9]{1,6}")

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]  # whole ones
Bools = npt.NDArray[np.bool_]
Stays = tuple[Floats, Floats, Numbers]  # start, end, number of a stack
PLACE_OF_LETTER: Final = np.array([LETTERS.find(chr(code)) for code in range(256)], dtype=np.int64)


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
        self._stays: list[Stays] = []
        self._threads: dict[str, list[Stays]] = {}
        self._held: list[LockHeld] = []
        self._probes: list[tuple[Floats, Bools]] = []
        self._role = ""
        self._parent: int | None = None

    def take(self, line: Mapping[str, Any]) -> bool:
        """Add a block; return whether it could be read."""
        content, seconds, role = _unpacked(line.get("notes")), finite(line.get("seconds")), text(line.get("role"))
        if content is None or seconds is None or not 0 <= seconds <= LONGEST_BLOCK_S:
            return False
        step_s = _step_s(content.get("step_ms"))
        if step_s is None or role is None or not ROLE.fullmatch(role):
            return False
        self._role, self._parent = role, whole(line.get("parent"))
        if _first(content.get("files")) == 0:
            self._known, self._numbers = _Names(), {}
        self._known.take(content)
        begin_s = self._clock.t(line["wall_s"], finite(line.get("mono_s")))
        end_s = min(begin_s + seconds, self._end_t_s)
        steps, place, used = _notes(content)
        numbers = np.array([self._number(stack) for stack in used], dtype=np.int32)
        self._stays.append(_stays(begin_s + steps * step_s, numbers[place] if len(used) else place, end_s))
        for name, notes in _of_threads(content.get("threads"), begin_s, step_s):
            at_s, stacks = zip(*notes, strict=True)
            stood = np.array([self._number(stack) for stack in stacks], dtype=np.int32)
            self._threads.setdefault(self._known.thread(name), []).append(_stays(np.array(at_s), stood, end_s))
        self._held += _held(content.get("held"), begin_s, step_s, end_s)
        self._probes.append(_probes(content, begin_s, step_s))
        return True

    def stacks_of(self, pid: int) -> ProcessStacks | None:
        """Return all that was taken, in order of time; None of nothing."""
        if not sum(len(starts) for starts, _, _ in self._stays):
            return None
        threads = [ThreadStacks(name, *_in_order(stays)) for name, stays in sorted(self._threads.items())]
        held = sorted(self._held, key=lambda held: held.start_t_s)
        told = tuple(thread for thread in threads if len(thread.start_s))
        at_s, ran = (np.concatenate([each[i] for each in self._probes]) for i in (0, 1))
        order = np.argsort(at_s, kind="stable")
        probes = Probes(at_s[order], ran[order].astype(np.bool_)) if len(order) else None
        stays = _in_order(self._stays)
        return ProcessStacks(pid, self._role, *stays, self._stacks, told, tuple(held), probes, self._parent)

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


def _in_order(stays: Sequence[Stays]) -> Stays:
    starts, ends = (np.concatenate([each[i] for each in stays]) for i in (0, 1))
    numbers = np.concatenate([each[2] for each in stays])
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order], numbers[order]


def _stays(at_s: Floats, numbers: Numbers, end_s: float) -> Stays:
    """Return from when to when a thread stood in each stack: up to the next note, or to the end of its block."""
    ends = np.minimum(np.append(at_s[1:], end_s)[: len(at_s)], end_s)
    kept = (numbers >= 0) & (at_s < ends)
    return at_s[kept], ends[kept], numbers[kept].astype(np.int32)


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


def _notes(content: Mapping[str, Any]) -> tuple[Numbers, Numbers, list[int]]:
    """Return when the main thread came to stand somewhere (steps), which of the used stacks that was, and these."""
    used, steps = (np.cumsum(_numbers(content.get(name))) for name in ("used", "steps"))
    places = _places(content.get("at"))
    count = min(len(steps), len(places))
    steps, places = steps[:count], places[:count]
    kept = (places < len(used)) & (steps <= MOST_NUMBER)
    kept[kept] &= used[places[kept]] <= MOST_NUMBER
    return steps[kept], places[kept], used.tolist()


def _places(told: object) -> Numbers:
    """Return the places that a text stands for: a letter each, or MORE and two; up to the first that is none."""
    letters = told if isinstance(told, str) else ""
    codes = np.minimum(np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), dtype="<u4"), 255)  # which is none
    is_more = codes == ord(MORE)
    places = PLACE_OF_LETTER[codes]
    if is_more.any():
        places = _with_pairs(places, is_more)
    bad = np.flatnonzero(places < 0)
    known: Numbers = places[: bad[0]] if len(bad) else places
    return known


def _with_pairs(places: Numbers, is_more: npt.NDArray[np.bool_]) -> Numbers:
    """Return places in which MORE and the two letters after it are one; -1 where the text ends within them."""
    found, at, count = [], 0, len(places)
    flags, values = is_more.tolist(), places.tolist()
    while at < count:
        if not flags[at]:
            found.append(values[at])
            at += 1
            continue
        high, low = (values[n] if n < count else -1 for n in (at + 1, at + 2))
        found.append(high * len(LETTERS) + low if high >= 0 and low >= 0 else -1)
        at += 3
    return np.array(found, dtype=np.int64)


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


def _probes(content: Mapping[str, Any], begin_s: float, step_s: float) -> tuple[Floats, Bools]:
    """Return when it was looked whether the main thread used the CPU, and whether it did."""
    steps, told = np.cumsum(_numbers(content.get("probes"))), text(content.get("ran")) or ""
    known = min(len(steps), next((at for at, each in enumerate(told) if each not in "01"), len(told)))
    steps = steps[:known]
    kept = steps <= MOST_NUMBER
    return begin_s + steps[kept] * step_s, np.array([each == "1" for each in told[:known]], dtype=np.bool_)[kept]


def _numbers(told: object) -> Numbers:
    """Return a list of whole numbers; from the first on that is none nothing of it."""
    given = told if isinstance(told, list) else []
    array = np.array(given) if all(type(each) is int for each in given) else np.empty(0, dtype=object)
    if array.dtype.kind == "i" and not ((array < 0) | (array > MOST_DISTANCE)).any():
        whole: Numbers = array
        return whole
    wrong = (at for at, each in enumerate(given) if type(each) is not int or not 0 <= each <= MOST_DISTANCE)
    return np.array(given[: next(wrong, len(given))], dtype=np.int64)


def _unpacked(notes: object) -> Mapping[str, Any] | None:
    """Return what a block holds, None where it is none, or far too large."""
    try:
        packed = base64.b64decode(notes if isinstance(notes, str) else "", validate=True)
        unpacker = zlib.decompressobj()
        content = json.loads(unpacker.decompress(packed, MOST_OF_BLOCK)) if packed else None
    except (ValueError, RecursionError, binascii.Error, zlib.error):
        return None
    return content if isinstance(content, dict) else None
