"""Notes of where the threads of a process stand, as few bytes: what was named once goes by its number."""

from __future__ import annotations

import base64
import dis
import json
import re
import time
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from .called import called

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, FrameType

DEEPEST = 160  # frames of a stack, counted from the innermost; under `torch.compile` it has 130
MOST_STACKS = 50_000  # places in the tree of all stacks: more are a program that recurses, and are not told apart
MOST_KNOWN = 20_000  # places of the tree that are found by their instruction; then they are learnt anew
# Bytes of a function's table of lines, which is searched from its beginning with the interpreter's lock: 0.3 ms in so
# many, and longer for what a line calls. What torch.compile writes for a model is one function of 13,000 lines.
LARGEST_TABLE = 100_000
MOST_NAMES = 256  # of threads
MOST_HELD = 50  # in a block
MOST_COLLECTED = 500  # likewise: 25 a second, of 10 ms and more each
QUICKLY, SMALL = 1, 9  # levels of zlib
IMPORTS = "<frozen importlib"  # files of the interpreter's import system: four frames an import that say nothing
OTHER = 0  # the number of a stack that is none of those, or not known

# What stands for a place in a list: a letter, or from the 91st on MORE and two of them. JSON writes each as it is.
LETTERS = "".join(chr(code) for code in range(ord("#"), ord("~")) if chr(code) != "\\")
MORE = "!"

_COUNT = re.compile(r"-\d+")  # of a thread's name: `Thread-12 (plot)` is one of many


class SeenNumbers:
    """Numbers of things in the order in which they were first seen, and those that have not been written yet."""

    def __init__(self, first: int = 0) -> None:
        self._numbers: dict[Any, int] = {}
        self._first = first
        self._written = 0
        self._new: list[Any] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, key: Any) -> int | None:
        """Return the number of what was seen before."""
        return self._numbers.get(key)

    def add(self, key: Any, told: Any) -> int:
        """Give something its number; `told` is what will be written of it."""
        number = self._numbers[key] = self._first + len(self._numbers)
        self._new.append(told)
        return number

    def find(self, key: Any) -> int:
        """Return the number of what says all of itself."""
        number = self._numbers.get(key)
        return self.add(key, key) if number is None else number

    def new(self) -> list[Any]:
        """Return the number of the first that was not written yet, and those from there on."""
        return [self._first + self._written, *self._new]

    def written(self) -> None:
        """Forget what has been written."""
        self._written, self._new = len(self._numbers), []


class FramePlace(NamedTuple):
    """Where a thread stood in one function: what is needed of a frame that need not live on."""

    f_code: CodeType
    f_lasti: int

    @property
    def f_lineno(self) -> int:
        """Return the line of the instruction."""
        starts = (line for at, line in dis.findlinestarts(self.f_code) if at <= self.f_lasti and line)
        return max(enumerate(starts), default=(0, self.f_code.co_firstlineno))[1]


