"""samples.csv, host.csv and processes.csv as typed tables on the run's clock. Missing stays missing."""

from collections.abc import Container, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.load.csv_file import IN_8_BITS, PIECE_BYTES, CsvFile, Floats, Words, read_csv
from gpu_report.load.limits import MOST_BOOTS, SHORT, Limits
from gpu_report.load.problems import noted, too_many
from gpu_report.load.run_clock import RunClock, are_of_our_days, plausible, restarts, run_times, run_together
from gpu_report.ordinary_file import LARGEST_INDEX, MOST_GPUS
from gpu_report.run_folder import LARGEST_STAMP_S

QUANTITIES = [column.name for column in schema.GPU_QUANTITIES]
RING_QUANTITIES = [column.name for column in schema.RING_QUANTITIES]
HOST_QUANTITIES = [column.name for column in schema.HOST_QUANTITIES]
WALL, MONO = (column.name for column in schema.TIME_COLUMNS)
BESIDE = {schema.RING_CSV: ["gpu", *RING_QUANTITIES], schema.HOST_CSV: HOST_QUANTITIES}
# Percentages of one core, which a process with several threads exceeds.
OF_ONE_CORE = {"main_cpu_pct", "busiest_worker_cpu_pct", "workers_cpu_pct"}
# Shares of the time between two looks, which on a busy host lie further apart than the ticks they are stamped with.
PRESSURES = {name for name in HOST_QUANTITIES if name.endswith("_pressure_pct")}
# What float32 gives back at these is kept so: half of what a long run takes. Whole numbers of a GPU take 8 bits until
# they are sorted: most are utilisation.
DECIMALS = {"gpu": IN_8_BITS}
DECIMALS |= {column.name: column.decimals or IN_8_BITS for column in schema.GPU_QUANTITIES}
DECIMALS |= {column.name: column.decimals for column in schema.HOST_QUANTITIES}
LATE_PCT = 150.0  # a look half a tick late; more is no pressure
LARGEST_PID = 2**32
SAME_MOMENT_S = 0.0005
MOST_A_SECOND = 200  # rows of a GPU: the recorder and the driver make 50 at most
LARGEST_READING = 1e15  # a board that takes 1 kW has used 1e12 J after thirty years, and nothing has more of anything
# By unit: GPUs switch themselves off near 110 °C, draw 2 kW at most and clock under 10 GHz (all with much room).
LARGEST_OF_UNIT = {"_c": 250.0, "_w": 1e5, "_mhz": 1e5}
LONGEST_NAME = 1000  # characters of a process's
UNKNOWN_OWNER = "unknown"
PART_ROWS = 1 << 18
Bools = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.int32]
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
class SamplesTable:
    """The samples table (see model.Run), the clock it defines, and what could not be read.

    `ticks` has a row (t_s, gpu) for each time the recorder looked, of the file `ticks_name`: `frame` itself, or
    host.csv where no GPU was recorded. Where that has no row either, `ticks_name` is None, and only the first and the
    last of other stamps are known.
    """

    frame: pd.DataFrame
    clock: RunClock
    problems: tuple[str, ...]
    ticks: pd.DataFrame
    ticks_name: str | None

    @property
    def looks(self) -> pd.DataFrame:
        """Return the rows that tell at which interval the recorder looked, none where that is not known."""
        return self.frame if self.ticks_name is None else self.ticks

    @cached_property
    def ticks_s(self) -> npt.NDArray[np.float64]:
        """Return when the recorder looked, in order: at several GPUs at once."""
        return np.unique(self.ticks["t_s"].to_numpy(dtype=float))


