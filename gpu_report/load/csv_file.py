"""Read a CSV that may be torn, unsorted or full of text: what is a number is kept, what is not is counted.

A file of nothing but numbers, which is what a recorder writes, is read in pieces, several at a time; any other as a
whole and with more care. Both ways come to the same.
"""

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.load.problems import noted
from gpu_report.ordinary_file import LARGEST_ANY_CSV, LARGEST_HEADER, LARGEST_LINE, refuse_special

Floats = npt.NDArray[np.floating[Any]]
_Piece = tuple[dict[str, Floats], int]

# What is said of one cell, and of several.
NOT_NUMBERS: Final = (
    "cell of {} holds no number and counts as missing",
    "cells of {} hold no number and count as missing",
)
NO_NUMBER: Final = ["[N/A]", "N/A", "[Not Supported]"]
PIECE_BYTES: Final = 1 << 21  # some 18,000 rows; more at once take more memory, and are no faster
MISSING: Final = np.float32(np.nan)
FEW: Final = 64  # cells that most often tell already that a column is not of whole numbers
MORE_ROOM: Final = 1.05  # of rows: lines become longer and shorter over a run
MOST_THREADS: Final = 4  # more are no faster: the pieces are put together by one
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
TRUTHS: Final = (b"true", b"True", b"TRUE", b"false", b"False", b"FALSE")  # a column of them is 1 and 0 to pandas
HIGHEST_DIGIT: Final = ord("9")  # signs, points and commas come before it, letters after it
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
        _refuse_long_header(path)
        plain = None if text else _read_plain(path, numeric)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return plain or _read_any(path, numeric, text)


def _refuse_long_header(path: Path) -> None:
    with path.open("rb") as file:
        if len(file.readline(LARGEST_HEADER + 1)) > LARGEST_HEADER:
            raise InputError(f"{path} has a first line of more than {LARGEST_HEADER:,} bytes: it is no table of ours")


def _line(path: Path, file: BinaryIO) -> bytes:
    """Return the rest of a line; InputError for one that no recorder, and no crash of a machine, leaves behind."""
    line = file.readline(LARGEST_LINE + 1)
    if len(line) > LARGEST_LINE:
        raise _too_long(path)
    return line


def _too_long(path: Path) -> InputError:
    return InputError(f"{path} has a line of more than {LARGEST_LINE:,} bytes: it is no table of ours")


# --- nothing but numbers ------------------------------------------------------------------------------------------


def _read_plain(path: Path, wanted: Sequence[str]) -> CsvFile | None:
    """Return what a file of nothing but numbers holds, None where it has anything else in it."""
    names, begin, end = _outline(path)
    there = {name: names.index(name) for name in wanted if name in names}
    if not there or begin == end or len(set(names)) < len(names):
        return None
    table = _Table(there, end - begin)
    with ThreadPoolExecutor(min(MOST_THREADS, os.cpu_count() or 1)) as pool:
        spans = _spans(path, begin, end)
        for piece in pool.map(lambda span: _parse(path, span, len(names), there), spans):
            if piece is None:
                pool.shutdown(cancel_futures=True)
                return None
            table.add(*piece)
    torn = path.stat().st_size > end
    problems = (f"{path.name}: the last row was cut short and is left out",) if torn else ()
    return CsvFile(table.columns(wanted), {}, table.filled, problems)


def _outline(path: Path) -> tuple[list[str], int, int]:
    """Return the header's names, and where the rows begin and end: at once where they are not plain."""
    with path.open("rb") as file:
        header = file.readline()
        begin = file.tell()
        first = _line(path, file)
        end = _last_line_end(path, file, begin)
    plain = first.count(b",") == header.count(b",") and not any(sign in header for sign in NOT_PLAIN)
    names = header.removeprefix(BYTE_ORDER_MARK).decode("utf-8", "replace").split(",")
    return [name.strip() for name in names], begin, end if plain else begin


def _last_line_end(path: Path, file: BinaryIO, begin: int) -> int:
    """Return where the last whole line ends, `begin` where there is none; InputError for a last line without end."""
    at = size = file.seek(0, os.SEEK_END)
    while at > begin:
        if size - at > LARGEST_LINE:
            raise _too_long(path)
        until, at = at, max(at - PIECE_BYTES, begin)
        file.seek(at)
        if (last := file.read(until - at).rfind(b"\n")) >= 0:
            return at + last + 1
    return begin


