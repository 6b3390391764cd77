"""Epochs from outside the training process: rows of results.csv put on the run's clock.

A recorder stamps each row as it appears. After the fact the start of training is the file's modification time
minus the last row's `time` (the row is written as the file is; measured error 1.1 ms), else what the user says,
else the rows are fitted to the samples (load/yolo/fit_training_start.py).
"""

import csv
import itertools
import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from gpu_report import schema
from gpu_report.load.limits import SHORT, Limits
from gpu_report.load.run_clock import ABSURD_DISTANCE_S, RunClock
from gpu_report.load.yolo.args_yaml import load_arguments
from gpu_report.load.yolo.fit_training_start import GIVE_TRAIN_START, fit_train_start
from gpu_report.load.yolo.logged_epochs import LoggedEpoch, logged_epochs, train_start, with_logged
from gpu_report.load.yolo.logged_epochs import rows_of as rows_of_logged
from gpu_report.load.yolo.run_folders import entries_by_run, events_by_run, places
from gpu_report.model import EpochRow, YoloRun
from gpu_report.ordinary_file import LARGEST_HEADER

Events = Sequence[Mapping[str, Any]]
LARGEST_EPOCH = 1e7  # what lies beyond these is a garbled row
LONGEST_TRAINING_S = ABSURD_DISTANCE_S
TOO_LARGE = "larger than that of a recording of this length can be"

# Weights are written at once after a row: what is written later is no checkpoint of that row (DDP with a slow disk and
# the largest model stays under a minute).
LONGEST_CHECKPOINT_S = 120.0

Loaded = tuple[tuple[YoloRun, ...], tuple[EpochRow, ...], tuple[str, ...]]

FILE_TIME_SLACK_S = 1.0  # the last row may be written just after the last sample


@dataclass(frozen=True)
class ResultsRow:
    """A row of results.csv: 1-based epoch, seconds since training started, and the other columns by name."""

    epoch: int
    time_s: float
    metrics: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class ResultsFile:
    """A results.csv that is read when it is asked for, once; why it could not be goes to `problems`."""

    path: Path
    limits: Limits
    problems: list[str]

    @cached_property
    def rows(self) -> list[ResultsRow]:
        """Return its rows, none where there is no file.

        Of a file that is too large nothing is read: the last row says when the training began.
        """
        try:
            with self.path.open("rb") as file:
                if self._is_refused(os.fstat(file.fileno()).st_size, file.readline(LARGEST_HEADER + 1)):
                    return []
                file.seek(0)
                data = file.read()
            if data.count(b"\n") > self.limits.results_rows:
                self._refuse(TOO_LARGE)
                return []
            return parse_results(data.decode("utf-8", "replace"))
        except OSError:
            return []
        except csv.Error as error:
            self._refuse(f"no table ({error})")
            return []

    @cached_property
    def ends(self) -> dict[int, list[float]]:
        """Return when each epoch ended, seconds after the start of its training, in order; a resume has it again."""
        ends: dict[int, list[float]] = {}
        for row in sorted(self.rows, key=lambda each: each.time_s):
            ends.setdefault(row.epoch, []).append(row.time_s)
        return ends

    def _is_refused(self, size: int, header: bytes) -> bool:
        if size > self.limits.results_bytes:
            self._refuse(TOO_LARGE)
        elif len(header) > LARGEST_HEADER:
            self._refuse(f"no table (its first line has more than {LARGEST_HEADER:,} bytes)")
        else:
            return False
        return True

    def _refuse(self, why: str) -> None:
        self.problems.append(f"{schema.YOLO_DIR}/{self.path.name} is not read, for it is {why}")