def load_samples(path: Path) -> SamplesTable:
    """Read samples.csv; InputError when it cannot be opened or has not one valid row."""
    csv = read_csv(path, [WALL, MONO, "gpu", *QUANTITIES], decimals=DECIMALS)
    columns, problems = csv.numbers, list(csv.problems)
    if np.isnan(columns["gpu"]).all() and csv.rows:
        columns["gpu"] = np.zeros(csv.rows)
        problems.append(f"{path.name}: no column says which GPU a row is of; all are taken to be GPU 0")
    clock = _clocked(columns, path, problems)
    tidy = _tidy(columns, path.name, problems, by_gpu=True)
    if not len(tidy):
        raise InputError(f"{path} has not one valid row: none has both a time and a GPU")
    return SamplesTable(tidy, clock, tuple(problems), tidy, path.name)


def no_samples(folder: Path, stamps: Sequence[tuple[float, float | None]]) -> SamplesTable:
    """Return an empty table on the clock of host.csv, of a recording without a GPU.

    Where host.csv has no row, the clock is that of `stamps` (wall_s, mono_s) of what else was written; InputError
    without any.
    """
    path = folder / schema.HOST_CSV
    try:
        return _on_clock_of(read_csv(path, [WALL, MONO]).numbers, path, path.name)
    except InputError:
        if not stamps:
            raise
    of_events = dict(zip((WALL, MONO), np.array(stamps, dtype=float).T, strict=True))
    found = _on_clock_of(of_events, path, None)
    ticks = found.ticks.iloc[[0, -1]].drop_duplicates()
    missing = f"{path.name} {'has no row' if path.exists() else 'is missing'}: CPU and host memory are not known"
    return replace(found, ticks=ticks, problems=(*found.problems, missing))


def _on_clock_of(columns: Columns, path: Path, ticks_name: str | None) -> SamplesTable:
    """Return an empty table on the clock of these stamps; InputError where not one is valid."""
    problems = list[str]()
    clock = _clocked(columns, path, problems)
    ticks = _tidy(columns | {"gpu": np.zeros(len(columns["t_s"]))}, path.name, [], by_gpu=True)  # load_host notes it
    if not len(ticks):
        raise InputError(f"{path} has not one valid row")
    return SamplesTable(_empty(QUANTITIES), clock, tuple(problems), ticks, ticks_name)


def _empty(quantities: Sequence[str]) -> pd.DataFrame:
    nothing: Columns = {name: np.empty(0) for name in ["t_s", "gpu", *quantities]}
    return _tidy(nothing, "", [], by_gpu=True)


def _clocked(columns: Columns, path: Path, problems: list[str]) -> RunClock:
    """Return the clock that a table's stamps define, which it puts into the place of them, as `t_s`."""
    given = bool(np.isfinite(columns[WALL]).any())
    wall, mono = (_stamps(columns.pop(name)) for name in (WALL, MONO))
    if not (np.isfinite(wall).any() or np.isfinite(mono).any()):
        is_of_run = (path.parent / schema.RUN_JSON).is_file()
        how = "" if is_of_run else ". A log of another tool becomes a run by `gpu-report import LOG --output run`"
        raise InputError(f"{path} has not one valid row: nothing was recorded, or it is no samples CSV{how}")
    if given and not np.isfinite(wall).any():
        problems.append(f"{path.name}: wall_s is no time in seconds since 1970")
    wall = np.where(np.isnan(wall), mono, wall)
    if not _is_sound(wall, mono):
        problems.append(f"{path.name}: mono_s does not go on as wall_s does, in seconds; wall_s is used alone")
        mono = np.full(len(wall), np.nan)
    times, boots, stepped = run_times(wall, mono)
    if not (near := plausible(times)).all():  # the run does not begin with a row that is none
        times, boots, stepped = run_times(np.where(near, wall, np.nan), np.where(near, mono, np.nan))
    columns["t_s"] = times
    if stepped:
        problems.append(f"{path.name}: the clock was set back during the recording; rows after it are moved on")
    return RunClock(boots)


def _is_sound(wall: npt.NDArray[np.float64], mono: npt.NDArray[np.float64]) -> bool:
    """Tell whether the monotonic clock is one; where the wall clock is none, there is nothing to tell it by."""
    return not are_of_our_days(wall) or (restarts(wall, mono) <= MOST_BOOTS and run_together(wall, mono))


