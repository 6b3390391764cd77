"""The ends of epochs by the events that YOLO writes for TensorBoard: its callbacks' own times, to the millisecond.

`train` is on_train_epoch_end, before the validation; `epoch` is on_fit_epoch_end, after the checkpoint. The row of
results.csv is written between the two. Which tag is which: gpu_report/tfevents/yolo_epochs.py.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gpu_report.load.run_clock import RunClock
from gpu_report.load.run_json import whole_index
from gpu_report.model import EpochRow
from gpu_report.run_folder import finite

Events = Sequence[Mapping[str, Any]]
LARGEST_EPOCH: Final = 10_000_000
# A row's time is that of a file, on another clock than the event's where a file server keeps it, or rounded to it.
ROW_SLACK_S: Final = 2.0


@dataclass(frozen=True)
class LoggedEpoch:
    """An epoch: of which of the run's trainings, when it began, its train part ended and it ended (s of the run).

    None where nothing says so.
    """

    training: int
    epoch: int
    start_t_s: float | None
    trained_t_s: float | None
    ended_t_s: float | None
    metrics: Mapping[str, float]


def logged_epochs(events: Events, clock: RunClock) -> list[LoggedEpoch]:
    """Return the epochs in order of time, each beginning where the one before it in its training ended."""
    found: list[LoggedEpoch] = []
    began: dict[int, float] = {}
    trained: dict[int, tuple[int, float]] = {}
    for event in sorted(events, key=lambda each: clock.t(each["wall_s"], each.get("mono_s"))):
        training, epoch = whole_index(event.get("training")), whole_index(event.get("epoch"))
        t_s, part = clock.t(event["wall_s"], event.get("mono_s")), event.get("part")
        if training is None:
            continue
        if part == "start":
            began[training] = t_s
        elif part == "train" and epoch is not None:
            trained[training] = epoch, t_s
        elif part == "epoch" and epoch is not None and 0 < epoch <= LARGEST_EPOCH:
            known, trained_s = trained.pop(training, (epoch, None))
            mine = trained_s if known == epoch else None
            found.append(LoggedEpoch(training, epoch, began.get(training), mine, t_s, _metrics(event.get("metrics"))))
            began[training] = t_s
    return found


def _metrics(said: object) -> dict[str, float]:
    pairs = said.items() if isinstance(said, Mapping) else ()
    return {str(name): number for name, value in pairs if (number := finite(value)) is not None}


def rows_of(number: int, logged: Sequence[LoggedEpoch]) -> list[EpochRow]:
    """Return the epochs as rows where nothing else has them: their checkpoints lie before these rows.

    Of one whose beginning nothing says the train part is not known: it begins as that ends.
    """
    rows = []
    for each in logged:
        if each.ended_t_s is None:
            continue
        start_s = next(t_s for t_s in (each.start_t_s, each.trained_t_s, each.ended_t_s) if t_s is not None)
        end_s = each.ended_t_s
        rows.append(EpochRow(number, each.training, each.epoch, end_s, start_s, each.metrics, end_s, each.trained_t_s))
    return rows


def train_start(times_s: Mapping[int, float], logged: Sequence[LoggedEpoch]) -> float | None:
    """Return when the last training began, by its rows' `time` for each epoch; None where the two do not agree.

    Every row was written after its epoch's train part and before its checkpoint had been. Rows as late as these bounds
    allow are late by the shortest checkpoint.
    """
    last = max((each.training for each in logged), default=0)
    mine = [each for each in logged if each.training == last and each.epoch in times_s]
    latest = [each.ended_t_s - times_s[each.epoch] for each in mine if each.ended_t_s is not None]
    earliest = [each.trained_t_s - times_s[each.epoch] for each in mine if each.trained_t_s is not None]
    if not latest or max(earliest, default=min(latest)) > min(latest) + ROW_SLACK_S:
        return None
    return min(latest)


def with_logged(rows: Sequence[EpochRow], logged: Sequence[LoggedEpoch]) -> list[EpochRow]:
    """Return rows with the ends of their train parts and of their checkpoints, as far as TensorBoard has them."""
    by_epoch: dict[int, list[tuple[float, float]]] = {}
    for each in logged:
        if each.trained_t_s is not None and each.ended_t_s is not None:
            by_epoch.setdefault(each.epoch, []).append((each.ended_t_s, each.trained_t_s))
    return [_with(row, by_epoch.get(row.epoch, ())) for row in rows]


def _with(row: EpochRow, edges: Sequence[tuple[float, float]]) -> EpochRow:
    """Return a row with the edges that it lies between; those elsewhere are of another training.

    `edges` are the ends of epochs and of their train parts, in order.
    """
    at = bisect_left(edges, (row.row_t_s - ROW_SLACK_S, -math.inf))
    if at == len(edges) or edges[at][1] - ROW_SLACK_S > row.row_t_s:
        return row
    ended_s, trained_s = edges[at]
    trained_s = min(max(trained_s, row.start_t_s), row.row_t_s)
    return replace(row, trained_t_s=trained_s, saved_t_s=max(ended_s, row.row_t_s))
