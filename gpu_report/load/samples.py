"""samples.csv, host.csv and processes.csv as typed tables on the run's clock. Missing stays missing."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.load.csv_file import MISSING, CsvFile, Floats, read_csv
from gpu_report.load.problems import noted
from gpu_report.load.run_clock import RunClock, plausible, run_times
from gpu_report.load.run_json import LARGEST_INDEX, MOST_GPUS

QUANTITIES = [column.name for column in schema.GPU_QUANTITIES]
RING_QUANTITIES = [column.name for column in schema.RING_QUANTITIES]
HOST_QUANTITIES = [column.name for column in schema.HOST_QUANTITIES]
WALL, MONO = (column.name for column in schema.TIME_COLUMNS)
BESIDE = {schema.RING_CSV: ["gpu", *RING_QUANTITIES], schema.HOST_CSV: HOST_QUANTITIES}
# Percentages of one core, which a process with several threads exceeds.
OF_ONE_CORE = {"main_cpu_pct", "busiest_worker_cpu_pct", "workers_cpu_pct"}
# Shares of the time between two looks, which on a busy host lie further apart than the ticks they are stamped with.
PRESSURES = {name for name in HOST_QUANTITIES if name.endswith("_pressure_pct")}
LATE_PCT = 150.0  # a look half a tick late; more is no pressure
LARGEST_PID = 2**32
UNKNOWN_OWNER = "unknown"
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]
Columns = dict[str, Floats]

# What is wrong with rows and readings, said of one and of several.
UNPLACED = (
    "row has no usable time stamp or GPU and is left out",
    "rows have no usable time stamp or GPU and are left out",
)
REPEATED = (
    "row repeats the time stamp of another and is left out",
    "rows repeat the time stamp of another and are left out",
)
IMPOSSIBLE = (
    "reading of {} is impossible and counts as missing",
    "readings of {} are impossible and count as missing",
)

PERCENTAGES = {name for name in (*QUANTITIES, *HOST_QUANTITIES) if name.endswith("_pct")} - OF_ONE_CORE


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples table (see model.Run), the clock it defines, and what could not be read."""

    frame: pd.DataFrame
    clock: RunClock
    problems: tuple[str, ...]


def load_samples(path: Path) -> Samples:
    """Read samples.csv; InputError when it cannot be opened or has not one valid row."""
    csv = read_csv(path, [WALL, MONO, "gpu", *QUANTITIES])
    columns, problems = csv.numbers, list(csv.problems)
    if np.isnan(columns["gpu"]).all() and csv.rows:
        columns["gpu"] = np.zeros(csv.rows)
        problems.append(f"{path.name}: no column says which GPU a row is of; all are taken to be GPU 0")
    clock = _clocked(columns, path, problems)
    tidy = _tidy(columns, path.name, problems, by_gpu=True)
    if not len(tidy):
        raise InputError(f"{path} has not one valid row: none has both a time and a GPU")
    return Samples(tidy, clock, tuple(problems))


def _clocked(columns: Columns, path: Path, problems: list[str]) -> RunClock:
    """Return the clock that a table's stamps define, which it puts into the place of them, as `t_s`."""
    wall, mono = (columns.pop(name).astype(np.float64, copy=False) for name in (WALL, MONO))
    if not (np.isfinite(wall).any() or np.isfinite(mono).any()):
        raise InputError(f"{path} has not one valid row: nothing was recorded, or it is no samples CSV")
    columns["t_s"], boots, stepped = run_times(np.where(np.isnan(wall), mono, wall), mono)
    if stepped:
        problems.append(f"{path.name}: the clock was set back during the recording; rows after it are moved on")
    return RunClock(boots)


class Ahead:
    """The large tables of numbers beside samples.csv, read while that one is: their clock is known only after it.

    Where the recording spans several boots, they are read anew with the wall clock.
    """

    def __init__(self, folder: Path) -> None:
        pool = ThreadPoolExecutor(1, thread_name_prefix="reading ahead")
        self._begun = {
            folder / name: pool.submit(read_csv, folder / name, [MONO, *numeric]) for name, numeric in BESIDE.items()
        }
        pool.shutdown(wait=False)

    def cancel(self) -> None:
        """Begin nothing more."""
        for begun in self._begun.values():
            begun.cancel()

    def take(self, path: Path) -> CsvFile | None:
        """Return what was read of a file with the monotonic clock as its only time, None where that was not begun."""
        begun = self._begun.pop(path, None)
        return begun.result() if begun else None