def load_epochs(  # noqa: PLR0913, PLR0917 - what is known of the recording, and how much may be
    folder: Path,
    info: Mapping[str, Any],
    events: Events,
    clock: RunClock,
    samples: pd.DataFrame,
    limits: Limits = SHORT,
) -> Loaded:
    """Return the YOLO runs of a recording, their epoch rows, and what could not be placed.

    `folder` is the run folder's yolo/, with one run's files in it or one folder a run (1/, 2/, ...).
    """
    runs: list[YoloRun] = []
    rows: list[EpochRow] = []
    found, problems = places(folder, events, limits.yolo_runs)
    entries, mine = entries_by_run(info), events_by_run(events)
    for number, place in found:
        said, seen = entries.get(number, {}), mine.get(number, {})
        args, note = load_arguments(place / schema.YOLO_ARGS)
        file = ResultsFile(place / schema.YOLO_RESULTS, limits, problems)
        problems += note
        recorded, logged = seen.get("epoch", []), logged_epochs(seen.get("tensorboard", []), clock)
        path = _path(said, seen.get("yolo_run", []))
        if recorded:
            run = YoloRun(number, path, args, "recorded", None)
            placed = _recorded_rows(number, recorded, clock, file)
        else:
            bare = YoloRun(number, path, args, "none", None)
            run, placed = _place_after_the_fact(bare, file, said, clock, samples)
            run, placed = _place_by_events(run, placed, file, _within(logged, float(samples["t_s"].max())))
            problems += [run.note] if run.anchor in {"none", "no-epoch"} and run.note else []
        run = _with_file_times(run, said, placed, clock)
        runs.append(run)
        saved = _saved(placed, _saves(seen.get("checkpoint", []), clock), run.checkpoint_s)
        placed = [replace(row, saved_t_s=t_s) for row, t_s in zip(placed, saved, strict=True)]
        rows += with_logged(placed, logged)
    return tuple(runs), tuple(rows), tuple(dict.fromkeys(problems))  # of several trainings once


def _with_file_times(run: YoloRun, said: Mapping[str, Any], rows: Sequence[EpochRow], clock: RunClock) -> YoloRun:
    """Return a run with what its files' times tell: when it began, and how long its last checkpoint took to write."""
    began = _number(said.get("args_mtime_s")) - clock.start_wall_s
    saved = _number(said.get("weights_mtime_s")) - clock.start_wall_s
    took = saved - max((row.row_t_s for row in rows), default=math.nan)
    return replace(
        run,
        started_t_s=began if math.isfinite(began) and abs(began) <= ABSURD_DISTANCE_S else None,
        checkpoint_s=took if 0 < took <= LONGEST_CHECKPOINT_S else None,
    )


def _saves(events: Events, clock: RunClock) -> list[float]:
    """Return when the recorder saw weights being written, in order."""
    return sorted(clock.t(e["wall_s"], e.get("mono_s")) for e in events)


def _saved(rows: Sequence[EpochRow], saves: Sequence[float], last_took_s: float | None) -> list[float | None]:
    """Return for each row when its last file of weights had been written; None where none was seen being written.

    After the last row the files are written again (`strip_optimizer`): there the first time counts.
    """
    saved: list[float | None] = []
    for row, following in itertools.zip_longest(rows, rows[1:]):
        upto = row.row_t_s + LONGEST_CHECKPOINT_S
        upto = min(following.row_t_s, upto) if following else upto
        mine = saves[bisect_right(saves, row.row_t_s) : bisect_right(saves, upto)]
        saved.append((mine[-1] if following else mine[0]) if mine else None)
    if saved and saved[-1] is None and last_took_s is not None:
        saved[-1] = rows[-1].row_t_s + last_took_s
    return saved


def parse_results(text: str) -> list[ResultsRow]:
    """Return the rows of a results.csv; names are stripped (8.3 padded them), rows without epoch or time dropped.

    A last line without its newline is a row being written and is left for later.
    """
    whole = text[: text.rfind("\n") + 1].lstrip("\ufeff")
    rows = []
    for record in csv.DictReader(whole.splitlines(), skipinitialspace=True):
        numbers = {str(k).strip(): _number(v) for k, v in record.items() if isinstance(v, str)}
        epoch, time_s = numbers.pop("epoch", math.nan), numbers.pop("time", math.nan)
        if _is_epoch(epoch) and 0 <= time_s <= LONGEST_TRAINING_S:
            metrics = {name: value for name, value in numbers.items() if math.isfinite(value)}
            rows.append(ResultsRow(int(epoch), time_s, metrics))
    return rows


def _is_epoch(number: float) -> bool:
    return 0 <= number <= LARGEST_EPOCH


def segments(rows: Sequence[ResultsRow]) -> list[list[ResultsRow]]:
    """Split at resumes: a resumed run appends to the same file and its `time` starts again near 0."""
    parts: list[list[ResultsRow]] = []
    for row in rows:
        if not parts or row.time_s <= parts[-1][-1].time_s:
            parts.append([])
        parts[-1].append(row)
    return parts


