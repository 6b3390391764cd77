"""Where each process of a training stood (`stacks/*.jsonl`, written inside it), put on the run's clock."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeGuard

import numpy as np
import numpy.typing as npt

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside.notes import LETTERS, MORE
from gpu_report.load.limits import SHORT, Limits
from gpu_report.load.problems import lines_left_out
from gpu_report.load.process_files import process_files, read_head
from gpu_report.load.run_clock import RunClock
from gpu_report.load.stack_tables import MOST_NUMBER, StackTables, first_number, numbers, unpacked
from gpu_report.load.yolo.callback_lines import text, whole
from gpu_report.load.yolo.exceptions import one_line
from gpu_report.load.yolo.setting_locations import setting_locations
from gpu_report.model import (
    BusyThreads,
    CollectionCounts,
    LockHeld,
    LongCollections,
    Probes,
    ProcessStacks,
    SettingLocation,
    Stack,
    ThreadStacks,
)
from gpu_report.run_folder import finite, parse_events

KIND: Final = "stacks"
MOST_PROCESSES: Final = 1024  # 64 GPUs with 16 workers each
LONGEST_BLOCK_S: Final = 600.0  # one that a stopped process wrote late is of the time up to then
MOST_STEP_MS: Final = 60_000
MOST_THREAD: Final = 64  # a process notes 16 at a time
NOTES_AT_ONCE: Final = 100_000  # are worked out together: an hour of a main process, which takes 10 MB on the way
MODE_SHARE: Final = 0.5  # of the time: what was on for less, as in a benchmark, slowed not most of it
MOST_MODES: Final = 16  # that slow a process, and lines of code that switched them on
LEFT: Final = 2  # numbers in a note of a thread that is gone
COLLECTED: Final = 4  # numbers in a run of the garbage collector
FEWEST: Final = 5  # numbers in a look at the CPU of threads: of one of them
GONE: Final = -1  # in the place of a stack's number
ROLE: Final = re.compile(r"main|(?:rank|worker) [0-9]{1,6}")

Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[Any]  # whole ones
Bools = npt.NDArray[np.bool_]
Stays = tuple[Floats, Floats, Numbers]  # start, end, number of a stack
END: Final = "\0\0"  # after a text: neither is a letter
PLACE_OF_LETTER: Final = np.array([LETTERS.find(chr(code)) for code in range(256)], dtype=np.int64)


def load_stacks(
    folder: Path, clock: RunClock, end_t_s: float, limits: Limits = SHORT
) -> tuple[tuple[ProcessStacks, ...], tuple[str, ...]]:
    """Return the stacks of each process, by pid, and what could not be read; `end_t_s` is the end of the recording."""
    found, problems, left = [], [], limits.stack_bytes
    for path in process_files(folder, MOST_PROCESSES):
        if path.name == schema.DUMPS_JSONL:  # of another form: `load_dumps`
            continue
        pid = whole(int(path.stem)) if path.stem.isdecimal() and len(path.stem) < len("1000000000") else None
        data, cut = read_head(path, left)
        left -= len(data)
        if cut:
            problems.append(f"{schema.STACKS_DIR}/{path.name}: {cut}")
        lines, bad = parse_events(data)
        process = _ProcessBlocks(clock, end_t_s)
        bad += sum(not process.take(line) for line in lines if line["kind"] == KIND)
        if bad:
            problems.append(lines_left_out(f"{schema.STACKS_DIR}/{path.name}", bad))
        stacks = process.stacks_of(pid) if pid is not None else None
        found += [stacks] if stacks is not None else []
    return tuple(found), tuple(problems)


def _listed(value: object) -> list[Any]:
    return value[:MOST_MODES] if isinstance(value, list) else []


class _ProcessBlocks:
    """The blocks of one process, and of those that had its pid before."""

    def __init__(self, clock: RunClock, end_t_s: float) -> None:
        self._clock, self._end_t_s = clock, end_t_s
        self._known = StackTables()
        self._numbers: dict[int, int] = {}  # of stacks as they are written: with another process they begin anew
        self._stacks: dict[int, Stack] = {}
        self._blocks: list[_Block] = []  # of which the stays and probes are still to be worked out, and their notes
        self._waiting = 0
        self._stays: list[Stays] = []
        self._probes: list[tuple[Floats, Bools]] = []
        self._threads: dict[str, _ThreadNotes] = {}
        self._held: list[LockHeld] = []
        self._collected: list[_LongCollection] = []
        self._collections: list[_CollectionsOfBlock] = []
        self._busy: list[_Busy] | None = None  # not known
        self._told_s = 0.0  # of all blocks
        self._modes_s: dict[str, float] = {}  # for how long each was on
        self._set_in: dict[SettingLocation, None] = {}
        self._role = ""
        self._parent: int | None = None

    def take(self, line: Mapping[str, Any]) -> bool:
        """Add a block; return whether it could be read."""
        content, seconds, role = unpacked(line.get("notes")), finite(line.get("seconds")), text(line.get("role"))
        if content is None or seconds is None or not 0 <= seconds <= LONGEST_BLOCK_S:
            return False
        step_s = _step_s(content.get("step_ms"))
        if step_s is None or role is None or not ROLE.fullmatch(role):
            return False
        self._role, self._parent = role, whole(line.get("parent"))
        if first_number(content.get("files")) == 0:
            self._known, self._numbers = StackTables(), {}
        self._known.take(content)
        begin_s = self._clock.t(line["wall_s"], finite(line.get("mono_s")))
        end_s = min(begin_s + seconds, self._end_t_s)
        self._take_modes(line, seconds)
        used = [self._number(stack) for stack in accumulate(numbers(content.get("used")))]
        self._blocks.append(_Block(begin_s, end_s, step_s, used, *_notes(content), *_probes(content)))
        self._waiting += self._blocks[-1].length
        if self._waiting >= NOTES_AT_ONCE:
            self._work_out()
        for name, notes in _of_threads(content.get("threads"), begin_s, step_s):
            thread = self._threads.setdefault(self._known.thread(name), _ThreadNotes([], [], [], []))
            thread.take([at_s for at_s, _ in notes], [self._number(stack) for _, stack in notes], end_s)
        self._held += _held(content.get("held"), begin_s, step_s, end_s)
        for each in _collected(content.get("gc"), begin_s, step_s, end_s):
            self._collected.append(each._replace(number=self._at(each.number)))
        self._collections += _collections(content.get("gc_all"), begin_s, end_s)
        if isinstance(content.get("cpu"), list):
            looks = _busy(content["cpu"], content.get("threads"), begin_s, step_s, end_s)
            self._busy = [] if self._busy is None else self._busy
            self._busy += (look._replace(number=self._at(look.number)) for look in looks)
        return True

    def _take_modes(self, line: Mapping[str, Any], seconds: float) -> None:
        """Add what slowed the whole process at the end of a block, and where it was set."""
        for mode in filter(None, map(one_line, _listed(line.get("slow_modes")))):
            self._modes_s[mode] = self._modes_s.get(mode, 0.0) + seconds
        for each in setting_locations(_listed(line.get("set_in"))):
            if len(self._set_in) < MOST_MODES:
                self._set_in[each] = None
        self._told_s += seconds

    def _work_out(self) -> None:
        """Work out the stays and the probes of the last blocks."""
        self._stays.append(_stays_of(self._blocks))
        self._probes.append(_probes_of(self._blocks))
        self._blocks, self._waiting = [], 0

    def stacks_of(self, pid: int) -> ProcessStacks | None:
        """Return all that was taken, in order of time; None of nothing."""
        self._work_out()
        stays = _in_order(self._stays)
        if not len(stays[0]):
            return None
        threads = [ThreadStacks(name, *_in_order([notes.stays()])) for name, notes in sorted(self._threads.items())]
        held = sorted(self._held, key=lambda held: held.start_t_s)
        told = tuple(thread for thread in threads if len(thread.start_s))
        at_s, ran = (np.concatenate([each[i] for each in self._probes]) for i in (0, 1))
        order = np.argsort(at_s, kind="stable")
        probes = Probes(at_s[order], ran[order]) if len(order) else None
        busy = _busy_threads(self._busy) if self._busy is not None else None
        collections = _all_collections(self._collections, self._collected) if self._collections else None
        mostly = frozenset(mode for mode, on_s in self._modes_s.items() if on_s >= MODE_SHARE * self._told_s)
        stacks = ProcessStacks(
            pid, self._role, *stays, self._stacks, told, tuple(held), probes, self._parent, busy, collections
        )
        return replace(stacks, slow_modes=mostly, setting_locations=tuple(self._set_in))

    def _at(self, written: int) -> int:
        """Return the number under which the stack of a thread is told, 0 where it is not known."""
        return self._number(written) if written > 0 else 0

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


class _Block(NamedTuple):
    """A block of notes: steps since the note before, and at each the place in `used` of the stack it is of.

    `places` are letters (see `_places`), `used` numbers of stacks as they are told. `probes` are steps likewise, `ran`
    says `0` or `1` of each.
    """

    begin_s: float
    end_s: float
    step_s: float
    used: Sequence[int]
    steps: Sequence[int]
    places: str
    probes: Sequence[int]
    ran: str

    @property
    def length(self) -> int:
        """Return how many notes it holds at most: of a broken one each list has a length of its own."""
        return len(self.used) + len(self.steps) + len(self.places) + len(self.probes)


class _ThreadNotes(NamedTuple):
    """When threads of one name came to stand in which stacks: `counts` notes in a row are a thread's up to an end."""

    at_s: list[float]
    numbers: list[int]
    counts: list[int]
    ends_s: list[float]

    def take(self, at_s: Sequence[float], numbers: Sequence[int], end_s: float) -> None:
        """Add the notes of a thread in one block."""
        self.at_s.extend(at_s)
        self.numbers.extend(numbers)
        self.counts.append(len(at_s))
        self.ends_s.append(end_s)

    def stays(self) -> Stays:
        """Return from when to when they stood in each stack."""
        of = np.repeat(np.arange(len(self.counts)), self.counts)
        return _stays(np.array(self.at_s), np.array(self.numbers), of, np.array(self.ends_s))


