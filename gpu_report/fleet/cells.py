"""Values of a run as cells of a table: of their column's type, without secrets, and null for what is none."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from gpu_report.fleet.tables import TABLES, TableColumn
from gpu_report.run_folder import finite
from gpu_report.without_secrets import safe_text

Cell = str | int | float | bool | None
Rows = list[list[Cell]]

LONGEST_TEXT = 4000  # characters: more is no name, path or sentence
LARGEST_WHOLE = 2**63 - 1
DIGITS = 9  # of a float: what lies beyond is noise, and takes most of the room of a compressed column
MICROSECONDS = 1_000_000
EARLIEST_S, LATEST_S = -62_135_596_800, 253_402_300_799  # the years 1 to 9999, which all readers have


def row(table: str, values: Mapping[str, object]) -> list[Cell]:
    """Return a row of a table; KeyError where a column is missing among the values or unknown."""
    columns = TABLES[table]
    if len(values) != len(columns):
        raise KeyError(f"{table}: {set(values).symmetric_difference(column.name for column in columns)}")
    return [_cell(column, values[column.name]) for column in columns]


def _cell(column: TableColumn, value: object) -> Cell:
    if value is None:
        return None
    if column.type == "string":
        return text(str(value))
    if column.type == "bool":
        return bool(value)
    number = finite(value.item() if isinstance(value, np.generic) else value)
    return None if number is None else _number(column, number)


def _number(column: TableColumn, number: float) -> Cell:
    if column.type == "timestamp":
        return round(number * MICROSECONDS) if EARLIEST_S <= number <= LATEST_S else None
    if column.type == "int64":
        return int(number) if abs(number) <= LARGEST_WHOLE else None
    return float(f"{number:.{DIGITS}g}")


@lru_cache(8192)
def text(value: str) -> str:
    """Return a text as UTF-8 holds it, without secrets and without the rest of a very long one."""
    written = value[:LONGEST_TEXT].encode("utf-8", "backslashreplace").decode("utf-8")
    return safe_text(written)


def last_part(path: object) -> str | None:
    """Return the last part of a path or URL, None where there is none."""
    parts = [part for part in str(path).replace("\\", "/").split("/") if part.strip()] if path else []
    return parts[-1] if parts else None


def columns_of(table: str, rows: Sequence[Sequence[Cell]]) -> dict[str, list[Cell]]:
    """Return rows as columns by name."""
    names = [column.name for column in TABLES[table]]
    return {name: [each[place] for each in rows] for place, name in enumerate(names)}
