"""Finding the folder that a YOLO training writes into, from outside the training."""

import json
import os
import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal

from gpu_report import run_folder, schema
from gpu_report.ordinary_file import LARGEST_CONFIG, open_ordinary

MAX_DEPTH = 6  # runs/detect/PROJECT/NAME lies four levels below where a training is started
MAX_ENTRIES = 8000  # a walk looks at no more names than this, about 20 ms ...
MAX_FOLDER_ENTRIES = 2000  # ... and at no more of one folder: one with so many is data, not a list of runs
MAX_WALK_S = 0.05  # a slow disk has looked at fewer names by then, and no tick waits for it
PROC = Path("/proc")
RUNS = "runs"  # where YOLO puts its runs unless told otherwise: entered first
# Where trainings keep images, environments and sources: large, and never a YOLO run's folder.
SKIPPED = frozenset(
    {
        "images",
        "labels",
        "site-packages",
        "node_modules",
        "__pycache__",
        run_folder.RUNS_DIR,
        "weights",
        "datasets",
        "venv",
        "proc",
        "sys",
    }
)
_PROJECT = re.compile(
    r"""(?:^|[\s'"])(?:project=|--project[=\s])(?:(?P<q>['"])(?P<quoted>.+?)(?P=q)|(?P<bare>[^\s'"]+))""", re.MULTILINE
)
MARKS = (schema.YOLO_RESULTS, schema.YOLO_ARGS)


@dataclass(frozen=True)
class RunDir:
    """A folder that looks like a YOLO run, and when the newest of its two files was written (UTC seconds).

    `begun_s` is when its args.yaml was, which YOLO does as a training begins or resumes; None without one. `users` are
    the owners of these files.
    """

    path: Path
    changed_s: float
    begun_s: float | None = None
    users: frozenset[int] = frozenset()


def find_newest(
    roots: Iterable[Path],
    since_wall_s: float,
    known: Collection[Path] = (),
    *,
    begun_since: bool = False,
    of_users: Collection[int] | None = None,
) -> Path | None:
    """Return the run folder under `roots` written to last, since `since_wall_s`; None when that one is known.

    With `begun_since` its training must have begun since then, too: one that somebody else started before is no run of
    a command that is started here. With `of_users` its files must be theirs.
    """
    found = [run for root in _outermost(roots) for run in walk(root) if run.changed_s >= since_wall_s]
    if begun_since:
        found = [run for run in found if run.begun_s is None or run.begun_s >= since_wall_s]
    if of_users is not None:
        found = [run for run in found if run.users <= set(of_users)]
    newest = max(found, key=lambda run: run.changed_s, default=None)
    return None if newest is None or newest.path in known else newest.path


def walk(root: Path) -> Iterator[RunDir]:
    """Yield the run folders under `root`, breadth first, within a bounded number of entries and time."""
    level, seen, deadline = [str(root)], 0, time.monotonic() + MAX_WALK_S
    for _ in range(MAX_DEPTH + 1):
        below: list[str] = []
        for folder in level:
            entries = _entries(folder)
            seen += len(entries)
            if _is_ours(entries):
                continue
            marks = [entry for entry in entries if entry.name in MARKS]
            if marks:
                yield from _as_found(folder, marks)
            else:
                below.extend(entry.path for entry in entries if _worth_entering(entry))
            if seen >= MAX_ENTRIES or time.monotonic() > deadline:
                return
        level = sorted(below, key=lambda folder: Path(folder).name != RUNS)


def _is_ours(entries: Sequence[os.DirEntry[str]]) -> bool:
    """Tell a run folder of gpu-report, whose yolo/ holds copies and is no YOLO run."""
    names = {entry.name for entry in entries}
    return schema.SAMPLES_CSV in names and schema.EVENTS_JSONL in names


def search_roots(command: Sequence[str], pids: Iterable[int]) -> list[Path]:
    """Return where a run may appear: our own folder, `project=`, YOLO's runs folder, the processes' folders."""
    roots = [*_working_directory("self"), *_project_folders(command), *_settings_runs_dir()]
    for pid in pids:
        roots += roots_of(pid)
    return list(dict.fromkeys(roots))


def roots_of(pid: int, proc: Path = PROC) -> list[Path]:
    """Return where a process would put its runs: its working folder, and what `project=` on its command line names."""
    return [*_working_directory(pid, proc), *_project_folders(_words_of(pid, proc))]


def _outermost(roots: Iterable[Path]) -> list[Path]:
    """Drop roots that lie within another one, `/`, and what is no folder."""
    unique = sorted({root for root in roots if root != Path("/") and _is_folder(root)}, key=lambda r: len(r.parts))
    kept: list[Path] = []
    for root in unique:
        inside = next((outer for outer in kept if root.is_relative_to(outer)), None)
        if inside is None or len(root.relative_to(inside).parts) >= MAX_DEPTH:
            kept.append(root)
    return kept


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # not ours to see
        return False


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(islice(entries, MAX_FOLDER_ENTRIES))
    except OSError:
        return []


def _worth_entering(entry: os.DirEntry[str]) -> bool:
    if entry.name.startswith(".") or entry.name.lower() in SKIPPED:
        return False
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _as_found(folder: str, marks: Sequence[os.DirEntry[str]]) -> Iterator[RunDir]:
    try:
        status = {entry.name: entry.stat() for entry in marks}
        written_s = {name: each.st_mtime for name, each in status.items()}
        users = frozenset(each.st_uid for each in status.values())
        yield RunDir(Path(folder), max(written_s.values()), written_s.get(schema.YOLO_ARGS), users)
    except OSError:
        return  # deleted meanwhile, as DDP does before it launches


def _project_folders(command: Sequence[str]) -> list[Path]:
    """Return what `project=X` or `--project X` names, also within a word such as `sh -c` takes, seen from here."""
    found = _PROJECT.finditer("\n".join(command))
    return [folder for match in found for folder in _expanded(match["quoted"] or match["bare"])]


def _expanded(value: str) -> list[Path]:
    try:
        return [Path(value).expanduser().absolute()]
    except (OSError, RuntimeError):  # no such user, no home
        return []


def _words_of(pid: int, proc: Path) -> list[str]:
    try:
        return (proc / str(pid) / "cmdline").read_bytes().decode("utf-8", "replace").split("\0")
    except OSError:
        return []


def _settings_runs_dir() -> list[Path]:
    """Return the folder under which YOLO puts relative projects: `runs_dir` of its own settings file."""
    try:
        config = os.environ.get("YOLO_CONFIG_DIR") or os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        with open_ordinary(Path(config) / "Ultralytics" / "settings.json") as file:
            settings = json.loads(file.read(LARGEST_CONFIG))
        return [Path(settings["runs_dir"])]
    except (OSError, RuntimeError, ValueError, KeyError, TypeError):
        return []


def _working_directory(pid: int | Literal["self"], proc: Path = PROC) -> list[Path]:
    try:
        return [(proc / str(pid) / "cwd").readlink()]
    except OSError:
        return []  # gone, or another user's
