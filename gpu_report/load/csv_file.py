"""Read a CSV that may be torn, unsorted or full of text: what is a number is kept, what is not is counted.

A file of nothing but numbers, which is what a recorder writes, is read in pieces, several at a time; any other as a
whole and with more care. Both ways come to the same.
"""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.load.problems import noted
from gpu_report.ordinary_file import LARGEST_ANY_CSV, LARGEST_HEADER, LARGEST_LINE, refuse_special
from gpu_report.usable_cores import threads

Floats = npt.NDArray[np.floating[Any]]
Words = npt.NDArray[np.object_]  # texts
_Piece = tuple[dict[str, Floats], int]  # columns, and the bytes of text that they were
_Span = tuple[int, int]  # where it begins and ends in the file

# What is said of one cell, and of several.
NOT_NUMBERS: Final = (
    "cell of {} holds no number and counts as missing",
    "cells of {} hold no number and count as missing",
)
NO_NUMBER: Final = ["[N/A]", "N/A", "[Not Supported]"]
PIECE_BYTES: Final = 1 << 21  # some 18,000 rows; more at once take more memory, and are no faster
MISSING: Final = np.float32(np.nan)
NO_DECIMALS: Final[Mapping[str, int]] = {}
IN_8_BITS: Final = -1  # in the place of a column's decimals: uint8 where it holds all
SPARE: Final = 2  # decimals: what float32 is off by must not show in the difference of two readings of a counter
FEW: Final = 64  # cells that most often tell already that a column is not of whole numbers, or of one
MORE_ROOM: Final = 1.05  # of rows: lines become longer and shorter over a run
BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
TRUTHS: Final = (b"true", b"True", b"TRUE", b"false", b"False", b"FALSE")  # a column of them is 1 and 0 to pandas
HIGHEST_DIGIT: Final = ord("9")  # signs, points and commas come before it, letters after it
# In a file with any of these a line, or a cell, may not be what it seems.
NOT_PLAIN: Final = (b'"', b"\r", b"\0")


@dataclass(frozen=True, eq=False)
class CsvFile:
    """The rows of a CSV in file order, the asked-for columns only, and what could not be read.

    `numbers` are NaN where a cell is empty or holds no number; float32 where that gives all of a column back at its
    decimals (whole numbers: at none), which halves what a long run takes, else float64. `words` are empty where a cell
    is.
    """

    numbers: dict[str, Floats]
    words: dict[str, Words]
    rows: int
    problems: tuple[str, ...]


def read_csv(
    path: Path, numeric: Sequence[str], text: Sequence[str] = (), decimals: Mapping[str, int] = NO_DECIMALS
) -> CsvFile:
    """Read the columns `numeric` and `text` of `path`; those the file does not have come back empty.

    `decimals` says of some columns how many mean something: what float32 gives back at these is not kept in 64 bits.
    With IN_8_BITS instead a column may come back as uint8.
    A last line without its newline is dropped: a recorder that was killed left it half written. InputError when the
    file cannot be opened or has no header.
    """
    try:
        _refuse_long_header(path)
        plain = None if text else _read_plain(path, numeric, decimals)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    return plain or _read_any(path, numeric, text, decimals)


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


def _read_plain(path: Path, wanted: Sequence[str], decimals: Mapping[str, int]) -> CsvFile | None:
    """Return what a file of nothing but numbers holds, None where it has anything else in it."""
    names, begin, end = _outline(path)
    there = {name: names.index(name) for name in wanted if name in names}
    if not there or begin == end or len(set(names)) < len(names):
        return None
    table = _Table({name: decimals.get(name, 0) for name in there}, end - begin)
    for piece in _pieces(
        lambda span: _parse(path, span, len(names), there, decimals), _spans(path, begin, end), end - begin
    ):
        if piece is None:
            return None
        table.add(*piece)
    torn = path.stat().st_size > end
    problems = (f"{path.name}: the last row was cut short and is left out",) if torn else ()
    return CsvFile(table.columns(wanted), {}, table.filled, problems)


def _pieces(parse: Callable[[_Span], _Piece | None], spans: Iterator[_Span], size: int) -> Iterator[_Piece | None]:
    """Return what was read of each span, of so many bytes in all: several at a time where they are more than one."""
    if size <= PIECE_BYTES:  # threads take longer to start than it takes to read
        return map(parse, spans)
    return _readers().map(parse, spans)  # which begins no more where nobody asks for the rest


