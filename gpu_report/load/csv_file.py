"""Read a CSV that may be torn, unsorted or full of text: what is a number is kept, what is not is counted.

A file of nothing but numbers, which is what a recorder writes, is read in pieces, several at a time; any other as a
whole and with more care. Both ways come to the same.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.load.noting import noted

Floats = npt.NDArray[np.floating[Any]]

# What is said of one cell, and of several.
NOT_NUMBERS: Final = (
    "cell of {} holds no number and counts as missing",
    "cells of {} hold no number and count as missing",
)
NO_NUMBER: Final = ["[N/A]", "N/A", "[Not Supported]"]
PIECE_BYTES: Final = 4 << 20  # some 40,000 rows: a few in flight take little memory
MOST_THREADS: Final = 4  # more are no faster: the pieces are put together by one
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
# In a file with any of these a line, or a cell, may not be what it seems.
NOT_PLAIN: Final = (b'"', b"\r", b"\0")


@dataclass(frozen=True, eq=False)
class CsvFile:
    """The rows of a CSV in file order, the asked-for columns only, and what could not be read.

    `numbers` are NaN where a cell is empty or holds no number; float32 where that holds all of a column exactly (whole
    numbers), which halves what a long run takes, else float64. `words` are empty where a cell is.
    """

    numbers: dict[str, Floats]
    words: dict[str, pd.Series]
    rows: int
    problems: tuple[str, ...]


def read_csv(path: Path, numeric: Sequence[str], text: Sequence[str] = ()) -> CsvFile:
    """Read the columns `numeric` and `text` of `path`; those the file does not have come back empty.

    A last line without its newline is dropped: a recorder that was killed left it half written. InputError when the
    file cannot be opened or has no header.
    """
    try:
        plain = None if text else _read_plain(path, numeric)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return plain or _read_any(path, numeric, text)


# --- nothing but numbers ------------------------------------------------------------------------------------------


def _read_plain(path: Path, wanted: Sequence[str]) -> CsvFile | None:
    """Return what a file of nothing but numbers holds, None where it has anything else in it."""
    names, begin, end, rows = _outline(path)
    there = {name: names.index(name) for name in wanted if name in names}
    if not there or not rows or len(set(names)) < len(names):
        return None
    table = _Table(there, rows)
    with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
        spans = _spans(path, begin, end)
        for piece in pool.map(lambda span: _parse(path, span, len(names), there), spans):
            if piece is None:
                pool.shutdown(cancel_futures=True)
                return None
            table.add(piece)
    torn = path.stat().st_size > end
    problems = (f"{path.name}: the last row was cut short and is left out",) if torn else ()
    return CsvFile(table.columns(wanted), {}, table.filled, problems)


def _outline(path: Path) -> tuple[list[str], int, int, int]:
    """Return the header's names, where the rows begin and end, and how many lines they are; no rows if not plain."""
    with path.open("rb") as file:
        header = file.readline()
        begin = file.tell()
        first = file.readline()
        rows, end, at = 0, begin, begin
        file.seek(begin)
        while block := file.read(PIECE_BYTES):
            rows += block.count(b"\n")
            last = block.rfind(b"\n")
            end = at + last + 1 if last >= 0 else end
            at += len(block)
    plain = first.count(b",") == header.count(b",") and not any(sign in header for sign in NOT_PLAIN)
    names = header.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace").split(",")
    return [name.strip() for name in names], begin, end, rows if plain else 0