def _path(said: Mapping[str, Any], seen: Events) -> str | None:
    paths = (said.get("path"), *(event.get("path") for event in seen))
    return next((path for path in paths if isinstance(path, str) and path), None)


def _recorded_rows(number: int, events: Events, clock: RunClock, file: ResultsFile) -> list[EpochRow]:
    """Return the rows that a recorder stamped as they appeared, and those of its file that came while none ran.

    The first one seen may be epoch 7 of a run that was going on already: where it began, the rows of its file say.
    """
    rows: list[EpochRow] = []
    segment, before = 1, None
    for stamp in sorted(_stamps(events, clock), key=lambda each: each.row_t_s):
        resumed = before is not None and stamp.is_of_another_process(before)
        segment += resumed
        if before is not None and not resumed:
            rows += _unseen_rows(number, segment, file, before, stamp)
        known = rows[-1].row_t_s if rows and not resumed else _start(stamp.row_t_s, stamp.time_s, stamp.epoch, file)
        rows.append(EpochRow(number, segment, stamp.epoch, stamp.row_t_s, known, stamp.metrics))
        before = stamp
    return rows


@dataclass(frozen=True)
class _Stamp:
    """A row of results.csv as a recorder saw it: `time_s` is its own, by the wall clock, since its process began."""

    epoch: int
    time_s: float
    row_t_s: float
    wall_s: float
    metrics: Mapping[str, float]

    def is_of_another_process(self, before: "_Stamp") -> bool:
        """Tell whether a resumed training wrote a row, for whose process `time` starts again.

        It falls, too, where the wall clock is set back. Then its process began at the same wall time as before, while
        that of a resume began later by what passed between the rows, or more.
        """
        if not self.time_s <= before.time_s:
            return False
        began_later_s = (self.wall_s - self.time_s) - (before.wall_s - before.time_s)
        return began_later_s >= (self.row_t_s - before.row_t_s) / 2


def _stamps(events: Events, clock: RunClock) -> Iterator[_Stamp]:
    for event in events:
        epoch, metrics = _number(event.get("epoch")), event.get("metrics")
        if _is_epoch(epoch):
            row_t_s, wall_s = clock.t(event["wall_s"], event.get("mono_s")), _number(event["wall_s"])
            numbers = {k: _number(v) for k, v in metrics.items()} if isinstance(metrics, dict) else {}
            yield _Stamp(int(epoch), _training_time(event.get("time_s")), row_t_s, wall_s, numbers)


def _unseen_rows(number: int, segment: int, file: ResultsFile, before: _Stamp, stamp: _Stamp) -> Iterator[EpochRow]:
    """Yield the rows between two that were stamped, which came while no recorder ran: by their distance to the next.

    Where that does not lie between them (the wall clock was set meanwhile), by their distance to the one before.
    """
    start_s = before.row_t_s
    for row in file.rows if stamp.epoch > before.epoch + 1 else ():
        if not before.epoch < row.epoch < stamp.epoch:
            continue
        by_either = (each.row_t_s - each.time_s + row.time_s for each in (stamp, before))
        row_t_s = next((t_s for t_s in by_either if start_s < t_s < stamp.row_t_s), None)
        if row_t_s is not None:
            yield EpochRow(number, segment, row.epoch, row_t_s, start_s, row.metrics)
            start_s = row_t_s


def _start(row_t: float, time_s: float, epoch: int, file: ResultsFile) -> float:
    """Return when the epoch of a segment's first stamped row began: at the row before it, else at train start."""
    if not math.isfinite(time_s):
        return row_t
    previous = file.ends.get(epoch - 1, ()) if epoch > 1 else ()
    before = bisect_left(previous, time_s)
    return row_t - time_s + (previous[before - 1] if before else 0.0)


def _place_by_events(
    run: YoloRun, placed: list[EpochRow], file: ResultsFile, logged: Sequence[LoggedEpoch]
) -> tuple[YoloRun, list[EpochRow]]:
    """Place rows by the events that YOLO wrote for TensorBoard, where their own place is a guess or contradicts those.

    The events have all trainings of a run; the rows of results.csv separate the checkpoints of the last one.
    """
    agreed = any(row.trained_t_s is not None for row in with_logged(placed, logged))
    if not logged or (agreed and run.anchor in {"file-time", "train-start"}):
        return run, placed
    parts, last = segments(file.rows), max(each.training for each in logged)
    rows = parts[-1] if parts else []
    start_s = train_start({row.epoch: row.time_s for row in rows}, logged)
    run = replace(run, anchor="tensorboard", uncertainty_s=None, note="")
    if start_s is None:
        return run, rows_of_logged(run.number, logged)
    earlier = [each for each in logged if each.training < last]
    return run, [*rows_of_logged(run.number, earlier), *_rows_from(run.number, last, rows, start_s)]


