"""The folder that is written for TensorBoard: one of its own, with one event file, ours.

Not YOLO's: with several GPUs ultralytics removes that folder before it launches, and where two programs write events
into one folder TensorBoard shows them as one run, whose steps go back.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from gpu_report import schema
from gpu_report.errors import InputError, UsageError, unwritable
from gpu_report.ordinary_file import open_ordinary

EVENT_FILE: Final = "events.out.tfevents.gpu-report"
WRITTEN_BY_YOLO: Final = (schema.YOLO_ARGS, schema.YOLO_WEIGHTS, "weights/best.pt")
RESULTS_BEGIN: Final = b"epoch,"  # YOLO's results.csv, without its spaces: the name alone is anybody's
LONGEST_HEADER: Final = 4096  # bytes
OURS: Final = (schema.SAMPLES_CSV, schema.RUN_JSON)
# Below the folder: `runs/detect/train` lies two levels below `runs`. What lies deeper is of a folder that holds more
# than trainings, and cannot be searched in no time.
DEEPEST: Final = 3
MOST_ENTRIES: Final = 10_000
ADVICE: Final = "name a folder of its own, such as tensorboard/run1"


def file_in(folder: Path) -> Path:
    """Return the event file to write in a folder; UsageError for a folder that is in use by something else."""
    from gpu_report.tfevents.files import event_files

    folder = folder.expanduser()
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file: {ADVICE}")
    real = Path(os.path.realpath(folder))
    for each in (*_upwards(real), *_downwards(real)):
        if (kind := _kind(each)) is not None:
            raise UsageError(f"{real} {_where(real, each)}{kind}: {ADVICE}")
    others = [path for path in event_files(folder) if path.name != EVENT_FILE]
    if others:
        raise UsageError(f"{folder} holds events of another program ({others[0].name}): {ADVICE}")
    return folder / EVENT_FILE


def write_event_file(path: Path, data: bytes) -> None:
    """Write an event file whole, in place of an earlier one of ours; InputError where it cannot be written."""
    part = path.with_name(f".gpu-report.{os.getpid()}.part")  # no name that TensorBoard takes for events
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise InputError(
            f"{path} cannot be written: {unwritable(path.parent, error, 'name another folder')}"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _kind(folder: Path) -> str | None:
    """Return what a folder is that others write to, None for any other."""
    try:
        is_ours = all((folder / name).exists() for name in OURS)
        is_yolos = any((folder / name).exists() for name in WRITTEN_BY_YOLO) or _has_results(folder)
    except OSError:  # not ours to see
        return None
    return "a run folder of gpu-report" if is_ours else "YOLO's own folder" if is_yolos else None


def _has_results(folder: Path) -> bool:
    path = folder / schema.YOLO_RESULTS
    if not path.is_file():
        return False
    with open_ordinary(path) as file:
        return file.read(LONGEST_HEADER).replace(b" ", b"").startswith(RESULTS_BEGIN)


def _where(folder: Path, found: Path) -> str:
    """Return where what was found lies, seen from the folder, up to the word that says what it is."""
    if folder == found:
        return "is "
    return f"lies in {found}, " if folder.is_relative_to(found) else f"contains {found}, "


def _upwards(folder: Path) -> Iterator[Path]:
    yield folder
    yield from folder.parents


def _downwards(folder: Path) -> Iterator[Path]:
    """Yield the folders below, breadth first, within DEEPEST levels and MOST_ENTRIES."""
    level, left = [folder], MOST_ENTRIES
    for _ in range(DEEPEST):
        below: list[Path] = []
        for each in level:
            entries = _entries(each, left)
            left -= len(entries)
            below += [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
        yield from below
        level = below


def _entries(folder: Path, most: int) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, max(most, 0)))
    except OSError:
        return []