def _in_order(stays: Sequence[Stays]) -> Stays:
    starts, ends, numbers = (np.concatenate(column) for column in zip(*stays, strict=True))
    if (starts[1:] >= starts[:-1]).all():
        return starts, ends, numbers
    order = np.argsort(starts, kind="stable")
    return starts[order], ends[order], numbers[order]


def _stays_of(blocks: Sequence[_Block]) -> Stays:
    """Return from when to when the main thread stood in each stack; one block at a time takes three times as long."""
    places, counts = _places([block.places for block in blocks], [len(block.steps) for block in blocks])
    steps, of = _sums_within([block.steps[:count] for block, count in zip(blocks, counts.tolist(), strict=True)])
    lengths = np.array([len(block.used) for block in blocks], dtype=np.int64)
    numbers = np.array(list(chain.from_iterable(block.used for block in blocks)), dtype=np.int32)
    kept = (places < lengths[of]) & (steps <= MOST_NUMBER)
    places, steps, of = places[kept], steps[kept], of[kept]
    stacks = numbers[(np.cumsum(lengths) - lengths)[of] + places]
    return _stays(_times(blocks, steps, of), stacks, of, np.array([block.end_s for block in blocks]))


def _probes_of(blocks: Sequence[_Block]) -> tuple[Floats, Bools]:
    """Return when it was looked whether the main thread used the CPU, and whether it did."""
    steps, of = _sums_within([block.probes for block in blocks])
    ran = np.frombuffer("".join([block.ran for block in blocks]).encode("ascii"), dtype=np.uint8) == ord("1")
    kept = steps <= MOST_NUMBER
    return _times(blocks, steps[kept], of[kept]), ran[kept]