def _stamps(column: Floats) -> npt.NDArray[np.float64]:
    """Return a column of times, NaN for what cannot be one."""
    stamps = column.astype(np.float64, copy=False)
    far = (stamps > LARGEST_STAMP_S) | (stamps < -LARGEST_STAMP_S)
    return np.where(far, np.nan, stamps) if far.any() else stamps


class BackgroundReads:
    """Large tables of numbers beside samples.csv, read while that one is: their clock is known only after it.

    A small one is read sooner than a thread starts. Where the recording spans several boots, they are read anew with
    the wall clock.
    """

    def __init__(self, folder: Path) -> None:
        large = {name: numeric for name, numeric in BESIDE.items() if _bytes_of(folder / name) > PIECE_BYTES}
        pool = ThreadPoolExecutor(1, thread_name_prefix="reading ahead")
        self._begun = {
            folder / name: pool.submit(read_csv, folder / name, [MONO, *numeric], decimals=DECIMALS)
            for name, numeric in large.items()
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


def _bytes_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def load_ring(
    path: Path, clock: RunClock, ahead: BackgroundReads | None = None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read ring.csv, what the driver kept between ticks; an empty table when there is none."""
    columns, _, problems = load_optional(path, BESIDE[schema.RING_CSV], [], clock, ahead)
    try:
        return _tidy(columns, path.name, problems, by_gpu=True, merge=True), tuple(problems)
    except InputError as error:
        return _empty(RING_QUANTITIES), (f"{error}; it is left out",)


def load_host(
    path: Path, clock: RunClock, ahead: BackgroundReads | None = None
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read host.csv, an empty table when there is none."""
    columns, _, problems = load_optional(path, BESIDE[schema.HOST_CSV], [], clock, ahead)
    return _tidy(columns, path.name, problems, by_gpu=False), tuple(problems)


def load_processes(path: Path, clock: RunClock, limits: Limits = SHORT) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read processes.csv, an empty table when there is none."""
    numbers, texts = ["gpu", "pid", "memory_used_mib", "gpu_util_pct"], ["name", "change", "owner"]
    columns, words, problems = load_optional(path, numbers, texts, clock)
    _blank_incredible(columns, ["memory_used_mib", "gpu_util_pct"], path.name, problems)
    known = plausible(columns["t_s"].astype(np.float64, copy=False)) & are_pids(columns["pid"])
    known &= _are_whole(columns["gpu"], LARGEST_INDEX) & is_one_of(words["change"], schema.PROCESS_CHANGES)
    rows = _by_time(columns["t_s"], _places(known))
    pids = list(dict.fromkeys(columns["pid"][rows].astype(np.int64).tolist()))
    if len(pids) > limits.processes:
        problems.append(too_many(f"{path.name} has {len(pids):,} processes", limits.processes))
        rows = rows[np.isin(columns["pid"][rows].astype(np.int64), pids[: limits.processes])]
    owners = words["owner"][rows]  # a file from before there were owners tells none
    frame = pd.DataFrame(
        {
            "t_s": columns["t_s"][rows],
            "gpu": columns["gpu"][rows].astype(np.int64),
            "pid": columns["pid"][rows].astype(np.int64),
            "name": pd.Series(shortened(words["name"][rows], LONGEST_NAME), dtype="str"),
            "memory_used_mib": columns["memory_used_mib"][rows].astype(np.float64),
            "change": pd.Series(words["change"][rows], dtype="str"),
            "owner": pd.Series(np.where(is_one_of(owners, schema.PROCESS_OWNERS), owners, UNKNOWN_OWNER), dtype="str"),
            "gpu_util_pct": columns["gpu_util_pct"][rows].astype(np.float64),
        },
        copy=False,
    )
    return frame, tuple(problems)


def is_one_of(words: Words, known: Container[str]) -> Bools:
    """Return which texts are known ones."""
    return np.fromiter((word in known for word in words), dtype=np.bool_, count=len(words))


def shortened(words: Words, most: int) -> Words:
    """Return texts of so many characters at most, most often as they are."""
    return (
        words if all(len(word) <= most for word in words) else np.array([word[:most] for word in words], dtype=object)
    )


def load_optional(
    path: Path, numeric: list[str], text: list[str], clock: RunClock, ahead: BackgroundReads | None = None
) -> tuple[Columns, dict[str, Words], list[str]]:
    """Return a file's columns and texts with `t_s`, and its problems; all empty when there is none."""
    try:
        csv = ahead.take(path) if ahead and clock.is_of_one_boot else None
        if csv is None and clock.is_of_one_boot:
            csv = read_csv(path, [MONO, *numeric], text, DECIMALS)
        if csv is None or not np.isfinite(_stamps(csv.numbers[MONO])).all():
            csv = read_csv(path, [WALL, MONO, *numeric], text, DECIMALS)
    except InputError as error:
        columns: Columns = {name: np.empty(0) for name in ["t_s", *numeric]}
        words: dict[str, Words] = {name: np.empty(0, dtype=object) for name in text}
        return columns, words, [str(error)] if path.exists() else []
    columns, walls = csv.numbers, csv.numbers.pop(WALL, None)
    monos = _stamps(columns.pop(MONO))
    times = clock.of_one_boot(monos) if walls is None else _times(_stamps(walls), monos, clock)
    return {"t_s": times, **columns}, csv.words, list(csv.problems)


def _times(wall: npt.NDArray[np.float64], mono: npt.NDArray[np.float64], clock: RunClock) -> npt.NDArray[np.float64]:
    """Return when rows are of, NaN where one alone has no monotonic stamp: the wall clock may have been set since."""
    given = np.isfinite(mono)
    return np.where(given | ~given.any(), clock.times(wall, mono), np.nan)


def _tidy(columns: Columns, name: str, problems: list[str], *, by_gpu: bool, merge: bool = False) -> pd.DataFrame:
    """Drop rows without a stamp, sort, keep the last of duplicates (or merge them), and blank what cannot be true.

    What is merged are the driver's readings: the first it kept are from before the recording, and the last of them
    holds at its start.
    It takes the columns one by one out of `columns`: a week of eight GPUs is not to be held twice.
    """
    valid = plausible(columns["t_s"].astype(np.float64, copy=False))
    if by_gpu:
        valid &= _are_whole(columns["gpu"], LARGEST_INDEX)
        valid &= _are_of_few(columns["gpu"], valid, name, problems)
    _note(problems, name, int((~valid).sum()), *UNPLACED)
    order, t_s = _order(columns.pop("t_s"), columns.get("gpu") if by_gpu else None, valid)
    tidy: dict[str, npt.NDArray[Any]] = {"t_s": _to_milliseconds(t_s)}
    del t_s
    if merge:
        np.maximum(tidy["t_s"], 0.0, out=tidy["t_s"])
    if by_gpu:
        gpus = columns.pop("gpu")
        tidy["gpu"] = _taken(gpus, order, np.uint8 if gpus.dtype == np.uint8 else np.uint16)
        del gpus
        _refuse_dense(tidy["t_s"], tidy["gpu"], name)
    again = _repeats(list(tidy.values()))
    if not merge and again.any():
        _note(problems, name, int(again.sum()), *REPEATED)
        order = _places(~again) if isinstance(order, slice) else order[~again]
        tidy = {key: values[~again] for key, values in tidy.items()}
    keys = [*reversed(tidy)]
    _blank_incredible(columns, list(columns), name, problems, valid)
    tidy |= {column: _taken(columns.pop(column), order) for column in list(columns)}
    if merge and again.any():
        _merge(tidy, keys, again)
    return pd.DataFrame(tidy, copy=False)


def _taken(column: Floats, order: Rows | slice, dtype: npt.DTypeLike | None = None) -> npt.NDArray[Any]:
    """Return the rows of a column, readings as floats; one that has one value in all rows, or none, takes no room."""
    dtype = np.dtype(dtype or (np.float32 if column.dtype == np.uint8 else column.dtype))
    if column.strides == (0,) and len(column):
        count = len(column) if isinstance(order, slice) else len(order)
        return np.broadcast_to(column[0].astype(dtype), count) if count else np.empty(0, dtype=dtype)
    if isinstance(order, slice):
        return column.astype(dtype, copy=False)
    # a part at a time, for numpy wants numbers of 64 bits; with "clip" it does not look whether each row is there
    taken = np.empty(len(order), dtype=dtype)
    for at in _parts(order):
        taken[at : at + PART_ROWS] = column.take(order[at : at + PART_ROWS].astype(np.intp), mode="clip")
    return taken


def _are_of_few(gpus: Floats, valid: Bools, name: str, problems: list[str]) -> Bools:
    """Tell which rows are of the first MOST_GPUS: a file that names thousands is no recording, and takes as long."""
    if not valid.any() or gpus[valid].max() < MOST_GPUS:
        return valid
    seen = np.unique(gpus[valid])
    if len(seen) > MOST_GPUS:
        problems.append(f"{name} has rows of {len(seen):,} GPUs: those after the first {MOST_GPUS:,} are left out")
    few: Bools = gpus <= seen[:MOST_GPUS][-1]
    return few


def _refuse_dense(t_s: Floats, gpus: npt.NDArray[np.uint16], name: str) -> None:
    """Raise InputError where a GPU has more rows a second than any recorder writes, or driver keeps."""
    if not len(t_s):
        return
    seconds = float(t_s.max()) - float(t_s.min()) + 1.0
    if len(t_s) > MOST_A_SECOND * seconds and len(t_s) > MOST_A_SECOND * seconds * len(np.unique(gpus)):
        raise InputError(
            f"{name} has {len(t_s):,} rows in {seconds:,.0f} s, more than any recorder writes: its clock is broken"
        )


def _order(t_s: Floats, gpus: Floats | None, valid: Bools) -> tuple[Rows | slice, npt.NDArray[Any]]:
    """Return the valid rows by GPU and time, those of one moment as they stand in the file, and their times.

    A slice is of all rows as they are, which need no copy then.
    """
    is_one = gpus is None or not len(gpus) or gpus.min() == gpus.max()
    if is_one and valid.all() and all((steps >= 0).all() for steps in _steps(t_s)):
        return slice(None), t_s
    order, ends = (_places(valid), [len(t_s)]) if gpus is None else _by_gpu(gpus, valid)
    times = _taken(t_s, order)
    for mine in map(slice, [0, *ends], ends):
        if not (np.diff(times[mine]) >= 0).all():
            in_turn = np.argsort(times[mine], kind="stable")
            order[mine], times[mine] = order[mine][in_turn], times[mine][in_turn]
    return order, times


def _by_gpu(gpus: Floats, valid: Bools) -> tuple[Rows, list[int]]:
    """Return the valid rows GPU by GPU, each one's as they stand in the file, and where those of each end.

    They are sorted a part of the file at a time: to look for each of eight GPUs in all of it takes three times as long.
    """
    numbers: Any = gpus if gpus.dtype == np.uint8 else np.unique(gpus[valid]).searchsorted(gpus).astype(np.uint8)
    counts = [
        np.bincount(numbers[at : at + PART_ROWS][valid[at : at + PART_ROWS]], minlength=MOST_GPUS)
        for at in _parts(valid)
    ]
    ends = np.cumsum(sum(counts))
    order, filled = np.empty(int(ends[-1]), dtype=np.int32), ends - sum(counts)
    for at, count in zip(_parts(valid), counts, strict=True):
        rows = at + np.flatnonzero(valid[at : at + PART_ROWS])
        rows = rows[np.argsort(numbers[rows], kind="stable")]
        lasts = np.cumsum(count)
        for gpu in np.flatnonzero(count):
            order[filled[gpu] : filled[gpu] + count[gpu]] = rows[lasts[gpu] - count[gpu] : lasts[gpu]]
        filled += count
    return order, ends.tolist()


def _places(rows: Bools) -> Rows:
    """Return the numbers of some rows, in 32 bits: a week of eight GPUs has 24 million."""
    return np.flatnonzero(rows).astype(np.int32)


def _by_time(t_s: Floats, rows: Rows) -> Rows:
    times = t_s[rows]
    return rows if (np.diff(times) >= 0).all() else rows[np.argsort(times, kind="stable")]


def _to_milliseconds(t_s: Floats) -> Floats:
    """Return sorted times as they are, to the millisecond where some are closer: stamps are no finer."""
    return np.round(t_s, 3) if any(((s > 0) & (s < SAME_MOMENT_S)).any() for s in _steps(t_s)) else t_s


def _steps(t_s: Floats) -> Iterator[Floats]:
    """Yield the steps from row to row, a part at a time."""
    return (np.diff(t_s[at : at + PART_ROWS + 1]) for at in _parts(t_s))


def _parts(column: Floats | Rows | Bools) -> range:
    """Return where parts of a column begin: what is worked out of all of a week's rows at once takes 0.2 GB."""
    return range(0, len(column), PART_ROWS)


def _repeats(keys: Sequence[Floats]) -> Bools:
    """Return which of the sorted rows have a following row with the same keys."""
    same = np.ones(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        same &= key[1:] == key[:-1]
    return np.append(same, False)[: len(keys[0])]


def _merge(columns: dict[str, npt.NDArray[Any]], keys: list[str], again: Bools) -> None:
    """Make the rows of one moment one in sorted columns, in place: what was read last of each.

    There are few, nearly always at the beginning alone, and all others are not to be copied.
    """
    several = again | np.concatenate([[False], again[:-1]])
    merged = pd.DataFrame({name: values[several] for name, values in columns.items()}).groupby(keys).last()
    first, lasts = int(np.argmin(again)), np.flatnonzero(several & ~again)
    rest = ~again if again[first:].any() else slice(first, None)
    for name, values in columns.items():
        if name in merged and values.flags.writeable:  # else it has one value in all rows, or none
            values[lasts] = merged[name].to_numpy()
        columns[name] = values[rest]


def are_pids(numbers: Floats) -> Bools:
    """Return which cells hold what can be a process's number."""
    return _are_whole(numbers, LARGEST_PID)


def _are_whole(numbers: Floats, largest: int) -> Bools:
    """Return which cells hold a whole number from 0 to `largest`."""
    if numbers.dtype == np.uint8:
        return np.ones(len(numbers), dtype=bool)
    whole: Bools = (numbers >= 0) & (numbers <= largest)
    for at in _parts(numbers):
        part = numbers[at : at + PART_ROWS]
        whole[at : at + PART_ROWS] &= part == np.floor(part)
    return whole


def _blank_incredible(
    columns: Columns, quantities: Sequence[str], name: str, problems: list[str], valid: Bools | None = None
) -> None:
    """Blank percentages outside 0 to 100, negative readings and enormous ones: no driver means them."""
    for quantity in quantities:
        values = columns[quantity]
        if quantity in PRESSURES and ((values > 100) & (values <= LATE_PCT)).any():
            values = columns[quantity] = np.where(values <= LATE_PCT, np.minimum(values, 100.0), values)
        wrong = (values < 0) | (values > _largest(quantity))
        if quantity in PERCENTAGES:
            wrong |= values > 100
        if wrong.any():
            counted = int((wrong if valid is None else wrong & valid).sum())
            _note(problems, name, counted, *(words.format(quantity) for words in IMPOSSIBLE))
            columns[quantity] = np.where(wrong, np.nan, values).astype(np.result_type(values.dtype, np.float32))


def _largest(quantity: str) -> float:
    """Return the largest credible reading of a quantity, in its unit."""
    return LARGEST_OF_UNIT.get(f"_{quantity.rpartition('_')[2]}", LARGEST_READING)


def _note(problems: list[str], name: str, count: int, one: str, several: str) -> None:
    if count:
        problems.append(noted(name, count, one, several))
