"""What a fleet comes to: sums of its tables, by user, project, cause, GPU, week, host and model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from gpu_report.catalogue import cause_words
from gpu_report.errors import InputError, UsageError
from gpu_report.fleet.extra import need
from gpu_report.fleet.store import PARTS, live_folders, read_parts
from gpu_report.fleet.tables import arrow_schema

if TYPE_CHECKING:
    from gpu_report.fleet.store import StoredPart

HOUR_S = 3600.0
UNKNOWN = "unknown"
# What runs are grouped by, and their column in RUN_COLUMNS or `week`; causes are rows of the ledger.
GROUPS: Mapping[str, str] = {
    "user": "user",
    "project": "project",
    "gpu": "gpu_name",
    "week": "week",
    "host": "host",
    "model": "model",
}
CAUSE = "cause"
BY = (*list(GROUPS)[:2], CAUSE, *list(GROUPS)[2:])
WORST_RUNS = 50
WITHOUT_PROCESS_SHARE = 0.95  # of a recording (0 to 1): a GPU that a run held for so long without one was never used
UNMEASURED = "unmeasured"
FAILED = "failed"  # an ending
# What stands above a package: its lines are the same wherever it is installed, YOLO's also beside its own source.
PACKAGES = (
    r"^.*[\\/](?:(?:site|dist)-packages[\\/]"
    r"|(?=ultralytics[\\/](?:cfg|data|engine|hub|models|nn|solutions|trackers|utils)[\\/]))"
)
READ_TRIES = 5  # an index writes a part every minute or less often; reading takes seconds

RUN_COLUMNS = (
    *("run", "path", "start", "duration_s", "user", "project", "host", "model", "gpu_name", "gpus", "gpu_hours"),
    *("work_gpu_s", "lost_gpu_s", "idle_gpu_s", "no_process_gpu_s", "idle_after_end_gpu_s", "top_cause", "verdict"),
    *("fix", "fix_argument", "fix_cause", "fix_saves_gpu_s", "ending", "error_type", "exit_signal"),
)
# Hours that are summed for each group of runs.
SUMS = ("gpu_hours", "work_h", "lost_h", "idle_h", "no_process_h", "idle_after_end_h", "saves_h")


@dataclass(frozen=True, eq=False)
class Fleet:
    """A fleet, or the runs of it that a cause took time of, as tables in hours.

    `runs` has a row a run (RUN_COLUMNS, SUMS, `week`, `ended`), the one first that wasted most. `ledger` has `run`,
    `name`, `expected`, `lost` and `hours`; `locations` are lines of code with `hours` lost; `held` GPUs that no process
    was ever on. `unread` are runs that cannot be read, with the reasons. `price` is of a GPU hour, None without one.
    """

    runs: pd.DataFrame
    ledger: pd.DataFrame
    locations: pd.DataFrame
    held: pd.DataFrame
    unread: tuple[tuple[str, str], ...]
    price: float | None
    cause: str | None

    def total(self, column: str) -> float:
        """Return the sum of a column of `runs`, in hours; what is not known is not in it, NaN where none of it is."""
        return 0.0 if self.runs.empty else float(self.runs[column].sum(min_count=1))


def read_fleet(folder: Path, price: float | None = None, cause: str | None = None) -> Fleet:
    """Return a fleet, of the runs alone that a cause took time of where one is named.

    InputError for a folder that is no fleet, UsageError for a cause that no run has. An index that goes on meanwhile
    may replace parts that were listed: then they are listed anew.
    """
    need("pyarrow")
    if not (folder / PARTS).is_dir():
        raise InputError(f"{folder} is no fleet: make one with `{_how_to_make(folder)}`")
    for _ in range(READ_TRIES):
        folders = live_folders(folder)
        with suppress(FileNotFoundError):
            fleet = _of_parts(read_parts(iter(folders)), price, cause)
            if all(each.is_dir() for each in folders):
                return fleet
    raise InputError(f"{folder} is being written: read it again later")


def _how_to_make(folder: Path) -> str:
    """Return the command that makes a fleet: of the runs in a folder that holds something, into another one."""
    is_free = not folder.is_dir() or not any(folder.iterdir())
    runs, fleet = ("FOLDER", str(folder)) if is_free else (str(folder), f"{folder.resolve().name}-fleet")
    return shlex.join(["gpu-report", "fleet", "index", runs, "--output", fleet])


def _of_parts(parts: Sequence[StoredPart], price: float | None, cause: str | None) -> Fleet:
    runs, ledger = _runs(parts), _ledger(parts)
    if cause is not None:
        cause = _id_of(cause, ledger)
        runs, ledger = _of_cause(runs, ledger, cause)
    keys = set(runs["run"])
    return Fleet(
        runs=runs.sort_values(["wasted_h", "run"], ascending=[False, True]).reset_index(drop=True),
        ledger=ledger,
        locations=_locations(_table(parts, "locations"), keys, cause),
        held=_held(_table(parts, "gpus", ("run", "gpu", "allocated", "used", "no_process_s")), runs),
        unread=_unread(parts),
        price=price,
        cause=cause,
    )


def _table(parts: Sequence[StoredPart], name: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    import pyarrow as pa  # noqa: PLC0415 - the extra [fleet]

    names = list(columns or arrow_schema(name).names)
    empty = arrow_schema(name).empty_table().select(names)
    frame: pd.DataFrame = pa.concat_tables([empty, *(part.table(name, names) for part in parts)]).to_pandas()
    return frame


def _runs(parts: Sequence[StoredPart]) -> pd.DataFrame:
    runs = _table(parts, "runs", RUN_COLUMNS)
    for name in ("user", "project", "host", "model", "gpu_name"):
        runs[name] = runs[name].fillna(UNKNOWN)
    runs["week"] = _weeks(runs["start"])
    runs["ended"] = _ended(runs)
    for hours, seconds in {
        "work_h": "work_gpu_s",
        "lost_h": "lost_gpu_s",
        "idle_h": "idle_gpu_s",
        "no_process_h": "no_process_gpu_s",
        "idle_after_end_h": "idle_after_end_gpu_s",
        "saves_h": "fix_saves_gpu_s",
    }.items():
        runs[hours] = runs[seconds] / HOUR_S
    runs["wasted_h"] = runs["lost_h"] + runs["idle_h"]
    return runs


def _ended(runs: pd.DataFrame) -> pd.Series:
    """Return how each run's training ended, empty where it had none; of one that failed also with what."""
    why = runs["error_type"].fillna(runs["exit_signal"])
    failed: pd.Series = FAILED + " (" + why + ")"
    return runs["ending"].mask((runs["ending"] == FAILED) & why.notna(), failed).fillna("")


