"""What notes of stacks say by numbers: the tables of one process in which files, lines and stacks have theirs."""

import base64
import binascii
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from gpu_report.load.limits import MIB
from gpu_report.load.yolo.callback_lines import text, whole
from gpu_report.model import Frame, Stack

MOST_OF_BLOCK: Final = 4 * MIB  # unpacked: 20 s while everything is imported are 150 kB
MOST_NUMBER: Final = 100_000  # of a table: a process writes 50,000 at most
MOST_DISTANCE: Final = np.iinfo(np.int32).max
DEEPEST: Final = 160


class StackTables:
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


def numbers(told: object) -> list[int]:
    """Return a list of whole numbers; from the first on that is none nothing of it."""
    given = told if isinstance(told, list) else []
    if set(map(type, given)) <= {int} and min(given, default=0) >= 0 and max(given, default=0) <= MOST_DISTANCE:
        return given
    wrong = (at for at, each in enumerate(given) if type(each) is not int or not 0 <= each <= MOST_DISTANCE)
    return given[: next(wrong, len(given))]


def unpacked(notes: object, most: int = MOST_OF_BLOCK) -> Mapping[str, Any] | None:
    """Return what a block holds, None where it is none, or has more bytes than `most`."""
    try:
        packed = base64.b64decode(notes if isinstance(notes, str) else "", validate=True)
        unpacker = zlib.decompressobj()
        content = json.loads(unpacker.decompress(packed, most)) if packed else None
    except (ValueError, RecursionError, binascii.Error, zlib.error):
        return None
    return content if isinstance(content, dict) else None


def _table(told: object, read: Callable[[object], Any]) -> Iterator[tuple[int, Any]]:
    """Yield the entries of a table with their numbers: it is told as the number of its first, and all of them."""
    first = first_number(told)
    for number, entry in enumerate(told[1:] if isinstance(told, list) else (), first if first is not None else 0):
        value = read(entry) if first is not None and number <= MOST_NUMBER else None
        if value is not None:
            yield number, value


def first_number(told: object) -> int | None:
    """Return the number of a table's first entry, None where it makes no sense."""
    match told:
        case [int(first), *_] if 0 <= first <= MOST_NUMBER:
            return first
    return None


def _pair(told: object) -> tuple[int, int] | None:
    match told:
        case [int(distance), int(frame)] if distance >= 0:
            return distance, frame
    return None
