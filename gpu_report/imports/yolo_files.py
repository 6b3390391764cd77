"""What an import takes from the folder of a YOLO run: its files, their times, and its events for TensorBoard."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.imports.parsing.readings import ImportedEvent
from gpu_report.tfevents import EventFile, event_files, read_event_file
from gpu_report.tfevents.yolo_epochs import is_of_epoch, logged_trainings, moments


def files_of_yolo(yolo: Path | None) -> tuple[list[Path], tuple[str, ...]]:
    """Return the YOLO run's files that are kept, and what is missing; InputError when `yolo` is no run's folder."""
    if yolo is None:
        return [], ()
    names = (schema.YOLO_ARGS, schema.YOLO_RESULTS)
    files = [path for name in names if (path := yolo / name).is_file()]
    if not files:
        raise InputError(f"{yolo} holds no {' and no '.join(names)}: name the folder of a YOLO run with --yolo")
    missing = [name for name in names if yolo / name not in files]
    return files, tuple(f"{yolo} holds no {name}." for name in missing)


def yolo_facts(yolo: Path, files: Sequence[Path], train_start_s: float | None) -> dict[str, Any]:
    """Return the entry of run.json's `yolo`: where the run lies, and what its files' times tell of its epochs."""
    results_s, args_s = (_mtime(path) if path in files else None for path in _files_of(yolo))
    return {
        "number": 1,
        "path": str(yolo),
        "results_mtime_s": results_s,
        "args_mtime_s": args_s,
        "weights_mtime_s": _mtime(yolo / schema.YOLO_WEIGHTS),
        "train_start_s": train_start_s,
    }


def _files_of(yolo: Path) -> tuple[Path, Path]:
    return yolo / schema.YOLO_RESULTS, yolo / schema.YOLO_ARGS


def _mtime(path: Path) -> float | None:
    """Return when a file was written last, None where there is none."""
    try:
        return round(path.stat().st_mtime, 3)
    except OSError:
        return None


def epochs_in_tensorboard(yolo: Path | None, start_s: float) -> tuple[list[ImportedEvent], tuple[str, ...]]:
    """Return when epochs ended by the event files in a YOLO run's folder, and what of these could not be read."""
    files: list[EventFile] = []
    problems: list[str] = []
    for path in event_files(yolo) if yolo is not None else ():
        try:
            files.append(read_event_file(path, is_of_epoch))
        except InputError as error:
            problems.append(f"Left out: {error}.")
    return epoch_events(files, start_s), (*problems, *(problem for file in files for problem in file.problems))


def epoch_events(files: Sequence[EventFile], start_s: float) -> list[ImportedEvent]:
    """Return when epochs ended by some event files, on a clock that begins at `start_s` (s since 1970)."""
    return [
        ImportedEvent("tensorboard", wall_s, wall_s - start_s, {"run": 1, **fields})
        for wall_s, fields in moments(logged_trainings(files))
    ]