def _weeks(starts: pd.Series) -> pd.Series:
    """Return the Monday (UTC) of each start's week, as a date's text."""
    days = starts.dt.tz_localize(None).dt.normalize()
    mondays = days - pd.to_timedelta(days.dt.day_of_week, unit="D")
    names: pd.Series = mondays.dt.strftime("%Y-%m-%d").fillna(UNKNOWN)
    return names


def _ledger(parts: Sequence[StoredPart]) -> pd.DataFrame:
    ledger = _table(parts, "ledger", ("run", "name", "expected", "gpu_seconds"))
    ledger["hours"] = ledger.pop("gpu_seconds") / HOUR_S
    ledger["lost"] = ~ledger["expected"] & (ledger["name"] != UNMEASURED)
    return ledger


def _id_of(cause: str, ledger: pd.DataFrame) -> str:
    """Return the id of a cause that is named by it, or as the report names it."""
    said = {cause_words(str(name)).casefold(): str(name) for name in ledger["name"].unique()}
    return said.get(cause.strip().casefold(), cause)


def _of_cause(runs: pd.DataFrame, ledger: pd.DataFrame, cause: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the runs that a cause took time of, whose lost time is then that alone, and their ledger."""
    is_cause = (ledger["name"] == cause) & ledger["lost"]
    rows = ledger[is_cause & (ledger["hours"] > 0)].set_index("run")["hours"]
    if rows.empty:
        there = ", ".join(sorted(ledger.loc[ledger["lost"] & (ledger["hours"] > 0), "name"].unique()))
        raise UsageError(f"--cause {cause}: no run of this fleet lost time to it; there are {there}")
    mine = runs[runs["run"].isin(rows.index)].copy()
    mine["lost_h"] = mine["wasted_h"] = mine["run"].map(rows)
    other = mine["fix_cause"] != cause
    mine.loc[other, ["saves_h", "fix_saves_gpu_s"]] = float("nan")
    mine.loc[other, ["fix", "fix_argument"]] = None
    return mine, ledger[ledger["run"].isin(rows.index)]


def _locations(locations: pd.DataFrame, keys: set[str], cause: str | None) -> pd.DataFrame:
    mine = locations[locations["run"].isin(keys)]
    if cause is not None:
        mine = mine[mine["name"] == cause]
    mine = mine.assign(file=mine["file"].str.replace(PACKAGES, "", regex=True))
    by = mine.groupby(["function", "file", "line", "process"], dropna=False)
    summed = by.agg(hours=("gpu_seconds", "sum"), runs=("run", "nunique")).reset_index()
    summed["hours"] /= HOUR_S
    return summed.sort_values(["hours", "file", "line"], ascending=[False, True, True]).reset_index(drop=True)


def _held(gpus: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return the GPUs that were held and never used, by run: `gpus` and `hours`, the most hours first."""
    joined = gpus[gpus["allocated"] & ~gpus["used"]].merge(runs, on="run")
    never = joined[joined["no_process_s"] >= WITHOUT_PROCESS_SHARE * joined["duration_s"]]
    by = never.groupby(["run", "path", "user", "project", "host", "gpu_name"])
    held = by.agg(gpus=("gpu", "count"), seconds=("no_process_s", "sum")).reset_index()
    held["hours"] = held.pop("seconds") / HOUR_S
    return held.sort_values(["hours", "run"], ascending=[False, True]).reset_index(drop=True)


def _unread(parts: Sequence[StoredPart]) -> tuple[tuple[str, str], ...]:
    rows = [
        (str(path), str(error))
        for part in parts
        for path, error in zip(part.manifest["path"], part.manifest["error"], strict=True)
        if error is not None
    ]
    return tuple(sorted(rows))


def by_group(fleet: Fleet, by: str) -> pd.DataFrame:
    """Return sums by group, the one with most GPU hours first, or of weeks the latest: `name`, `runs` and SUMS.

    A sum of which nothing is known is NaN.

    Of causes the rows of the ledger: `name`, `runs`, `expected`, `lost`, `hours` and `saves_h`.
    """
    if by == CAUSE:
        return _by_cause(fleet)
    grouped = fleet.runs.groupby(GROUPS[by])
    sums = grouped[list(SUMS)].sum(min_count=1).assign(runs=grouped.size()).rename_axis("name").reset_index()
    if by == "week":
        return sums.sort_values("name", ascending=False).reset_index(drop=True)
    return sums.sort_values(["gpu_hours", "name"], ascending=[False, True]).reset_index(drop=True)


def _by_cause(fleet: Fleet) -> pd.DataFrame:
    by = fleet.ledger.groupby("name")
    kinds = {"expected": ("expected", "first"), "lost": ("lost", "first")}
    rows = by.agg(runs=("run", "nunique"), **kinds, hours=("hours", "sum")).reset_index()
    rows["saves_h"] = rows["name"].map(fleet.runs.groupby("fix_cause")["saves_h"].sum()).fillna(0.0)
    return rows.sort_values(["hours", "name"], ascending=[False, True]).reset_index(drop=True)


def fixes(fleet: Fleet) -> pd.DataFrame:
    """Return what each argument's change would have saved, most first: `argument`, `values`, `runs`, `hours`.

    `values` are the most frequent three of its new values, as they are typed.
    """
    with_fix = fleet.runs[fleet.runs["fix_argument"].notna() & (fleet.runs["saves_h"] > 0)]
    rows = [
        {
            "argument": argument,
            "values": list(group["fix"].value_counts().index[:3]),
            "runs": len(group),
            "hours": float(group["saves_h"].sum()),
        }
        for argument, group in with_fix.groupby("fix_argument")
    ]
    frame = pd.DataFrame(rows, columns=["argument", "values", "runs", "hours"])
    return frame.sort_values(["hours", "argument"], ascending=[False, True]).reset_index(drop=True)