def _sums_within(lists: Sequence[Sequence[int]]) -> tuple[Numbers, Numbers]:
    """Return the sums of whole numbers up to each of them within its list, and which list each is of."""
    lengths = np.array([len(each) for each in lists], dtype=np.int64)
    so_far = np.cumsum([0, *chain.from_iterable(lists)])
    of = np.repeat(np.arange(len(lists)), lengths)
    return so_far[1:] - so_far[np.cumsum(lengths) - lengths][of], of


def _times(blocks: Sequence[_Block], steps: Numbers, of: Numbers) -> Floats:
    """Return the time of each step, of the block that it is of."""
    begins_s = np.array([block.begin_s for block in blocks], dtype=np.float64)[of]
    steps_s = np.array([block.step_s for block in blocks], dtype=np.float64)[of]
    times: Floats = begins_s + steps * steps_s
    return times


def _stays(at_s: Floats, numbers: Numbers, of: Numbers, ends_s: Floats) -> Stays:
    """Return from when to when a thread stood in each stack: up to its next note in the block, or the block's end."""
    ends = ends_s[of]
    goes_on = np.flatnonzero(of[1:] == of[:-1])
    ends[goes_on] = np.minimum(at_s[goes_on + 1], ends[goes_on])
    kept = (numbers >= 0) & (at_s < ends)
    return at_s[kept], ends[kept], numbers[kept].astype(np.int32)


