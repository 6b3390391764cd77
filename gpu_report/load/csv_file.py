"""Read a CSV that may be torn, unsorted or full of text: what is a number is kept, what is not is counted."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from gpu_report.errors import InputError


@dataclass(frozen=True, eq=False)
class CsvFile:
    """The rows of a CSV in file order, the asked-for columns only, and what could not be read."""

    frame: pd.DataFrame
    problems: tuple[str, ...]


def read_csv(path: Path, numeric: Sequence[str], text: Sequence[str] = ()) -> CsvFile:
    """Read the columns `numeric` (float64, NaN where empty or no number) and `text` (str) of `path`.

    Columns the file does not have come back empty. A last line without its newline is dropped: a recorder that
    was killed left it half written. InputError when the file cannot be opened or has no header.
    """
    raw = _read_cells(path, {*numeric, *text})
    problems = []
    if _is_torn(path) and len(raw):
        raw = raw.iloc[:-1]
        problems.append(f"{path.name}: the last row was cut short and is left out")
    columns: dict[str, pd.Series] = {}
    for name in numeric:
        columns[name], bad = _numbers(raw, name)
        if bad:
            problems.append(f"{path.name}: {bad} cells of {name} hold no number and count as missing")
    for name in text:
        columns[name] = _words(raw[name]) if name in raw else pd.Series("", index=raw.index)
    return CsvFile(pd.DataFrame(columns, index=raw.index).reset_index(drop=True), tuple(problems))


def _read_cells(path: Path, wanted: set[str]) -> pd.DataFrame:
    """Return the wanted columns, as numbers where a whole column allows it; cells beyond the header are ignored."""
    try:
        raw = pd.read_csv(
            path,
            usecols=lambda name: name.strip() in wanted,
            na_values=["[N/A]", "N/A", "[Not Supported]"],
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


def _numbers(raw: pd.DataFrame, name: str) -> tuple[pd.Series, int]:
    if name not in raw:
        return pd.Series(float("nan"), index=raw.index, dtype="float64"), 0
    column = raw[name]
    numbers = pd.to_numeric(column, errors="coerce").astype("float64")
    infinite = np.isinf(numbers.to_numpy())
    if infinite.any():
        numbers = numbers.mask(infinite)
    return numbers, int((numbers.isna() & column.notna()).sum())
