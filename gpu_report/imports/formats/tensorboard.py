"""Import of TensorBoard's event files: the exact ends of YOLO's epochs, its losses, and readings of the GPU."""

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.imports.formats.tensorboard_tags import GpuTag, gpu_tag
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.readings import Found, Readings
from gpu_report.imports.selection import Selection
from gpu_report.imports.yolo_files import epoch_events
from gpu_report.ordinary_file import MOST_GPUS
from gpu_report.tfevents import EventFile, Scalar, event_files, read_event_file
from gpu_report.tfevents.files import is_event_file
from gpu_report.tfevents.yolo_epochs import is_of_epoch

SOURCE: Final = "TensorBoard"
# A callback writes its readings one after the other: what is no further apart, at the same step, is one moment.
SAME_MOMENT_S: Final = 1.0
# A reading at the start of an epoch is of that moment: it does not stand for the minutes to the next one. A row stands
# for two intervals and a half at most.
MOMENT_S: Final = 1.0
# Readings as far apart as this were taken to be looked at in TensorBoard, once an epoch or so, not to watch a GPU.
WATCHED_S: Final = 10.0

# Without a reading rows say how long it was; a recording's length is what each file of it is judged by.
EMPTY_EVERY_S: Final = 10.0
MOST_EMPTY: Final = 100_000
NOTHING: Final = (
    "holds neither epochs of YOLO nor readings of a GPU: name an events.out.tfevents... of a YOLO training, "
    "which writes one after `yolo settings tensorboard=True`"
)
ONE_MOMENT: Final = (
    "Such readings are mostly taken at the start of an epoch, when a GPU is nearly always idle. "
    "They do not show whether it was busy in between."
)

ByMoment = Mapping[tuple[float, int], Mapping[str, float]]  # by wall time and GPU: value by column


def is_log(path: Path, _: str) -> bool:
    """Tell whether a path is an event file, or a folder: no other log is one."""
    return path.is_dir() or is_event_file(path)


def read(paths: Sequence[Path], _: Selection) -> Found:
    """Return what event files, or those in folders, say; InputError where none has epochs of YOLO or readings of a GPU.

    The YOLO run is that of the first event file where YOLO's files lie beside it.
    """
    files, problems = _read(paths)
    readings = _readings(files)
    rows, interval_s, notes = _rows(readings, _span(files))
    epochs = [(each.kind, each.wall_s, each.fields) for each in epoch_events(files, 0.0)]
    return Found(
        SOURCE,
        NOTHING,
        [rows],
        tuple(problems),
        notes,
        interval_s=interval_s,
        happenings=epochs,
        yolo=_yolo_beside(files),
        trained_in=files[0].path.parent if epochs else None,
    )


def _read(logs: Sequence[Path]) -> tuple[list[EventFile], list[str]]:
    """Return the files that hold something for us; InputError where none does."""
    nothing = f"{logs[0]} {NOTHING}"
    if (logs[0] / schema.RUN_JSON).is_file():
        folder = shlex.quote(str(logs[0]))
        nothing = f"{logs[0]} is a run folder, which needs no import: run `gpu-report render report.html {folder}`"
    files, left_out = read_each(_named(logs), lambda path: read_event_file(path, _is_wanted), nothing)
    useful = [file for file in files if file.scalars]
    if not useful:
        raise InputError(left_out[0].removesuffix(".") if left_out else nothing)
    return useful, [*left_out, *(said for file in files for said in file.problems)]


def _named(logs: Sequence[Path]) -> list[Path]:
    """Return the files that are named, and those in folders that are; each once."""
    paths = [path for log in logs for path in (event_files(log) if log.is_dir() else [log])]
    return list({path.resolve(): path for path in paths}.values())


def _is_wanted(tag: str) -> bool:
    return is_of_epoch(tag) or gpu_tag(tag) is not None


