"""The tables of one tool's logs as one, on one clock."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.imports.clock import put_on_wall, typical_interval_s
from gpu_report.imports.machines import refuse_two_machines
from gpu_report.imports.parsing.readings import EVERYTHING, Device, Failure, Floats, Found, ImportedEvent, Readings
from gpu_report.imports.times import zone_name

DEFAULT_INTERVAL_S: Final = 1.0  # what most tools are asked for; taken where a log has too few rows to tell

_TWICE_SHARE: Final = 0.5  # of the rows of the same time: with more the same stamps it is one log, given twice


@dataclass(frozen=True, eq=False)
class Log:
    """All rows of one tool's logs, sorted by time and GPU, in the columns of samples.csv, and what else they say.

    `mono_s` of `samples` and `happenings` begins with the first row. `notes` are to stand in the report.
    """

    tool: str
    samples: pd.DataFrame
    interval_s: float
    devices: Mapping[int, Device]
    happenings: tuple[ImportedEvent, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Timed:
    """A table's rows with their times, and where its clock was set back: (row, seconds), first GPU only."""

    frame: pd.DataFrame
    steps: tuple[tuple[int, float], ...]
    unordered: bool


def merge(found: Found, timezone: tzinfo | None) -> Log:
    """Return the rows of all tables on one clock, which starts with the first row; InputError when there is none.

    `timezone` is that of stamps that carry none, None for this machine's.
    """
    timezone = UTC if found.in_utc else timezone
    tables = sorted((table for table in found.tables if len(table.gpu)), key=lambda table: float(table.stamp_s[0]))
    if not tables:
        raise InputError(f"no row of the log has a time and a GPU: {found.how}")
    refuse_two_machines(tables)
    interval_s = _interval_s(tables)
    timed = [_timed(table, timezone, interval_s) for table in tables]
    start_s = min(float(each.frame["mono_s"].min()) for each in timed)
    for each in timed:
        each.frame["mono_s"] -= start_s
    samples = pd.concat([each.frame for each in timed], ignore_index=True)
    samples = samples.sort_values(["mono_s", "gpu"], kind="stable")
    unique = samples.drop_duplicates(["mono_s", "gpu"])
    doubled = int(samples.duplicated().sum()) if len(unique) < len(samples) else 0
    problems = [
        *_clock_problems(found, tables, timezone, timed),
        *_row_problems(tables, doubled, len(samples) - len(unique) - doubled),
    ]
    interval_s = interval_s if found.interval_s is None else found.interval_s
    return Log(
        found.tool,
        unique,
        interval_s,
        _devices(tables),
        (*_steps(timed), *_failures(timed, tables, found.tool)),
        (*found.problems, *problems),
        _mixed(tables),
    )


def _interval_s(tables: Sequence[Readings]) -> float:
    spacings = [
        spacing
        for table in tables
        for gpu in np.unique(table.gpu)
        if (spacing := typical_interval_s(table.stamp_s[table.gpu == gpu])) is not None
    ]
    return float(np.median(spacings)) if spacings else DEFAULT_INTERVAL_S


def _timed(table: Readings, timezone: tzinfo | None, interval_s: float) -> _Timed:
    """Return the table's rows with wall and steady times, each GPU's rows taken in the order of the file."""
    wall_s, mono_s = np.empty(len(table.gpu)), np.empty(len(table.gpu))
    steps: tuple[tuple[int, float], ...] = ()
    unordered = False
    for gpu in np.unique(table.gpu):
        rows = np.flatnonzero(table.gpu == gpu)
        clocked = put_on_wall(table.stamp_s[rows], timezone, interval_s)
        wall_s[rows], mono_s[rows] = clocked.wall_s, clocked.wall_s + clocked.behind_s
        steps = steps or tuple((int(rows[position]), seconds) for position, seconds in clocked.steps)
        unordered = unordered or clocked.unordered
    columns = {column.name: table.quantities.get(column.name, np.nan) for column in schema.GPU_QUANTITIES}
    frame = pd.DataFrame({"wall_s": wall_s, "mono_s": mono_s, "gpu": table.gpu, **columns})
    return _Timed(frame, steps, unordered)


def _steps(timed: Sequence[_Timed]) -> list[ImportedEvent]:
    return [
        ImportedEvent("clock_step", *_at(each.frame, row), {"seconds": round(seconds, 3)})
        for each in timed
        for row, seconds in each.steps
    ]


def _failures(timed: Sequence[_Timed], tables: Sequence[Readings], tool: str) -> list[ImportedEvent]:
    return [
        happening
        for each, table in zip(timed, tables, strict=True)
        for failure in table.failures
        for happening in _unread(each.frame, failure, tool)
    ]