class Dictionary:
    """All files, lines and stacks of one process that have a number. A stack is its outermost part and one frame."""

    def __init__(self) -> None:
        self.files = SeenNumbers()
        self.frames = SeenNumbers()
        self.stacks = SeenNumbers(first=1)
        self.names = SeenNumbers()
        self._known: dict[tuple[int, int, int], int] = {}
        self._huge: set[int] = set()  # code in which no line is looked for: all of it is one place
        self._kept: dict[int, CodeType] = {}  # so that no other code object gets the id of one that is gone

    def stack(self, frame: FrameType | None) -> int:
        """Return the number of the stack that a frame is the innermost of, `OTHER` where there are too many."""
        frames: list[FrameType] = []
        while frame is not None and len(frames) < DEEPEST:
            frames.append(frame)
            frame = frame.f_back
        return self.stack_of(frames)

    def stack_of(self, frames: Sequence[FrameType | FramePlace]) -> int:
        """Return the number of the stack of these frames, innermost first."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        number = OTHER
        for depth in range(len(frames) - 1, -1, -1):
            each = frames[depth]
            # By the instruction: which line that is takes the interpreter far longer to say. Of the innermost frame it
            # is known, too, what it calls: that is another place.
            code = id(each.f_code)
            at = 0 if code in self._huge else each.f_lasti
            found = self._known.get((number, code, at if depth else ~at))
            if found is None:
                found = self._learn(number, each, innermost=not depth)
                if found is None:
                    return OTHER
            number = found
        return number

    def _learn(self, outer: int, frame: FrameType | FramePlace, *, innermost: bool) -> int | None:
        """Return the number of a frame under the stack that it was called from, None where there are too many."""
        code = frame.f_code
        huge = len(_line_table(code)) > LARGEST_TABLE
        at = 0 if huge else frame.f_lasti
        number: int | None = outer
        if innermost or not code.co_filename.startswith(IMPORTS):
            calls = called(code, at) if innermost and not huge else ""
            line = self._frame(code, (code.co_firstlineno if huge else frame.f_lineno) or 0, calls)
            number = None if line is None else self._under(outer, line)
        if number is not None:
            self._kept[id(code)] = code  # also of what is huge: the id of one that is gone may be another's
            if huge:
                self._huge.add(id(code))
            self._known[outer, id(code), ~at if innermost else at] = number
        return number

    def _under(self, outer: int, line: int) -> int | None:
        place = outer, line
        found = self.stacks.number(place)
        if found is None and len(self.stacks) >= MOST_STACKS:
            return None
        return self._stack(place) if found is None else found

    def _stack(self, place: tuple[int, int]) -> int:
        """Give a new stack its number; what lies outside its frame is mostly the one before it: it goes by distance."""
        outer, frame = place
        number = len(self.stacks) + 1
        return self.stacks.add(place, (number - outer if outer else 0, frame))

    def _frame(self, code: CodeType, line: int, calls: str) -> int | None:
        """Return the number of a line, None of a new one where there are too many.

        Of the innermost frame it says, too, which function of C it calls. A program that makes code as it goes, each
        step anew, has ever new lines.
        """
        place = id(code), line, calls
        number = self.frames.number(place)
        if number is None:
            if max(len(self.frames), len(self.stacks)) >= MOST_STACKS:
                return None
            told = self.files.find(code.co_filename), line, code.co_name
            number = self.frames.add(place, (*told, calls) if calls else told)
        return number

    def thread(self, name: str) -> int:
        """Return the number of a thread's name."""
        name = _COUNT.sub("", name)[:64]
        return self.names.find(name if len(self.names) < MOST_NAMES else "")

    def new(self) -> dict[str, list[Any]]:
        """Return what no block has told yet."""
        tables = {"files": self.files, "frames": self.frames, "stacks": self.stacks, "names": self.names}
        return {name: new for name, table in tables.items() for new in (table.new(),) if len(new) > 1}

    def written(self) -> None:
        """Forget what has been written."""
        for table in (self.files, self.frames, self.stacks, self.names):
            table.written()