def _readings(files: Sequence[EventFile]) -> ByMoment:
    """Return the readings of GPUs; those of one step that were written together are of one moment.

    Of more than MOST_GPUS, which no machine has, those with the lowest numbers are taken.
    """
    found: dict[tuple[float, int], dict[str, float]] = {}
    for file in files:
        latest: dict[int, tuple[int, float]] = {}  # by GPU: step and time of the moment before
        for scalar, tag in _gpu_scalars(file):
            step, wall_s = latest.get(tag.gpu, (scalar.step, -math.inf))
            again = tag.column in found.get((wall_s, tag.gpu), ())
            if again or step != scalar.step or not 0 <= scalar.wall_s - wall_s <= SAME_MOMENT_S:
                wall_s = scalar.wall_s
            latest[tag.gpu] = scalar.step, wall_s
            found.setdefault((wall_s, tag.gpu), {})[tag.column] = tag.converted(scalar.value)
    gpus = set(sorted({gpu for _, gpu in found})[:MOST_GPUS])
    return {key: values for key, values in found.items() if key[1] in gpus}


def _gpu_scalars(file: EventFile) -> Iterator[tuple[Scalar, GpuTag]]:
    for scalar in file.scalars:
        tag = gpu_tag(scalar.tag)
        if tag is not None and math.isfinite(scalar.value):
            yield scalar, tag


def _span(files: Sequence[EventFile]) -> tuple[float, float]:
    """Return when what is imported begins and ends, in seconds since 1970."""
    moments = [scalar.wall_s for file in files for scalar in file.scalars]
    first_s = min(moments)
    begun = [file.begun_s for file in files if file.begun_s is not None and file.begun_s < first_s]
    return min(begun, default=first_s), max(moments)


def _yolo_beside(files: Sequence[EventFile]) -> Path | None:
    """Return the folder of the first event file where YOLO's own files lie in it."""
    folder = files[0].path.parent
    return folder if any((folder / name).is_file() for name in (schema.YOLO_ARGS, schema.YOLO_RESULTS)) else None


def _rows(readings: ByMoment, span: tuple[float, float]) -> tuple[Readings, float, tuple[str, ...]]:
    """Return the rows, the interval that each stands for (s), and what is to be known of them."""
    if not readings:
        note = "The events have no readings of a GPU: the report has epochs alone."
        return _table({(at_s, 0): {} for at_s in _moments(span)}), EMPTY_EVERY_S, (note,)
    apart = _apart_s(readings)
    ends: ByMoment = {(at_s, gpu): {} for at_s in span for _, gpu in readings}  # with no reading: how long it was
    readings = {**ends, **readings}
    if apart is not None and apart <= WATCHED_S:
        return _table(readings), apart, ()
    every = "one reading" if apart is None else f"one reading about every {apart:.0f} s"
    note = f"Each GPU has {every}. {ONE_MOMENT}"
    return _table(readings), MOMENT_S, (note,)


def _moments(span: tuple[float, float]) -> list[float]:
    """Return the moments of rows that have no reading, from end to end."""
    every_s = max(EMPTY_EVERY_S, (span[1] - span[0]) / MOST_EMPTY)
    return [*(span[0] + every_s * at for at in range(math.ceil((span[1] - span[0]) / every_s))), span[1]]


def _apart_s(readings: ByMoment) -> float | None:
    """Return how far readings of a GPU are apart, typically, None of a single one."""
    by_gpu: dict[int, list[float]] = {}
    for at_s, gpu in readings:
        by_gpu.setdefault(gpu, []).append(at_s)
    steps = [after - before for moments in by_gpu.values() for before, after in pairwise(sorted(moments))]
    return round(median(steps), 3) if steps else None


def _table(readings: ByMoment) -> Readings:
    ordered = sorted(readings)
    columns = {column for values in readings.values() for column in values}
    return Readings(
        np.array([at_s for at_s, _ in ordered]),
        np.array([gpu for _, gpu in ordered], dtype=np.int64),
        {name: np.array([readings[key].get(name, np.nan) for key in ordered]) for name in sorted(columns)},
    )