def _within(logged: Sequence[LoggedEpoch], end_s: float) -> Sequence[LoggedEpoch]:
    """Return epochs where some of them ended in a recording of this length; those of another day place nothing."""
    return logged if any(0 < (each.ended_t_s or 0.0) <= end_s + FILE_TIME_SLACK_S for each in logged) else ()


def _place_after_the_fact(
    run: YoloRun, file: ResultsFile, said: Mapping[str, Any], clock: RunClock, samples: pd.DataFrame
) -> tuple[YoloRun, list[EpochRow]]:
    """Place the rows of a copied results.csv; only the last segment after a resume can be placed."""
    number, parts = run.number, segments(file.rows)
    if not parts:
        return replace(run, anchor="no-epoch", note="yolo/results.csv has no complete row"), []
    rows = parts[-1]
    end, last = float(samples["t_s"].max()), rows[-1].time_s
    by_option = _number(said.get("train_start_s")) - clock.start_wall_s
    by_file = _number(said.get("results_mtime_s")) - clock.start_wall_s - last
    notes = [f"the {len(parts) - 1} earlier segments of a resumed run are not placed"] if len(parts) > 1 else []
    if by_option < end and by_option + last > 0:
        return replace(run, anchor="train-start", note="; ".join(notes)), _rows_from(
            number, len(parts), rows, by_option
        )
    if math.isfinite(by_option):
        notes.append("--train-start lies outside the recording and is not used")
    hint = [] if _lies_inside(by_file, last, end) else _zone_hint(by_file, last, end)
    if not hint and _ends_inside(by_file, last, end):
        note = "; ".join(notes)
        return replace(run, anchor="file-time", note=note), _rows_from(number, len(parts), rows, by_file)
    notes += hint
    fit = fit_train_start([row.time_s for row in rows], samples)
    if fit is None:
        notes.append(f"the epochs of yolo/results.csv do not fit into the recording: {GIVE_TRAIN_START}")
        return replace(run, note="; ".join(notes)), []
    run = replace(run, anchor="fitted", uncertainty_s=fit.uncertainty_s, note="; ".join([fit.note, *notes]))
    return run, _rows_from(number, len(parts), rows, fit.train_start_t_s)


def _lies_inside(train_start_s: float, last_s: float, end_s: float) -> bool:
    return train_start_s >= 0 and _ends_inside(train_start_s, last_s, end_s)


def _ends_inside(train_start_s: float, last_s: float, end_s: float) -> bool:
    """Tell whether the last row lies in the recording, which may have begun in the middle of the training."""
    return 0 < train_start_s + last_s <= end_s + FILE_TIME_SLACK_S


def _zone_hint(train_start_s: float, last_s: float, end_s: float) -> list[str]:
    """Say so when the file's time would fit if the recording's times were of another zone."""
    shifts = (half_hours * 1800 for half_hours in range(-28, 29))
    fitting = [shift for shift in shifts if _lies_inside(train_start_s + shift, last_s, end_s)]
    if not fitting:
        return []
    hours = min(fitting, key=abs) / 3600
    return [
        f"results.csv would fit if the recording were {abs(hours):g} h {'earlier' if hours > 0 else 'later'}: "
        "check --timezone"
    ]


def _rows_from(number: int, segment: int, rows: Sequence[ResultsRow], t0: float) -> list[EpochRow]:
    starts = [t0, *(t0 + row.time_s for row in rows[:-1])]
    return [
        EpochRow(number, segment, row.epoch, t0 + row.time_s, start, row.metrics)
        for row, start in zip(rows, starts, strict=True)
    ]


def _number(value: object) -> float:
    """Return a float, NaN for what is none."""
    if type(value) is float:
        return value
    try:
        return float(value)  # type: ignore[arg-type]  # whatever it is, ValueError or TypeError says it is no number
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _training_time(value: object) -> float:
    time_s = _number(value)
    return time_s if 0 <= time_s <= LONGEST_TRAINING_S else math.nan
