"""Logs of several tools as one run: the rows of the finest, with what the others know beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from gpu_report import schema
from gpu_report.imports.machines import refuse_other_machine
from gpu_report.imports.merge import Log
from gpu_report.imports.parsing.readings import Device, Floats, ImportedEvent
from gpu_report.wording import length

QUANTITIES: Final = tuple(column.name for column in schema.GPU_QUANTITIES)
# A reading goes with the row that is nearest in time, within so much of the longer interval: stamps in whole seconds
# and a tick that is late move it by half an interval.
NEAR_INTERVALS: Final = 0.75


@dataclass(frozen=True, eq=False)
class Joined:
    """The rows of samples.csv of all logs, on a clock that begins at `start_s` (s since 1970), and what goes with them.

    `sources` are the tools, that of the rows first.
    """

    samples: pd.DataFrame
    start_s: float
    interval_s: float
    devices: Mapping[int, Device]
    happenings: tuple[ImportedEvent, ...]
    sources: tuple[str, ...]
    notes: tuple[str, ...]
    problems: tuple[str, ...]

    @property
    def span(self) -> tuple[float, float]:
        """When the first and the last row are of (wall, s); a clock that was set back swaps them."""
        wall_s = self.samples["wall_s"]
        return float(wall_s.iloc[0]), float(wall_s.iloc[-1])

    @property
    def length_s(self) -> float:
        """How long it is from the first row to the last."""
        return float(self.samples["mono_s"].iloc[-1])


def join(logs: Sequence[Log]) -> Joined:
    """Return logs as one: the one with most readings of utilisation gives the rows, others what it has not.

    A reading of another log stands in each row that it is the nearest to. Rows of other times or GPUs stay rows.
    """
    ordered = sorted(logs, key=_readings_of, reverse=True)
    leader = ordered[0]
    start_s = min(_start_s(log) for log in logs)
    samples = _on_clock(leader, start_s)
    devices = dict(leader.devices)
    notes = [note for log in ordered for note in log.notes]
    problems = [problem for log in ordered for problem in log.problems]
    for log in ordered[1:]:
        renumbered = _numbered(log, leader)
        samples, filled = _with(samples, _on_clock(renumbered, start_s), max(log.interval_s, leader.interval_s))
        notes += _note(log, filled)
        problems += _mismatches(leader, renumbered)
        for gpu, device in renumbered.devices.items():
            devices[gpu] = {**device, **{k: v for k, v in devices.get(gpu, {}).items() if v is not None}}
    return Joined(
        samples.sort_values(["mono_s", "gpu"], kind="stable", ignore_index=True),
        start_s,
        leader.interval_s,
        dict(sorted(devices.items())),
        tuple(_moved(each, _start_s(log) - start_s) for log in ordered for each in log.happenings),
        tuple(log.tool for log in ordered),
        tuple(notes),
        tuple(problems),
    )


def _readings_of(log: Log) -> tuple[int, int]:
    return int(log.samples["gpu_util_pct"].notna().sum()), len(log.samples)


def _start_s(log: Log) -> float:
    return float(log.samples["wall_s"].iloc[0])


def _on_clock(log: Log, start_s: float) -> pd.DataFrame:
    return log.samples.assign(mono_s=log.samples["mono_s"] + (_start_s(log) - start_s))


def _moved(happening: ImportedEvent, seconds: float) -> ImportedEvent:
    return ImportedEvent(happening.kind, happening.wall_s, happening.mono_s + seconds, happening.fields)


def _numbered(log: Log, leader: Log) -> Log:
    """Return a log with the GPU indices of the leader, where both say which UUID has which."""
    index_of = {device["uuid"]: gpu for gpu, device in leader.devices.items() if device.get("uuid")}
    changed = {gpu: index_of.get(device.get("uuid"), gpu) for gpu, device in log.devices.items()}
    if all(gpu == index for gpu, index in changed.items()) or len(set(changed.values())) < len(changed):
        return log
    samples = log.samples.assign(gpu=log.samples["gpu"].map(lambda gpu: changed.get(gpu, gpu)))
    devices = {changed[gpu]: device for gpu, device in log.devices.items()}
    return Log(log.tool, samples, log.interval_s, devices, log.happenings, log.problems, log.notes)


def _with(mine: pd.DataFrame, theirs: pd.DataFrame, interval_s: float) -> tuple[pd.DataFrame, list[str]]:
    """Return rows with what another log says of the same moments, its other rows, and which columns are its own."""
    near_s = NEAR_INTERVALS * interval_s
    others: list[pd.DataFrame] = []
    filled: dict[str, None] = {}
    for gpu, rows in theirs.groupby("gpu", sort=True):
        at = np.flatnonzero((mine["gpu"] == gpu).to_numpy())
        if not at.size:
            others.append(rows)
            continue
        mine_s, theirs_s = mine["mono_s"].to_numpy()[at], rows["mono_s"].to_numpy()
        nearest = _nearest(theirs_s, mine_s)
        close = np.abs(theirs_s[nearest] - mine_s) <= near_s
        for column in QUANTITIES:
            values = rows[column].to_numpy(dtype=float)
            own = mine[column].to_numpy(dtype=float, copy=True)
            if np.isnan(own[at]).all() and np.isfinite(values[nearest[close]]).any():
                own[at[close]] = values[nearest[close]]
                mine = mine.assign(**{column: own})
                filled[column] = None
        outside = np.abs(mine_s[_nearest(mine_s, theirs_s)] - theirs_s) > near_s
        others.append(rows[outside & ((theirs_s < mine_s.min()) | (theirs_s > mine_s.max()))])
    return pd.concat([mine, *(rows for rows in others if len(rows))], ignore_index=True), list(filled)


def _nearest(sorted_s: Floats, moments_s: Floats) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the position in `sorted_s` (not empty) that is nearest to each moment."""
    after = np.clip(np.searchsorted(sorted_s, moments_s), 1, max(len(sorted_s) - 1, 1))
    before = after - 1
    after = np.minimum(after, len(sorted_s) - 1)
    return np.where(moments_s - sorted_s[before] <= sorted_s[after] - moments_s, before, after)


def _note(log: Log, filled: Sequence[str]) -> list[str]:
    if not filled:
        return []
    verb = "is" if len(filled) == 1 else "are"
    return [f"{', '.join(filled)} {verb} from {log.tool}, whose readings are {length(log.interval_s)} apart."]


def _mismatches(leader: Log, other: Log) -> list[str]:
    """Return that logs are of other times, or of other GPUs; InputError where they are of another machine's."""
    problems = []
    ends = [(_start_s(log), float(log.samples["wall_s"].max())) for log in (leader, other)]
    apart_s = max(ends[1][0] - ends[0][1], ends[0][0] - ends[1][1])
    if apart_s > max(leader.interval_s, other.interval_s):
        problems.append(
            f"The logs of {leader.tool} and {other.tool} are of different times, {length(apart_s)} apart: "
            "check --timezone."
        )
    else:
        refuse_other_machine(leader.devices, other.devices)
    uuids = [{device.get("uuid") for device in log.devices.values()} - {None} for log in (leader, other)]
    if all(uuids) and not uuids[0] & uuids[1]:
        problems.append(f"No GPU is in both logs, of {leader.tool} and {other.tool}: are they of different machines?")
    return problems