class Notes:
    """A block of notes of one process: it can be written again and again while it grows, and then ends."""

    def __init__(self, step_s: float) -> None:
        """Take the unit in which times are told: a note every so many seconds."""
        self.known = Dictionary()
        self._step_s = step_s
        self._begun = (0.0, 0.0)
        self._at: list[tuple[int, int]] = []
        self._held: list[list[int]] = []
        self._collected: list[list[int]] = []
        self._collections: tuple[int, float] | None = None  # not known
        self._collections_before = (0, 0.0)
        self._probed: list[tuple[int, bool]] = []
        self._threads: list[list[int]] = []
        self._threads_now: dict[int, tuple[int, int]] = {}
        self._cpu: list[list[int]] | None = None  # not known
        self._last: int | None = None
        self.changed = False  # since it was last written

    def note(self, number: int, mono_s: float) -> None:
        """Take in the stack in which the main thread stands; only where that has changed there is something to keep."""
        if not self._begun[1]:
            self._begun = (time.time(), mono_s)
        if number != self._last:
            self._at.append((self._step(mono_s), number))
            self._last, self.changed = number, True

    def held(self, mono_s: float, seconds: float, cpu_s: float) -> None:
        """Take in that no thread could run Python for so long, in which the main thread used so much CPU."""
        if len(self._held) < MOST_HELD:
            self._held.append([self._step(mono_s), round(1000 * seconds), round(1000 * cpu_s)])
            self.changed = True

    def collected(self, mono_s: float, seconds: float, number: int, *, in_main: bool) -> None:
        """Take in that Python's garbage collector ran from then on for so long, and in which stack it began."""
        if len(self._collected) < MOST_COLLECTED:
            self._collected.append([self._step(mono_s), round(1000 * seconds), number, int(in_main)])
            self.changed = True

    def collections(self, so_far: tuple[int, float] | None) -> None:
        """Take in how often it ran in all up to now, short times included, and for how long; None if not known."""
        self._collections = so_far

    def probed(self, mono_s: float, *, ran: bool) -> None:
        """Take in whether the main thread used the CPU in the place in which it was noted."""
        if self._begun[1]:
            self._probed.append((self._step(mono_s), ran))

    def threads(self, now: dict[int, tuple[int, int]], mono_s: float) -> None:
        """Take in the name and the stack, by their numbers, of each other thread, by a number that it keeps."""
        if now == self._threads_now:
            return
        at = self._step(mono_s)
        for place in sorted({*now, *self._threads_now}):
            if now.get(place) != self._threads_now.get(place):
                self._threads.append([at, place, *now.get(place, ())])
        self._threads_now, self.changed = now, True

    def cpu(self, mono_s: float, over_s: float, main_s: float, of_others: dict[int, float]) -> None:
        """Take in the CPU (s) that the main thread, and others by their numbers, used in the `over_s` up to now."""
        self._cpu = [] if self._cpu is None else self._cpu
        if of_others:  # without one, who needs to know
            told = (each for place, cpu_s in sorted(of_others.items()) for each in (place, round(1000 * cpu_s)))
            self._cpu.append([self._step(mono_s), round(1000 * over_s), round(1000 * main_s), *told])
            self.changed = True

    def seconds(self, mono_s: float) -> float:
        """Return for how long it has been taking notes."""
        return mono_s - self._begun[1] if self._begun[1] else 0.0

    def block(
        self, role: str, mono_s: float, parent: int | None = None, *, draft: bool = False, **fields: Any
    ) -> bytes:
        """Return the notes up to now as a line, with `fields`; `parent` is the process that a worker loads for.

        A draft is written over by the next one: it is packed quickly rather than small.
        """
        wall_s, begun_s = self._begun
        content = packed(self._content(), QUICKLY if draft else SMALL)
        line = {"wall_s": round(wall_s, 3), "mono_s": round(begun_s, 3), "kind": "stacks", "role": role}
        line.update({} if parent is None else {"parent": parent})
        line.update(fields)
        line.update(seconds=round(mono_s - begun_s, 3), notes=content)
        self.changed = False
        return (json.dumps(line, separators=(",", ":")) + "\n").encode("ascii")

    def end(self, mono_s: float) -> None:
        """Begin a new block: all that was in the one before has been written."""
        self.known.written()
        self._begun = (time.time(), mono_s)
        self._at = [] if self._last is None else [(0, self._last)]
        self._held, self._collected, self._probed = [], [], []
        self._collections_before = self._collections or self._collections_before
        self._cpu = None if self._cpu is None else []
        self._threads = [[0, place, *now] for place, now in self._threads_now.items()]

    def _content(self) -> dict[str, Any]:
        """Return what a block says: stacks by their place in `used`, and that and times by the distance to the last."""
        at = list(self._at)  # once: the process may end meanwhile, and its other thread still note
        used = sorted({number for _, number in at})
        letters = {number: _letters(place) for place, number in enumerate(used)}
        told = {
            "step_ms": round(1000 * self._step_s),
            "used": distances(used),
            "at": "".join([letters[number] for _, number in at]),
            "steps": distances([step for step, _ in at]),
        }
        probed = list(self._probed)
        looks = {"probes": distances([step for step, _ in probed]), "ran": "".join(["01"[ran] for _, ran in probed])}
        extra = {"held": self._held, "gc": list(self._collected), "threads": self._threads, **looks}
        cpu = {} if self._cpu is None else {"cpu": list(self._cpu)}
        if self._collections is not None:
            (now, now_s), (before, before_s) = self._collections, self._collections_before
            told["gc_all"] = [now - before, round(1000 * (now_s - before_s))]
        return {**self.known.new(), **told, **cpu, **{name: each for name, each in extra.items() if each}}

    def _step(self, mono_s: float) -> int:
        return max(round((mono_s - self._begun[1]) / self._step_s), 0) if self._begun[1] else 0


def _line_table(code: CodeType) -> bytes:
    return code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab  # before Python 3.10


def packed(content: dict[str, Any], level: int) -> str:
    """Return what notes say as they are written: JSON, packed by zlib at a level, in base 64."""
    data = json.dumps(content, separators=(",", ":")).encode()
    return base64.b64encode(zlib.compress(data, level)).decode("ascii")


def distances(numbers: list[int]) -> list[int]:
    """Return how far each is from the one before it, the first from 0."""
    return [now - before for before, now in zip([0, *numbers], numbers)]  # noqa: B905 - `strict` is of 3.10


def _letters(place: int) -> str:
    many = len(LETTERS)
    return LETTERS[place] if place < many else MORE + LETTERS[place // many % many] + LETTERS[place % many]