@cache
def _readers() -> ThreadPoolExecutor:
    """Return the threads that read pieces of all files."""
    return threads("reading")


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


def _spans(path: Path, begin: int, end: int) -> Iterator[_Span]:
    """Yield where the pieces lie, each of whole lines."""
    with path.open("rb") as file:
        while begin < end:
            file.seek(min(begin + PIECE_BYTES, end))
            _line(path, file)
            stop = min(file.tell(), end)
            yield begin, stop
            begin = stop


def _parse(path: Path, span: _Span, width: int, there: Mapping[str, int], decimals: Mapping[str, int]) -> _Piece | None:
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
    table: npt.NDArray[np.float64] = (
        cells.to_numpy()
    )  # at once: pandas takes a while for each column, whatever its length
    if np.isinf(table).any():
        return None  # infinity is no reading, and must be counted
    in_order = sorted(there, key=lambda name: there[name])  # as they stand in the file
    columns: dict[str, Floats] = {}
    for name, values in zip(in_order, table.T, strict=True):
        is_one = _are_one(values[:FEW]) and _are_one(values)
        column = _small(values[: 1 if is_one else None], decimals.get(name, 0))
        columns[name] = np.broadcast_to(column[0], len(table)) if is_one else column
    return columns, len(data)


def _are_one(values: npt.NDArray[np.float64]) -> bool:
    """Tell whether all values are one, or all are missing; of no value, as of blank lines alone, it is not so."""
    return len(values) > 0 and bool((np.isnan(values) if np.isnan(values[0]) else values == values[0]).all())


def _has_truths(data: bytes) -> bool:
    """Say whether a text may hold a truth; looking for words takes long where all are digits."""
    return int(np.frombuffer(data, np.uint8).max()) > HIGHEST_DIGIT and any(truth in data for truth in TRUTHS)


def _small(values: npt.NDArray[np.float64], decimals: int) -> Floats:
    """Return values as float32 where that gives them back at so many decimals, else as they are; see IN_8_BITS."""
    if decimals == IN_8_BITS:
        small = _in_8_bits(values[:FEW]) if len(values) > FEW else values
        return _small(values, 0) if small is None or (small := _in_8_bits(values)) is None else small
    is_kept = (len(values) <= FEW or _is_kept(values[:FEW], decimals)) and _is_kept(values, decimals)
    return values.astype(np.float32) if is_kept else values


def _in_8_bits(values: npt.NDArray[np.float64]) -> Floats | None:
    """Return values as uint8, None where one is missing, or is another number."""
    with np.errstate(invalid="ignore"):
        small: Any = values.astype(np.uint8)
    return small if (small == values).all() else None


def _is_kept(values: npt.NDArray[np.float64], decimals: int) -> bool:
    """Tell whether float32 gives values back: at so many decimals and SPARE more, or, without any, as they are."""
    with np.errstate(over="ignore"):
        small = values.astype(np.float32)
    same = (np.round(small.astype(np.float64), decimals + SPARE) if decimals else small) == values
    return bool(same.all()) or bool((same | np.isnan(values)).all())


def _of_type(values: Floats, dtype: np.dtype[Any], decimals: int) -> Floats:
    """Return values as they are, or in 64 bits: then as they were before `_small` made them float32."""
    if values.dtype == dtype:
        return values
    return np.round(values.astype(dtype), decimals + SPARE) if decimals > 0 else values.astype(dtype)