def _spans(path: Path, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the pieces lie, each of whole lines."""
    with path.open("rb") as file:
        while begin < end:
            file.seek(min(begin + PIECE_BYTES, end))
            _line(path, file)
            stop = min(file.tell(), end)
            yield begin, stop
            begin = stop


def _parse(path: Path, span: tuple[int, int], width: int, there: dict[str, int]) -> _Piece | None:
    """Return a piece's columns and how many bytes they were, None where it has anything but numbers in it."""
    with path.open("rb") as file:
        file.seek(span[0])
        data = file.read(span[1] - span[0])
    if not data or any(sign in data for sign in NOT_PLAIN) or _has_truths(data):
        return None  # nothing where there were rows: the file is being written anew
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
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OverflowError):
        return None
    columns = {name: cells[at].to_numpy() for name, at in there.items()}
    if any(np.isinf(column).any() for column in columns.values()):
        return None  # infinity is no reading, and must be counted
    return {name: _small(column) for name, column in columns.items()}, len(data)


def _has_truths(data: bytes) -> bool:
    """Say whether a text may hold a truth; looking for words takes long where all are digits."""
    return int(np.frombuffer(data, np.uint8).max()) > HIGHEST_DIGIT and any(truth in data for truth in TRUTHS)


def _small(values: npt.NDArray[np.float64]) -> Floats:
    """Return values as float32 where that is exact, else as they are."""
    with np.errstate(over="ignore"):
        if not _is_same(values[:FEW].astype(np.float32), values[:FEW]):
            return values
        small = values.astype(np.float32)
    return small if _is_same(small, values) else values


def _is_same(small: Floats, values: Floats) -> bool:
    same = small == values
    return bool(same.all()) or bool((same | np.isnan(values)).all())


class _Table:
    """Columns that are filled piece by piece, from so many bytes of text in all.

    There is room for as many rows as the bytes of the pieces so far let expect, and some more, which costs nothing
    until it is filled.
    """

    def __init__(self, names: Iterable[str], size: int) -> None:
        self._size, self._read, self._room = size, 0, 0
        self._columns: dict[str, Floats] = {name: np.empty(0, dtype=np.float32) for name in names}
        self.filled = 0

    def add(self, piece: dict[str, Floats], size: int) -> None:
        """Add the rows of a piece; a column that float32 does not hold exactly any more becomes float64."""
        self._read += size
        until = self.filled + len(next(iter(piece.values())))
        if until > self._room:
            self._room = int(MORE_ROOM * until * self._size / self._read) + 1
        for name, values in piece.items():
            column = self._columns[name]
            wide = np.promote_types(column.dtype, values.dtype)
            if len(column) < self._room or column.dtype != wide:
                column = self._columns[name] = self._moved(column, wide)
            column[self.filled : until] = values
        self.filled = until

    def _moved(self, column: Floats, dtype: np.dtype[Any]) -> Floats:
        moved = np.empty(self._room, dtype=dtype)
        moved[: self.filled] = column[: self.filled]
        return moved

    def columns(self, wanted: Sequence[str]) -> dict[str, Floats]:
        """Return the columns by name; what the file does not have is NaN."""
        empty: Floats = np.broadcast_to(MISSING, self.filled)
        return {name: self._columns[name][: self.filled] if name in self._columns else empty for name in wanted}


# --- anything else ------------------------------------------------------------------------------------------------


def _read_any(path: Path, numeric: Sequence[str], text: Sequence[str]) -> CsvFile:
    refuse_special(path, LARGEST_ANY_CSV)
    raw = _read_cells(path, {*numeric, *text})
    problems = [f"{path.name} has several columns {name}: the first is read" for name in _repeated(path, numeric, text)]
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
    return raw.loc[:, ~raw.columns.duplicated()]


def _repeated(path: Path, *wanted: Iterable[str]) -> list[str]:
    """Return the wanted columns that a file has more than once; their names may differ by spaces."""
    names, _, _ = _outline(path)
    return [name for name in itertools.chain(*wanted) if names.count(name) > 1]


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
    try:
        numbers = pd.to_numeric(raw[name], errors="coerce").to_numpy(dtype=np.float64, copy=True)
    except OverflowError:  # hundreds of digits: pandas means to keep them all
        numbers = np.array([_number(str(cell)) for cell in raw[name]], dtype=np.float64)
    numbers[np.isinf(numbers)] = np.nan
    return _small(numbers), int((np.isnan(numbers) & raw[name].notna().to_numpy()).sum())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
