"""Which line of code of one run is which of another: files are edited between them, and their lines move.

A function is known by its name and its file's, a line in it by its place among the others: matches never cross, as in
`diff`. Which match is right only the source could say, and it is not recorded. Taken is the one by which least changed.
Lines of an installed ultralytics of the same version have not moved.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from gpu_report.analyse.compare.line_times import LineKey, LineTime, RunLines


class FunctionKey(NamedTuple):
    """A function of a process: its name, and its file.

    A package's file is named by its place there, another one by its path where both runs have it, else its base name.
    """

    process: str
    waits: bool
    file: str
    name: str


PACKAGE = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
YOLO = "site-packages/ultralytics/"
SAME_NUMBER = 1e-6  # seconds: which of two matches is taken by which as much changed
Matches = Iterator[tuple[LineTime | None, LineTime | None]]


def match_lines(before: RunLines, after: RunLines) -> Iterator[tuple[LineTime, LineTime]]:
    """Yield the lines of both sides in pairs; of a line that is in one of them only the other one was never there."""
    both = {line.key.file for line in before.lines} & {line.key.file for line in after.lines}
    same_yolo = before.ultralytics is not None and before.ultralytics == after.ultralytics
    old, new = _by_function(before.lines, both), _by_function(after.lines, both)
    for function in dict.fromkeys((*old, *new)):
        match = _match_by_number if same_yolo and function.file.startswith(YOLO) else _match_in_order
        for a, b in match(old.get(function, []), new.get(function, [])):
            if (line := b or a) is not None:
                yield a or before.absent(line.key), b or after.absent(line.key)


def _by_function(lines: Sequence[LineTime], both: set[str]) -> dict[FunctionKey, list[LineTime]]:
    """Return the lines of each function, in order."""
    found: dict[FunctionKey, list[LineTime]] = {}
    for line in sorted(lines, key=lambda line: line.key.line):
        found.setdefault(_function(line.key, both), []).append(line)
    return found


def _function(key: LineKey, both: set[str]) -> FunctionKey:
    path = key.file.replace("\\", "/")
    if package := PACKAGE.search(path):
        return FunctionKey(key.process, key.waits, f"site-packages/{path[package.end() :]}", key.function)
    return FunctionKey(key.process, key.waits, key.file if key.file in both else PurePosixPath(path).name, key.function)


def _match_by_number(old: Sequence[LineTime], new: Sequence[LineTime]) -> Matches:
    """Yield the lines of a function that was not edited in pairs."""
    before, after = ({line.key.line: line for line in lines} for lines in (old, new))
    for number in sorted({*before, *after}):
        yield before.get(number), after.get(number)


def _match_in_order(old: Sequence[LineTime], new: Sequence[LineTime]) -> Matches:
    """Yield the lines of a function in pairs: those in order by which most of their time is the same.

    It is the longest common subsequence (Wagner and Fischer 1974), with seconds in place of the count of characters.
    """
    common = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        for j in range(len(new) - 1, -1, -1):
            paired = _common_s(old[i], new[j]) + common[i + 1][j + 1]
            common[i][j] = max(paired, common[i + 1][j], common[i][j + 1])
    i = j = 0
    while i < len(old) or j < len(new):
        shared_s = _common_s(old[i], new[j]) if i < len(old) and j < len(new) else 0.0
        if shared_s > 0 and common[i][j] == shared_s + common[i + 1][j + 1]:
            yield old[i], new[j]
            i, j = i + 1, j + 1
        elif j == len(new) or (i < len(old) and common[i][j] == common[i + 1][j]):
            yield old[i], None
            i += 1
        else:
            yield None, new[j]
            j += 1


def _common_s(old: LineTime, new: LineTime) -> float:
    """Return the idle GPU seconds that two lines have in common; a little more where they have the same number."""
    return min(old.mean_s, new.mean_s) + (SAME_NUMBER if old.key.line == new.key.line else 0.0)
