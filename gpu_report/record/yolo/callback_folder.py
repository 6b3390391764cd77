"""Where our callbacks say that a training writes: exact, at once, and cheaper than looking for it."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpu_report import schema
from gpu_report.ordinary_file import open_ordinary

MAX_READ = 1 << 20  # bytes of one file at one look; a training writes 2 KiB an epoch
MARK, PROFILE_MARK = b'"kind": "run"', b'"kind": "profile"'
OF_TRAINING = b'"task": "train"'


class InsideWatch:
    """The folder inside/ of a run folder, read as it grows: a look costs 10 us while nothing has."""

    def __init__(self, folder: Path) -> None:
        """Read from here on: what stands there already is of an earlier recording."""
        self._folder = folder / schema.INSIDE_DIR
        self._read: dict[str, int] = {entry.name: size for entry, size in self._sizes()}
        self.has_told = False  # of a training, or of a model that is called
        self.profiled: list[dict[str, Any]] = []  # windows of the profiler that ended, until they are taken from here

    def new_trainings(self) -> list[Path]:
        """Return the folders of trainings that have begun since the last look."""
        found: list[Path] = []
        for entry, size in self._sizes():
            if size > self._read.get(entry.name, 0):
                found += self._trainings_in(entry)
        return found

    def _sizes(self) -> Iterator[tuple[os.DirEntry[str], int]]:
        try:
            with os.scandir(self._folder) as entries:
                yield from [(entry, entry.stat().st_size) for entry in entries if entry.name.endswith(".jsonl")]
        except OSError:
            return  # not there (yet)

    def _trainings_in(self, entry: os.DirEntry[str]) -> list[Path]:
        try:
            with open_ordinary(Path(entry.path)) as file:
                file.seek(self._read.get(entry.name, 0))
                data = file.read(MAX_READ)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._read[entry.name] = self._read.get(entry.name, 0) + (len(whole) or len(data) // MAX_READ * MAX_READ)
        lines = whole.splitlines()
        runs = [line for line in lines if MARK in line]
        found = [path for line in runs for path in _training(line)]
        # a training whose folder has another name here, as a container's has, is looked for
        self.has_told |= bool(found) or any(OF_TRAINING not in line for line in runs)
        self.profiled += [said for line in lines if PROFILE_MARK in line for said in _profiled(line)]
        return found


def _training(line: bytes) -> list[Path]:
    try:
        said = json.loads(line)
        return [Path(said["save_dir"])] if said["task"] == "train" and Path(said["save_dir"]).is_dir() else []
    except (ValueError, KeyError, TypeError, OSError, RecursionError):
        return []  # garbled, or of a training that writes nowhere


def _profiled(line: bytes) -> list[dict[str, Any]]:
    try:
        said = json.loads(line)
        return [said] if said["kind"] == "profile" else []
    except (ValueError, KeyError, TypeError, RecursionError):
        return []  # garbled