class _Table:
    """Columns that are filled piece by piece, from so many bytes of text in all.

    There is room for as many rows as the bytes of the pieces so far let expect, and some more, which costs nothing
    until it is filled. A column that has had one value in all rows, or none, takes no room. `decimals` names the
    columns, with how many decimals of each mean something.
    """

    def __init__(self, decimals: Mapping[str, int], size: int) -> None:
        self._size, self._read, self._room, self._decimals = size, 0, 0, decimals
        self._only: dict[str, Floats] = {}  # the one value that a column has had so far
        self._columns: dict[str, Floats] = {}
        self.filled = 0

    def add(self, piece: dict[str, Floats], size: int) -> None:
        """Add the rows of a piece; a column that float32 does not give back any more becomes float64."""
        self._read += size
        until = self.filled + len(next(iter(piece.values())))
        if until == self.filled:  # blank lines alone
            return
        if until > self._room:
            self._room = int(MORE_ROOM * until * self._size / self._read) + 1
        for name, values in piece.items():
            only = None if name in self._columns else self._only.setdefault(name, values[:1])
            if only is None or not _is_all(values, only):
                self._put(name, values, until)
        self.filled = until

    def _put(self, name: str, values: Floats, until: int) -> None:
        before, decimals = self._columns.get(name, self._only[name]), self._decimals[name]
        wide = np.promote_types(before.dtype, values.dtype)
        if len(before) < self._room or before.dtype != wide:
            column = self._columns[name] = np.empty(self._room, dtype=wide)
            column[: self.filled] = _of_type(before[: self.filled], wide, decimals)
        self._columns[name][self.filled : until] = _of_type(values, wide, decimals)

    def columns(self, wanted: Sequence[str]) -> dict[str, Floats]:
        """Return the columns by name; what the file does not have is NaN."""
        return {name: self._column(name) for name in wanted}

    def _column(self, name: str) -> Floats:
        if name in self._columns:
            return self._columns[name][: self.filled]
        return np.broadcast_to(self._only[name][0] if name in self._only else MISSING, self.filled)


def _is_all(values: Floats, only: Floats) -> bool:
    """Tell whether all values of a piece are one, or all are missing as it is."""
    return values.strides == (0,) and bool(values[0] == only[0] or (np.isnan(values[0]) and np.isnan(only[0])))


# --- anything else ------------------------------------------------------------------------------------------------


def _read_any(path: Path, numeric: Sequence[str], text: Sequence[str], decimals: Mapping[str, int]) -> CsvFile:
    refuse_special(path, LARGEST_ANY_CSV)
    raw = _read_cells(path, {*numeric, *text}, text)
    problems = [f"{path.name} has several columns {name}: the first is read" for name in _repeated(path, numeric, text)]
    if _is_torn(path) and len(raw):
        raw = raw.iloc[:-1]
        problems.append(f"{path.name}: the last row was cut short and is left out")
    numbers: dict[str, Floats] = {}
    for name in numeric:
        numbers[name], bad = _numbers(raw, name, decimals.get(name, 0))
        if bad:
            one, several = (words.format(name) for words in NOT_NUMBERS)
            problems.append(noted(path.name, bad, one, several))
    return CsvFile(numbers, {name: _words(raw, name) for name in text}, len(raw), tuple(problems))


def _read_cells(path: Path, wanted: set[str], text: Iterable[str]) -> pd.DataFrame:
    """Return the wanted columns, as numbers where a whole column allows it; cells beyond the header are ignored.

    Those of `text` are as they are written, equal ones as one object.
    """
    try:
        raw = pd.read_csv(
            path,
            usecols=lambda name: name.strip() in wanted,
            dtype=dict.fromkeys(text, object),
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
    names = [name.strip() for name in raw.columns]
    if names == list(raw.columns):
        return raw
    raw.columns = pd.Index(names)
    return raw.loc[:, ~raw.columns.duplicated()]


def _repeated(path: Path, *wanted: Iterable[str]) -> list[str]:
    """Return the wanted columns that a file has more than once; their names may differ by spaces."""
    names, _, _ = _outline(path)
    return [name for name in itertools.chain(*wanted) if names.count(name) > 1]


def _words(raw: pd.DataFrame, name: str) -> Words:
    if name not in raw:
        return np.full(len(raw), "", dtype=object)
    words = raw[name].to_numpy(dtype=object, copy=True)
    words[raw[name].isna().to_numpy()] = ""
    return words if raw[name].dtype == object else words.astype(str).astype(object)  # numbers under a padded name


def _is_torn(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(0, os.SEEK_END)
        if file.tell() == 0:
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def _numbers(raw: pd.DataFrame, name: str, decimals: int) -> tuple[Floats, int]:
    if name not in raw:
        return np.full(len(raw), np.nan, dtype=np.float32), 0
    cells = raw[name]
    if cells.dtype.kind in "iuf":
        numbers = cells.to_numpy(dtype=np.float64, copy=True)
        bad = infinite = np.isinf(numbers)
    else:
        try:
            numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, copy=True)
        except OverflowError:  # hundreds of digits: pandas means to keep them all
            numbers = np.array([_number(str(cell)) for cell in cells], dtype=np.float64)
        infinite = np.isinf(numbers)
        bad = (infinite | np.isnan(numbers)) & cells.notna().to_numpy()
    numbers[infinite] = np.nan
    return _small(numbers, decimals), int(bad.sum())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return np.nan
