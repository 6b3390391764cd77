"""The tables that `nvidia-smi dmon` and `pmon` write: a header that comes again each screenful, and rows in columns.

    #Date        Time         gpu    pwr  gtemp ...
    #YYYYMMDD    HH:MM:SS     Idx      W      C ...
     20261121    01:05:51       0     79     34 ...

`-o` adds date (D) and time (T), `--format csv` commas. Which columns there are grows with the driver.
"""

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report.errors import InputError
from gpu_report.imports.parsing.csv_file import numbers_of
from gpu_report.imports.parsing.readings import Floats
from gpu_report.imports.parsing.text_file import read_text
from gpu_report.ordinary_file import LARGEST_INDEX

HOW: Final = "log with -o DT, as in `nvidia-smi {tool} -o DT > {tool}.txt`"
_DAY_S: Final = 86_400.0
_HALF_A_DAY_S: Final = 43_200.0  # a clock without a date that falls by more has passed midnight
COMMAND: Final = "command"  # the last column of pmon
_MORE: Final = "more than there are columns"
_ALWAYS: Final = frozenset({"date", "time", "gpu", _MORE})
MOST_HEADERS: Final = 100  # different ones: a log that was appended to by another driver has two


@dataclass(frozen=True, eq=False)
class DmonTable:
    """Rows of one header, as text; `stamp_s` is the time as if it were UTC, NaN where there is none."""

    columns: tuple[str, ...]
    cells: pd.DataFrame
    stamp_s: Floats
    gpu: npt.NDArray[np.int64]
    dropped: int


def header_of(head: str) -> tuple[str, ...]:
    """Return the columns of the first header in a text, none where there is none."""
    lines = (line for line in head.split("\n") if line.startswith("#"))
    return next((columns for line in lines if "gpu" in (columns := _columns(line))), ())


def read_tables(path: Path, tool: str, wanted: Collection[str]) -> tuple[list[DmonTable], list[str]]:
    """Return a log's tables by header, with the columns that are wanted, and what of it could not be read.

    InputError where nothing can be.
    """
    text = read_text(path, f"nvidia-smi {tool}")
    lines = text.split("\n")
    torn = lines.pop().strip()  # behind the last line break: empty, or a row that was being written
    by_header = _by_header(lines)
    if not by_header:
        raise InputError(f"{path} has no rows under a header of nvidia-smi {tool}: {HOW.format(tool=tool)}")
    if not any("time" in columns for columns in by_header):
        raise InputError(f"{path} does not say when its rows are of: {HOW.format(tool=tool)}")
    written_s = _local_s(path.stat().st_mtime)
    tables = [_table(columns, rows, wanted, written_s) for columns, rows in list(by_header.items())[:MOST_HEADERS]]
    problems = []
    if torn and not torn.startswith("#"):
        problems.append(f"The last row of {path} was cut short and was left out.")
    if any("date" not in columns for columns in by_header):
        problems.append(f"{path} has times without dates: its rows were taken to be of the days before it was written.")
    return tables, problems


def _columns(header: str) -> tuple[str, ...]:
    names = header.lstrip("# ").replace(",", " ").split()
    return tuple(name.lower() for name in names)


def _by_header(lines: Sequence[str]) -> dict[tuple[str, ...], list[str]]:
    """Return the rows under each different header, in the order of the file; those before any go with the first.

    A log whose beginning was cut off has its header again after a screenful.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    before: list[str] = []
    rows = before
    for line in lines:
        if line.startswith("#"):
            columns = _columns(line)
            if "gpu" in columns and len(set(columns)) == len(columns):
                rows = found.setdefault(columns, [])
        elif line:
            rows.append(line)
    for columns, mine in list(found.items())[:1]:
        mine[:0] = [line for line in before if len(line.replace(",", " ").split()) == len(columns)]
    return {columns: rows for columns, rows in found.items() if rows}


def _table(columns: tuple[str, ...], rows: Sequence[str], wanted: Collection[str], written_s: float) -> DmonTable:
    cells = _cells(columns, rows, wanted)
    stamp_s = _stamps(cells, written_s)
    gpu = numbers_of(cells["gpu"])
    keep = np.isfinite(stamp_s) & (gpu >= 0) & (gpu <= LARGEST_INDEX)
    dropped = len(rows) - int(keep.sum())
    return DmonTable(columns, cells[keep], stamp_s[keep], gpu[keep].astype(np.int64), dropped)


def _cells(columns: tuple[str, ...], rows: Sequence[str], wanted: Collection[str]) -> pd.DataFrame:
    """Return the cells of whole rows; the last column of pmon, a command, may be empty or have blanks in it."""
    texts = dict.fromkeys({"date", "time", COMMAND} & set(columns), "str")
    comma = "," if "," in rows[0] else " "
    widest = comma.join("-" * (len(columns) + 1))  # pandas takes the first row for as wide as any
    cells = pd.read_csv(
        io.BytesIO("\n".join([widest, *rows, ""]).encode("utf-8", "replace")),
        header=None,
        names=[*columns, _MORE],
        usecols=[name for name in (*columns, _MORE) if name in _ALWAYS or name in wanted],
        index_col=False,
        sep="," if comma == "," else r"\s+",
        skipinitialspace=True,
        na_values=["-"],
        dtype=texts,
        quoting=csv.QUOTE_NONE,
        on_bad_lines="skip",
    )
    cells = cells[1:]
    longer = cells.pop(_MORE).notna()
    if COMMAND in texts and (longer.any() or len(cells) < len(rows)):
        split = [row.split(None, len(columns) - 1) for row in rows]
        whole = [[*row, *[""] * (len(columns) - len(row))] for row in split if len(row) >= len(columns) - 1]
        return pd.DataFrame(whole, columns=list(columns), dtype=str)
    return cells[~longer]


def _stamps(cells: pd.DataFrame, written_s: float) -> Floats:
    """Return when rows are of, in seconds as if the stamps were UTC, NaN where they do not say."""
    if "time" not in cells:
        return np.full(len(cells), np.nan)
    codes, known = pd.factorize(cells["date"] + " " + cells["time"] if "date" in cells else "19700101 " + cells["time"])
    texts = pd.Series(known, dtype=str).str.split().str.join(" ")
    moments = pd.to_datetime(texts, format="%Y%m%d %H:%M:%S", errors="coerce").to_numpy().astype("datetime64[s]")
    seconds = np.append(np.where(np.isnat(moments), np.nan, moments.astype(np.int64).astype(float)), np.nan)[codes]
    return seconds if "date" in cells else _on_days(seconds, written_s)


def _on_days(clock_s: Floats, written_s: float) -> Floats:
    """Return times of day on days: a day passes where the clock goes back, the last row is nearest to `written_s`."""
    known = np.flatnonzero(np.isfinite(clock_s))
    days = np.zeros(len(clock_s))
    days[known[1:]] = np.cumsum(np.diff(clock_s[known]) < -_HALF_A_DAY_S)
    stamps = clock_s + days * _DAY_S
    return stamps + (round((written_s - stamps[known[-1]]) / _DAY_S) * _DAY_S if known.size else 0.0)


def _local_s(wall_s: float) -> float:
    """Return a wall time as the clock on the wall here shows it, as if that were UTC."""
    return datetime.fromtimestamp(wall_s).replace(tzinfo=UTC).timestamp()  # noqa: DTZ006 (the local time is meant)