def _unread(frame: pd.DataFrame, failure: Failure, tool: str) -> list[ImportedEvent]:
    """Return when a GPU's quantity first could not be read, and when it could again."""
    fields = {"gpu": failure.gpu, "quantity": failure.quantity}
    is_gone = failure.quantity == EVERYTHING
    reason = failure.reason if is_gone else f"{tool} wrote {failure.reason}"
    happenings = [ImportedEvent("nvml_error", *_at(frame, int(failure.rows[0])), {**fields, "reason": reason})]
    every = [column.name for column in schema.GPU_QUANTITIES if column.name in frame]
    is_read = ~np.isnan(frame[every if is_gone else [failure.quantity]].to_numpy()).all(axis=1)
    read = np.flatnonzero((frame["gpu"].to_numpy() == failure.gpu) & is_read)
    again = read[read > failure.rows[-1]]
    if again.size:
        happenings.append(ImportedEvent("nvml_recovered", *_at(frame, int(again[0])), fields))
    return happenings


def _at(frame: pd.DataFrame, row: int) -> tuple[float, float]:
    return float(frame["wall_s"].to_numpy()[row]), float(frame["mono_s"].to_numpy()[row])


def _clock_problems(
    found: Found, tables: Sequence[Readings], timezone: tzinfo | None, timed: Sequence[_Timed]
) -> list[str]:
    problems = []
    if timezone is None:
        local = datetime.fromtimestamp(float(tables[0].stamp_s[0]), UTC).replace(tzinfo=None)
        problems.append(
            f"{found.tool}'s times carry no zone: {zone_name(None, local)}, this machine's, was assumed; "
            "--timezone sets another."
        )
    for each in timed:
        problems += [
            f"The clock was set back by {-seconds:.0f} s while {found.tool} was logging; the time axis goes on."
            for _, seconds in each.steps
        ]
    if any(each.unordered for each in timed):
        problems.append("The rows are not in order of time; they were sorted.")
    return problems


def _row_problems(tables: Sequence[Readings], duplicates: int, simultaneous: int) -> list[str]:
    problems = []
    if dropped := sum(table.dropped for table in tables):
        problems.append(f"{dropped} rows without a readable time or GPU were left out.")
    if duplicates:
        problems.append(f"{duplicates} rows stand in the logs twice and were taken once.")
    if simultaneous:
        problems.append(
            f"{simultaneous} rows have the time stamp of another row of their GPU, with other readings: they were left "
            "out. The stamps are too coarse, or of several GPUs or machines."
        )
    uuids: dict[int, set[object]] = {}
    for table in tables:
        for gpu, device in table.devices.items():
            uuids.setdefault(gpu, set()).add(device.get("uuid"))
    problems += [
        f"GPU {gpu} has more than one UUID: are these logs of different machines?"
        for gpu, known in sorted(uuids.items())
        if len(known - {None}) > 1
    ]
    return problems


def _mixed(tables: Sequence[Readings]) -> tuple[str, ...]:
    """Return what is to be said of rows of one GPU in logs of the same time that do not say whose they are."""
    if _any_interleave([table.stamp_s for table in tables if not table.names_gpus]):
        return (
            "Logs of the same time do not say which GPU their rows are of, and are mixed: "
            "import each into a run of its own.",
        )
    of_gpu: defaultdict[int, list[Floats]] = defaultdict(list)
    for table in tables:
        for gpu in np.unique(table.gpu).tolist():
            if table.names_gpus and table.devices.get(gpu, {}).get("uuid") is None:
                of_gpu[gpu].append(table.stamp_s[table.gpu == gpu])
    return tuple(
        f"Logs of the same time have rows of GPU {gpu} each, and name no machine. "
        "If there are several, import each into a run of its own."
        for gpu in [gpu for gpu, stamps in sorted(of_gpu.items()) if _any_interleave(stamps)][:1]
    )


def _any_interleave(stamps: Sequence[Floats]) -> bool:
    """Tell whether any are of the same time, and not the same rows twice."""
    ordered = sorted((each for each in stamps if each.size), key=lambda each: float(each.min()))
    return any(_interleave(before, after) for before, after in pairwise(ordered))


def _interleave(before: Floats, after: Floats) -> bool:
    shared = after[after < before.max()]
    return bool(shared.size > 1 and np.isin(shared, before).mean() < _TWICE_SHARE)


def _devices(tables: Sequence[Readings]) -> dict[int, Device]:
    """Return what is known of each GPU, the first log that says something counting."""
    devices: dict[int, dict[str, str | float | None]] = {}
    for table in tables:
        for gpu, device in table.devices.items():
            known = devices.setdefault(gpu, dict(device))
            known.update({field: value for field, value in device.items() if known.get(field) is None})
    return dict(sorted(devices.items()))
