"""Import of TensorBoard's event files: the exact ends of YOLO's epochs, its losses, and readings of the GPU."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Final

import pandas as pd

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.imports import run_writer, times
from gpu_report.imports.kernel_around import kernel_happenings
from gpu_report.imports.smi_merge import ImportedEvent
from gpu_report.imports.tensorboard_tags import GpuTag, gpu_tag
from gpu_report.imports.yolo_files import epoch_events, files_of_yolo, yolo_facts
from gpu_report.ordinary_file import MOST_GPUS
from gpu_report.tfevents import EventFile, Scalar, event_files, read_event_file
from gpu_report.tfevents.yolo_epochs import is_of_epoch
from gpu_report.wording import first_few

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

Readings = Mapping[tuple[float, int], Mapping[str, float]]  # by wall time and GPU: value by column


def import_tensorboard(  # noqa: PLR0913 (the command's options)
    logs: Sequence[Path],
    output: Path,
    *,
    yolo: Path | None = None,
    kernel_log: Path | None = None,
    timezone: str | None = None,
    boot_time: str | float | None = None,
) -> tuple[str, ...]:
    """Write event files, or those in folders, as the run folder `output`; return what there is to say, in sentences.

    `yolo` is the folder of the YOLO run, that of the first event file where YOLO's files lie beside it. `timezone` and
    `boot_time` are for the kernel log. InputError when no file holds epochs of YOLO or readings of a GPU, UsageError
    for options that cannot be and for an `output` that is taken.
    """
    run_writer.require_free(output)
    zone = times.zone(timezone)
    boot_time_s = times.moment(boot_time, "--boot-time", zone)
    files, problems = _read(logs)
    readings = _readings(files)
    start_s, end_s = _span(files)
    epochs = epoch_events(files, start_s)
    yolo = yolo or _yolo_beside(files)
    kept, yolo_problems = files_of_yolo(yolo)
    kernel, kernel_problems = kernel_happenings(kernel_log, (start_s, end_s), zone, boot_time_s)
    rows, interval_s, notes = _rows(readings, (start_s, end_s))
    facts = {**_facts((start_s, end_s), interval_s, rows), "notes": list(notes)}
    if yolo is not None or epochs:
        facts["yolo"] = [yolo_facts(yolo or files[0].path.parent, kept, None)]

    def fill(folder: Path) -> None:
        run_writer.write_samples(folder, rows)
        run_writer.write_events(folder, [*_frame(start_s, end_s, yolo), *epochs, *kernel])
        run_writer.write_yolo(folder, kept)
        run_writer.write_run_json(folder, facts)

    run_writer.write_whole(output, fill)
    return first_few((*notes, *problems, *yolo_problems, *kernel_problems))


def _read(logs: Sequence[Path]) -> tuple[list[EventFile], list[str]]:
    """Return the files that hold something for us; InputError where none does."""
    files: list[EventFile] = []
    unusable: list[str] = []
    for path in _named(logs):
        try:
            files.append(read_event_file(path, _is_wanted))
        except InputError as error:
            unusable.append(str(error))
    useful = [file for file in files if file.scalars]
    if not useful:
        raise InputError(unusable[0] if unusable else f"{logs[0]} {NOTHING}")
    return useful, [*(f"Left out: {why}." for why in unusable), *(said for file in files for said in file.problems)]


def _named(logs: Sequence[Path]) -> list[Path]:
    """Return the files that are named, and those in folders that are; each once."""
    paths = [path for log in logs for path in (event_files(log) if log.is_dir() else [log])]
    return list({path.resolve(): path for path in paths}.values())


def _is_wanted(tag: str) -> bool:
    return is_of_epoch(tag) or gpu_tag(tag) is not None


def _readings(files: Sequence[EventFile]) -> Readings:
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


def _rows(readings: Readings, span: tuple[float, float]) -> tuple[pd.DataFrame, float, tuple[str, ...]]:
    """Return the rows of samples.csv, the interval that each stands for (s), and what is to be known of them."""
    if not readings:
        note = "The events have no readings of a GPU: the report has epochs alone."
        return _frame_of({(at_s, 0): {} for at_s in _moments(span)}, span[0]), EMPTY_EVERY_S, (note,)
    apart = _apart_s(readings)
    ends: Readings = {(at_s, gpu): {} for at_s in span for _, gpu in readings}  # with no reading: how long it was
    readings = {**ends, **readings}
    if apart is not None and apart <= WATCHED_S:
        return _frame_of(readings, span[0]), apart, ()
    every = "one reading" if apart is None else f"one reading about every {apart:.0f} s"
    note = f"Each GPU has {every}. {ONE_MOMENT}"
    return _frame_of(readings, span[0]), MOMENT_S, (note,)


def _moments(span: tuple[float, float]) -> list[float]:
    """Return the moments of rows that have no reading, from end to end."""
    every_s = max(EMPTY_EVERY_S, (span[1] - span[0]) / MOST_EMPTY)
    return [*(span[0] + every_s * at for at in range(math.ceil((span[1] - span[0]) / every_s))), span[1]]


def _apart_s(readings: Readings) -> float | None:
    """Return how far readings of a GPU are apart, typically, None of a single one."""
    by_gpu: dict[int, list[float]] = {}
    for at_s, gpu in readings:
        by_gpu.setdefault(gpu, []).append(at_s)
    steps = [after - before for moments in by_gpu.values() for before, after in pairwise(sorted(moments))]
    return round(median(steps), 3) if steps else None


def _frame_of(readings: Readings, start_s: float) -> pd.DataFrame:
    rows = [
        {"wall_s": at_s, "mono_s": at_s - start_s, "gpu": gpu, **readings[at_s, gpu]} for at_s, gpu in sorted(readings)
    ]
    return pd.DataFrame(rows).reindex(columns=[column.name for column in schema.SAMPLES_COLUMNS])


def _facts(span: tuple[float, float], interval_s: float, rows: pd.DataFrame) -> dict[str, Any]:
    length_s = span[1] - span[0]
    facts = run_writer.facts_of_import(SOURCE, (span[0], 0.0), (span[1], length_s))
    facts["interval_s"] = round(max(interval_s, 0.001), 3)
    facts["gpus"] = [{"index": int(gpu)} for gpu in sorted(rows["gpu"].unique())]
    return facts


def _frame(start_s: float, end_s: float, yolo: Path | None) -> list[ImportedEvent]:
    """Return the events at the ends of the recording, and the YOLO run that it is of."""
    happenings = [
        ImportedEvent("recording_started", start_s, 0.0, {"segment": 1}),
        ImportedEvent("recording_ended", end_s, end_s - start_s, {"ended_by": "import"}),
        ImportedEvent("xid_events", start_s, 0.0, {"status": "unavailable", "reason": "TensorBoard does not log them"}),
    ]
    if yolo is not None:
        happenings.append(ImportedEvent("yolo_run", start_s, 0.0, {"path": str(yolo), "number": 1}))
    return happenings