def _spans(path: Path, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the pieces lie, each of whole lines."""
    with path.open("rb") as file:
        while begin < end:
            file.seek(min(begin + PIECE_BYTES, end))
            file.readline()
            stop = min(file.tell(), end)
            yield begin, stop
            begin = stop


def _parse(path: Path, span: tuple[int, int], width: int, there: dict[str, int]) -> dict[str, Floats] | None:
    """Return a piece's columns, None where it has anything but numbers in it."""
    with path.open("rb") as file:
        file.seek(span[0])
        data = file.read(span[1] - span[0])
    if any(sign in data for sign in NOT_PLAIN):
        return None
    try:
        cells = pd.read_csv(
            BytesIO(data),
            header=None,
            names=list(range(width)),
            usecols=list(there.values()),
            index_col=False,
            dtype=np.float64,
            na_values=NO_NUMBER,
            low_memory=False,
            encoding_errors="replace",
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError):
        return None
    columns = {name: cells[at].to_numpy() for name, at in there.items()}
    if any(np.isinf(column).any() for column in columns.values()):
        return None  # infinity is no reading, and must be counted
    return {name: _small(column) for name, column in columns.items()}


def _small(values: npt.NDArray[np.float64]) -> Floats:
    """Return values as float32 where that is exact, else as they are."""
    with np.errstate(over="ignore"):
        small = values.astype(np.float32)
    return small if np.array_equal(small, values, equal_nan=True) else values


class _Table:
    """Columns that are filled piece by piece, with room for `rows`."""

    def __init__(self, names: Iterable[str], rows: int) -> None:
        self._room = rows
        self._columns: dict[str, Floats] = {name: np.empty(rows, dtype=np.float32) for name in names}
        self.filled = 0

    def add(self, piece: dict[str, Floats]) -> None:
        """Add the rows of a piece; a column that float32 does not hold exactly any more becomes float64."""
        count = 0
        for name, values in piece.items():
            count = len(values)
            column = self._columns[name]
            if values.dtype == np.float64 and column.dtype == np.float32:
                wide = np.empty(self._room)
                wide[: self.filled] = column[: self.filled]
                column = self._columns[name] = wide
            column[self.filled : self.filled + count] = values
        self.filled += count

    def columns(self, wanted: Sequence[str]) -> dict[str, Floats]:
        """Return the columns by name; what the file does not have is NaN."""
        empty = np.full(self.filled, np.nan, dtype=np.float32)
        return {name: self._columns[name][: self.filled] if name in self._columns else empty.copy() for name in wanted}


# --- anything else ------------------------------------------------------------------------------------------------


def _read_any(path: Path, numeric: Sequence[str], text: Sequence[str]) -> CsvFile:
    raw = _read_cells(path, {*numeric, *text})
    problems = []
    if _is_torn(path) and len(raw):
        raw = raw.iloc[:-1]
        problems.append(f"{path.name}: the last row was cut short and is left out")
    numbers: dict[str, Floats] = {}
    for name in numeric:
        numbers[name], bad = _numbers(raw, name)
        if bad:
            one, several = (words.format(name) for words in NOT_NUMBERS)
            problems.append(noted(path.name, bad, one, several))
    words = {name: _words(raw[name]) if name in raw else pd.Series("", index=raw.index) for name in text}
    words = {name: column.reset_index(drop=True) for name, column in words.items()}
    return CsvFile(numbers, words, len(raw), tuple(problems))


def _read_cells(path: Path, wanted: set[str]) -> pd.DataFrame:
    """Return the wanted columns, as numbers where a whole column allows it; cells beyond the header are ignored."""
    try:
        raw = pd.read_csv(
            path,
            usecols=lambda name: name.strip() in wanted,
            na_values=NO_NUMBER,
            on_bad_lines="skip",
            low_memory=False,
            encoding="utf-8-sig",
            encoding_errors="replace",
        )
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (pd.errors.EmptyDataError, ValueError) as error:
        raise InputError(f"{path} holds no table: expected a header line that names the columns") from error
    raw.columns = raw.columns.str.strip()
    return raw


def _words(column: pd.Series) -> pd.Series:
    return column.astype(str).where(column.notna(), "")


def _is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        if file.tell() == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _numbers(raw: pd.DataFrame, name: str) -> tuple[Floats, int]:
    if name not in raw:
        return np.full(len(raw), np.nan, dtype=np.float32), 0
    numbers = pd.to_numeric(raw[name], errors="coerce").to_numpy(dtype=np.float64, copy=True)
    numbers[np.isinf(numbers)] = np.nan
    return _small(numbers), int((np.isnan(numbers) & raw[name].notna().to_numpy()).sum())