def load_ring(path: Path, clock: RunClock, ahead: Ahead | None = None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read ring.csv, what the driver kept between ticks; an empty table when there is none."""
    columns, _, problems = _load_optional(path, BESIDE[schema.RING_CSV], [], clock, ahead)
    return _tidy(columns, path.name, problems, by_gpu=True, merge=True), tuple(problems)


def load_host(path: Path, clock: RunClock, ahead: Ahead | None = None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read host.csv, an empty table when there is none."""
    columns, _, problems = _load_optional(path, BESIDE[schema.HOST_CSV], [], clock, ahead)
    return _tidy(columns, path.name, problems, by_gpu=False), tuple(problems)


def load_processes(path: Path, clock: RunClock) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read processes.csv, an empty table when there is none."""
    numbers, texts = ["gpu", "pid", "memory_used_mib", "gpu_util_pct"], ["name", "change", "owner"]
    columns, words, problems = _load_optional(path, numbers, texts, clock)
    _blank_incredible(columns, ["gpu_util_pct"], path.name, problems)
    # a file from before there were owners tells none
    words["owner"] = words["owner"].where(words["owner"].isin(schema.PROCESS_OWNERS), UNKNOWN_OWNER)
    known = plausible(columns["t_s"].astype(np.float64, copy=False)) & _are_whole(columns["pid"], LARGEST_PID)
    known &= _are_whole(columns["gpu"], LARGEST_INDEX)
    frame = pd.DataFrame({**columns, **words})
    frame = frame[known & frame["change"].isin(schema.PROCESS_CHANGES)].sort_values("t_s", kind="stable")
    frame = frame.astype({"gpu": "int64", "pid": "int64", "memory_used_mib": float, "gpu_util_pct": float})
    order = ["t_s", "gpu", "pid", "name", "memory_used_mib", "change", "owner", "gpu_util_pct"]
    return frame[order].reset_index(drop=True), tuple(problems)


def _load_optional(
    path: Path, numeric: list[str], text: list[str], clock: RunClock, ahead: Ahead | None = None
) -> tuple[Columns, dict[str, pd.Series], list[str]]:
    """Return a file's columns and texts with `t_s`, and its problems; all empty when there is none."""
    try:
        csv = ahead.take(path) if ahead and clock.is_of_one_boot else None
        if csv is None and clock.is_of_one_boot:
            csv = read_csv(path, [MONO, *numeric], text)
        if csv is None or not np.isfinite(csv.numbers[MONO]).all():
            csv = read_csv(path, [WALL, MONO, *numeric], text)
    except InputError as error:
        columns: Columns = {name: np.empty(0) for name in ["t_s", *numeric]}
        words = {name: pd.Series(dtype="str") for name in text}
        return columns, words, [str(error)] if path.exists() else []
    columns = dict(csv.numbers)
    walls, monos = columns.pop(WALL, None), columns.pop(MONO)
    times = (
        clock.of_one_boot(monos) if walls is None else clock.times(walls.astype(np.float64), monos.astype(np.float64))
    )
    return {"t_s": times, **columns}, csv.words, list(csv.problems)


def _tidy(columns: Columns, name: str, problems: list[str], *, by_gpu: bool, merge: bool = False) -> pd.DataFrame:
    """Drop rows without a stamp, sort, keep the last of duplicates (or merge them), and blank what cannot be true.

    It takes the columns one by one out of `columns`: a week of eight GPUs is not to be held twice.
    """
    valid = plausible(columns["t_s"].astype(np.float64, copy=False))
    if by_gpu:
        valid &= _are_whole(columns["gpu"], LARGEST_INDEX)
        valid &= _are_of_few(columns["gpu"], valid, name, problems)
    _note(problems, name, int((~valid).sum()), *UNPLACED)
    order = _order(columns["t_s"], columns.get("gpu") if by_gpu else None, valid)
    tidy: dict[str, npt.NDArray[Any]] = {"t_s": columns.pop("t_s")[order]}
    if by_gpu:
        tidy["gpu"] = columns.pop("gpu")[order].astype(np.int32)
    again = _repeats(list(tidy.values()))
    if not merge and again.any():
        _note(problems, name, int(again.sum()), *REPEATED)
        order, tidy = order[~again], {key: values[~again] for key, values in tidy.items()}
    keys = [*reversed(tidy)]
    _blank_incredible(columns, list(columns), name, problems, valid)
    tidy |= {column: _taken(columns.pop(column), order) for column in list(columns)}
    frame = pd.DataFrame(tidy, copy=False)
    return _merged(frame, keys, again) if merge and again.any() else frame


def _taken(column: Floats, order: Rows) -> Floats:
    """Return the rows of a column; one that was never read takes no room."""
    never = bool(np.isnan(column[:1]).all()) and bool(np.isnan(column).all())
    return np.broadcast_to(MISSING, len(order)) if never else column[order]


def _are_of_few(gpus: Floats, valid: Bools, name: str, problems: list[str]) -> Bools:
    """Tell which rows are of the first MOST_GPUS: a file that names thousands is no recording, and takes as long."""
    if not valid.any() or gpus[valid].max() < MOST_GPUS:
        return valid
    seen = np.unique(gpus[valid])
    if len(seen) > MOST_GPUS:
        problems.append(f"{name} has rows of {len(seen):,} GPUs: those after the first {MOST_GPUS:,} are left out")
    few: Bools = gpus <= seen[:MOST_GPUS][-1]
    return few


def _order(t_s: Floats, gpus: Floats | None, valid: Bools) -> Rows:
    """Return the valid rows by GPU and time, those of one moment as they stand in the file."""
    if gpus is None:
        return _by_time(t_s, np.flatnonzero(valid))
    groups = [np.flatnonzero(valid & (gpus == gpu)) for gpu in np.unique(gpus[valid])]
    return np.concatenate([_by_time(t_s, rows) for rows in groups]) if groups else np.empty(0, dtype=np.intp)


def _by_time(t_s: Floats, rows: Rows) -> Rows:
    times = t_s[rows]
    return rows if (np.diff(times) >= 0).all() else rows[np.argsort(times, kind="stable")]


def _repeats(keys: Sequence[Floats]) -> Bools:
    """Return which of the sorted rows have a following row with the same keys."""
    same = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        same &= key[1:] == key[:-1]
    return np.append(same, False)[: len(keys[0])]


def _merged(frame: pd.DataFrame, keys: list[str], again: Bools) -> pd.DataFrame:
    """Return the sorted `frame` with the rows of one moment as one; there are few, and grouping them all is slow."""
    several = again | np.concatenate([[False], again[:-1]])
    merged: pd.DataFrame = frame[several].groupby(keys, as_index=False).last()
    joined = pd.concat([frame[~several], merged], ignore_index=True).sort_values(keys, kind="stable")
    tidy: pd.DataFrame = joined[frame.columns.tolist()].reset_index(drop=True)
    return tidy


def _are_whole(numbers: Floats, largest: int) -> Bools:
    """Return which cells hold a whole number from 0 to `largest`."""
    whole: Bools = (numbers >= 0) & (numbers <= largest) & (numbers == np.floor(numbers))
    return whole


def _blank_incredible(
    columns: Columns, quantities: Sequence[str], name: str, problems: list[str], valid: Bools | None = None
) -> None:
    """Blank percentages outside 0 to 100 and negative readings: no driver means them."""
    for quantity in quantities:
        values = columns[quantity]
        if quantity in PRESSURES:
            values = columns[quantity] = np.where(values <= LATE_PCT, np.minimum(values, 100.0), values)
        wrong = values < 0
        if quantity in PERCENTAGES:
            wrong |= values > 100
        if wrong.any():
            counted = int((wrong if valid is None else wrong & valid).sum())
            _note(problems, name, counted, *(words.format(quantity) for words in IMPOSSIBLE))
            columns[quantity] = np.where(wrong, np.nan, values).astype(values.dtype)


def _note(problems: list[str], name: str, count: int, one: str, several: str) -> None:
    if count:
        problems.append(noted(name, count, one, several))