def _step_s(told: object) -> float | None:
    step_ms = whole(told)
    return step_ms / 1000 if step_ms and step_ms <= MOST_STEP_MS else None


def _notes(content: Mapping[str, Any]) -> tuple[list[int], str]:
    """Return after how many steps each the main thread came to stand somewhere, and where: a letter, or more, each."""
    at = content.get("at")
    return numbers(content.get("steps")), at if isinstance(at, str) else ""


def _places(letters: Sequence[str], at_most: Sequence[int]) -> tuple[Numbers, Numbers]:
    """Return the places that each text stands for, one after the other, and how many there are of each.

    A place is a letter, or MORE and two; they end at the first that is none, or where there are `at_most` of them.
    """
    ended = END.join([*letters, ""])
    codes = np.minimum(np.frombuffer(ended.encode("utf-32-le", "surrogatepass"), dtype="<u4"), 255)  # which is none
    of = np.repeat(np.arange(len(letters)), [len(each) + len(END) for each in letters])
    places, is_first = PLACE_OF_LETTER[codes], np.ones(len(codes), dtype=np.bool_)
    more = np.flatnonzero(codes == ord(MORE))
    high, low = places[more + 1], places[more + 2]
    places[more] = np.where((high >= 0) & (low >= 0), high * len(LETTERS) + low, -1)
    is_first[more + 1] = is_first[more + 2] = False
    places, of = places[is_first], of[is_first]
    firsts = np.searchsorted(of, np.arange(len(letters)))
    bad = np.flatnonzero(places < 0)  # there is one at least in each: its end, or what holds it
    counts = np.minimum(bad[np.searchsorted(bad, firsts)] - firsts, np.array(at_most, dtype=np.int64))
    rows = np.arange(int(counts.sum())) + np.repeat(firsts - np.cumsum(counts) + counts, counts)
    return places[rows], counts


def _of_threads(told: object, begin_s: float, step_s: float) -> Iterator[tuple[int, list[tuple[float, int]]]]:
    """Yield the number of the name of each other thread, and when it came to stand somewhere."""
    now: dict[int, tuple[int, list[tuple[float, int]]]] = {}
    for note in filter(_is_of_thread, told if isinstance(told, list) else ()):
        at_s, name, before = begin_s + note[0] * step_s, note[2:3], now.pop(note[1], None)
        if before is not None and name == [before[0]]:
            before[1].append((at_s, note[3]))
            now[note[1]] = before
            continue
        if before is not None:
            before[1].append((at_s, GONE))
            yield before
        if name:
            now[note[1]] = note[2], [(at_s, note[3])]
    yield from now.values()


def _is_of_thread(note: object) -> bool:
    """Tell whether a note says when a thread moved, which one, its name and its stack, or only that it is gone."""
    if not isinstance(note, list) or len(note) not in {2, 4} or set(map(type, note)) != {int}:
        return False
    at, place, *_ = note
    return bool(0 <= at <= MOST_NUMBER and 0 <= place <= MOST_THREAD)


def _held(told: object, begin_s: float, step_s: float, end_s: float) -> Iterator[LockHeld]:
    for note in told if isinstance(told, list) else ():
        match note:
            case [int(at), int(held_ms), int(cpu_ms)] if 0 <= at <= MOST_NUMBER and held_ms >= 0 and cpu_ms >= 0:
                start_s = begin_s + at * step_s
                if start_s < end_s:
                    yield LockHeld(start_s, min(start_s + held_ms / 1000, end_s), min(cpu_ms, held_ms) / 1000)


class _CollectionsOfBlock(NamedTuple):
    """What Python's garbage collector did in a block: a row of `CollectionCounts`."""

    start_s: float
    end_s: float
    times: float
    seconds: float


