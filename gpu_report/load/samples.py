"""samples.csv, host.csv and processes.csv as typed tables on the run's clock. Missing stays missing."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.load.clock import Clock, plausible, run_times
from gpu_report.load.csv_file import read_csv
from gpu_report.load.run_info import LARGEST_INDEX

QUANTITIES = [column.name for column in schema.GPU_QUANTITIES]
RING_QUANTITIES = [column.name for column in schema.RING_QUANTITIES]
HOST_QUANTITIES = [column.name for column in schema.HOST_QUANTITIES]
# Percentages of one core, which a process with several threads exceeds.
OF_ONE_CORE = {"main_cpu_pct", "busiest_worker_cpu_pct", "workers_cpu_pct"}
LARGEST_PID = 2**32
UNKNOWN_OWNER = "unknown"
PERCENTAGES = {name for name in (*QUANTITIES, *HOST_QUANTITIES) if name.endswith("_pct")} - OF_ONE_CORE


@dataclass(frozen=True, eq=False)
class Samples:
    """The samples table (see model.Run), the clock it defines, and what could not be read."""

    frame: pd.DataFrame
    clock: Clock
    problems: tuple[str, ...]


def load_samples(path: Path) -> Samples:
    """Read samples.csv; InputError when it cannot be opened or has not one valid row."""
    csv = read_csv(path, [*_names(schema.TIME_COLUMNS), "gpu", *QUANTITIES])
    frame, problems = csv.frame, list(csv.problems)
    if frame["gpu"].isna().all() and len(frame):
        frame["gpu"] = 0.0
        problems.append(f"{path.name}: no column says which GPU a row is of; all are taken to be GPU 0")
    if not (np.isfinite(frame["wall_s"]).any() or np.isfinite(frame["mono_s"]).any()):
        raise InputError(f"{path} has not one valid row: nothing was recorded, or it is no samples CSV")
    wall = frame["wall_s"].fillna(frame["mono_s"]).to_numpy()
    t, boots, stepped = run_times(wall, frame["mono_s"].to_numpy())
    if stepped:
        problems.append(f"{path.name}: the clock was set back during the recording; rows after it are moved on")
    frame["t_s"] = t
    clock = Clock(boots)
    tidy = _tidy(frame, path.name, problems, ["gpu"])
    if not len(tidy):
        raise InputError(f"{path} has not one valid row: none has both a time and a GPU")
    return Samples(tidy, clock, tuple(problems))


def load_ring(path: Path, clock: Clock) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read ring.csv, what the driver kept between ticks; an empty table when there is none."""
    frame, problems = _load_optional(path, ["gpu", *RING_QUANTITIES], [], clock)
    return _tidy(frame, path.name, problems, ["gpu"], merge=True), tuple(problems)


def load_host(path: Path, clock: Clock) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read host.csv, an empty table when there is none."""
    frame, problems = _load_optional(path, HOST_QUANTITIES, [], clock)
    return _tidy(frame, path.name, problems, []), tuple(problems)


def load_processes(path: Path, clock: Clock) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Read processes.csv, an empty table when there is none."""
    numbers, words = ["gpu", "pid", "memory_used_mib", "gpu_util_pct"], ["name", "change", "owner"]
    frame, problems = _load_optional(path, numbers, words, clock)
    # a file from before there were owners tells none
    frame["owner"] = frame["owner"].where(frame["owner"].isin(schema.PROCESS_OWNERS), UNKNOWN_OWNER)
    _blank_incredible(frame, ["gpu_util_pct"], path.name, problems)
    known = plausible(frame["t_s"].to_numpy()) & _are_whole(frame["pid"], LARGEST_PID)
    known &= _are_whole(frame["gpu"], LARGEST_INDEX)
    frame = frame[known & frame["change"].isin(schema.PROCESS_CHANGES)].sort_values("t_s", kind="stable")
    frame = frame.astype({"gpu": "int64", "pid": "int64"})
    columns = ["t_s", "gpu", "pid", "name", "memory_used_mib", "change", "owner", "gpu_util_pct"]
    return frame[columns].reset_index(drop=True), tuple(problems)


def _load_optional(path: Path, numeric: list[str], text: list[str], clock: Clock) -> tuple[pd.DataFrame, list[str]]:
    try:
        csv = read_csv(path, [*_names(schema.TIME_COLUMNS), *numeric], text)
    except InputError as error:
        frame = pd.DataFrame({name: pd.Series(dtype="float64") for name in ["t_s", *numeric]})
        for name in text:
            frame[name] = pd.Series(dtype="str")
        return frame, [str(error)] if path.exists() else []
    csv.frame["t_s"] = clock.times(csv.frame["wall_s"].to_numpy(), csv.frame["mono_s"].to_numpy())
    return csv.frame, list(csv.problems)


def _tidy(frame: pd.DataFrame, name: str, problems: list[str], keys: list[str], *, merge: bool = False) -> pd.DataFrame:
    """Drop rows without a stamp, sort, keep the last of duplicates (or merge them), and blank what cannot be true."""
    valid = plausible(frame["t_s"].to_numpy())
    if "gpu" in keys:
        valid &= _are_whole(frame["gpu"], LARGEST_INDEX)
    _note(problems, name, int((~valid).sum()), "rows have no usable time stamp or GPU and are left out")
    frame = frame[valid].drop(columns=_names(schema.TIME_COLUMNS), errors="ignore")
    quantities = [c for c in frame.columns if c not in {"t_s", "gpu"}]
    _blank_incredible(frame, quantities, name, problems)
    if "gpu" in keys:
        frame["gpu"] = frame["gpu"].astype("int64")
    frame = frame.sort_values([*keys, "t_s"], kind="stable")
    if merge:  # each row holds one quantity: those of one moment are one reading
        return _merged(frame, [*keys, "t_s"])[["t_s", *keys, *quantities]].reset_index(drop=True)
    twice = frame.duplicated([*keys, "t_s"], keep="last")
    _note(problems, name, int(twice.sum()), "rows repeat the time stamp of another and are left out")
    frame = frame[~twice]
    return frame[["t_s", *keys, *quantities]].reset_index(drop=True)


def _merged(frame: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Return the sorted `frame` with the rows of one moment as one; there are few, and grouping them all is slow."""
    several = frame.duplicated(keys, keep=False)
    if not several.any():
        return frame
    merged = frame[several].groupby(keys, as_index=False).last()
    return pd.concat([frame[~several], merged], ignore_index=True).sort_values(keys, kind="stable")


def _are_whole(column: pd.Series, largest: int) -> npt.NDArray[np.bool_]:
    """Return which cells hold a whole number from 0 to `largest`."""
    numbers = column.to_numpy()
    whole: npt.NDArray[np.bool_] = (numbers >= 0) & (numbers <= largest) & (numbers == np.floor(numbers))
    return whole


def _blank_incredible(frame: pd.DataFrame, quantities: list[str], name: str, problems: list[str]) -> None:
    """Blank percentages outside 0 to 100 and negative readings: no driver means them."""
    for quantity in quantities:
        wrong = frame[quantity] < 0
        if quantity in PERCENTAGES:
            wrong |= frame[quantity] > 100
        _note(problems, name, int(wrong.sum()), f"readings of {quantity} are impossible and count as missing")
        if wrong.any():
            frame.loc[wrong, quantity] = np.nan


def _note(problems: list[str], name: str, count: int, what: str) -> None:
    if count:
        problems.append(f"{name}: {count} {what}")


def _names(columns: tuple[schema.Column, ...]) -> list[str]:
    return [column.name for column in columns]