class _LongCollection(NamedTuple):
    """A long run of the garbage collector: a row of `LongCollections`."""

    start_s: float
    end_s: float
    number: int
    in_main: bool


def _collected(told: object, begin_s: float, step_s: float, end_s: float) -> Iterator[_LongCollection]:
    """Yield the long runs of the garbage collector, each with its stack's number as it is written."""
    for note in told if isinstance(told, list) else ():
        if not isinstance(note, list) or len(note) != COLLECTED or set(map(type, note)) != {int}:
            continue
        at, took_ms, number, in_main = note
        start_s = begin_s + at * step_s
        if 0 <= at <= MOST_NUMBER and 0 <= took_ms <= MOST_NUMBER and start_s < end_s:
            yield _LongCollection(start_s, min(start_s + took_ms / 1000, end_s), number, in_main == 1)


def _collections(told: object, begin_s: float, end_s: float) -> Iterator[_CollectionsOfBlock]:
    match told:
        case [int(count), int(took_ms)] if 0 <= count <= MOST_NUMBER and took_ms >= 0 and begin_s < end_s:
            yield _CollectionsOfBlock(begin_s, end_s, count, min(took_ms / 1000, end_s - begin_s))


def _all_collections(rows: Sequence[_CollectionsOfBlock], long: Sequence[_LongCollection]) -> CollectionCounts:
    """Return what the garbage collector did in order of time, as columns."""
    begun_s, until_s, count, seconds = np.array(sorted(rows), dtype=np.float64).T
    table = np.array(sorted(long), dtype=np.float64).reshape(-1, len(_LongCollection._fields))
    start_s, end_s, number, in_main = table.T
    each = LongCollections(start_s, end_s, number.astype(np.int32), in_main > 0)
    return CollectionCounts(begun_s, until_s, count, seconds, each)


class _Busy(NamedTuple):
    """A look at a thread that used the CPU: a row of `BusyThreads`, with the stack's number as it is written."""

    start_s: float
    end_s: float
    cpu_s: float
    main_cpu_s: float
    number: int


def _busy(told: Sequence[object], threads: object, begin_s: float, step_s: float, end_s: float) -> Iterator[_Busy]:
    """Yield the looks at threads that used the CPU; `threads` is where they stood."""
    moved = sorted((n for n in (threads if isinstance(threads, list) else ()) if _is_of_thread(n)), key=lambda n: n[0])
    now: dict[int, int] = {}
    at = 0
    for look in filter(_is_of_cpu, told):
        step, over_ms, main_ms, *others = look
        while at < len(moved) and moved[at][0] <= step:
            now[moved[at][1]] = moved[at][3] if len(moved[at]) > LEFT else 0
            at += 1
        until_s = min(begin_s + step * step_s, end_s)
        for place, cpu_ms in zip(others[::2], others[1::2], strict=True):
            since_s = until_s - over_ms / 1000
            yield _Busy(since_s, until_s, cpu_ms / 1000, main_ms / 1000, now.get(place, 0))


def _is_of_cpu(look: object) -> TypeGuard[list[int]]:
    """Tell whether a look says when it was, over how long, what the main thread used, and of others who and what."""
    if not isinstance(look, list) or len(look) < FEWEST or len(look) % 2 == 0 or set(map(type, look)) != {int}:
        return False
    return len(look) <= FEWEST + 2 * MOST_THREAD and all(0 <= each <= MOST_NUMBER for each in look) and look[1] > 0


def _busy_threads(looks: Sequence[_Busy]) -> BusyThreads:
    """Return looks in order of time, as columns."""
    rows = np.array(sorted(looks), dtype=np.float64).reshape(-1, len(_Busy._fields))
    start_s, end_s, cpu_s, main_cpu_s, number = rows.T
    return BusyThreads(start_s, end_s, cpu_s, main_cpu_s, number.astype(np.int32))


def _probes(content: Mapping[str, Any]) -> tuple[list[int], str]:
    """Return after how many steps each it was looked whether the main thread used the CPU, and `0` or `1` of each."""
    steps, told = numbers(content.get("probes")), text(content.get("ran")) or ""
    known = min(len(steps), len(told) - len(told.lstrip("01")))
    return steps[:known], told[:known]
