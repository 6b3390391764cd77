"""Where runs lie: folders of this machine, and URLs that fsspec opens; found, and known by the files that they hold."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from gpu_report import schema
from gpu_report.errors import InputError
from gpu_report.fleet.cells import text
from gpu_report.fleet.remote import is_url, remote_files, without_user

MARKS = frozenset({schema.RUN_JSON, schema.SAMPLES_CSV})  # a folder with one of these is a run
KEPT_FILES = frozenset(schema.RUN_FILES)
KEPT_FOLDERS = frozenset({schema.YOLO_DIR, schema.INSIDE_DIR, schema.STACKS_DIR, schema.PROFILE_DIR})
KEY_LETTERS = 16


@dataclass(frozen=True)
class RunPlace:
    """A run's folder or URL as it is opened; `fingerprint` changes when a file of it does. `bytes` are of `files`.

    `names` are those of the files within, kept only of a URL, from where they are to be fetched.
    """

    address: str
    fingerprint: str
    files: int
    bytes: int
    names: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Return it as it is written down: without user, password or any other secret."""
        return shown(self.address)

    @property
    def key(self) -> str:
        """Return letters that are the place's own."""
        return hashlib.sha256(os.fsencode(without_user(self.address))).hexdigest()[:KEY_LETTERS]


@dataclass(frozen=True)
class UnlistedFolders:
    """Folders of which nobody can tell whether their runs are gone: not to be listed, or empty, as without its disk."""

    unread: list[str] = field(default_factory=list)
    empty: list[str] = field(default_factory=list)


def shown(address: str) -> str:
    """Return an address without user, password or any other secret."""
    return text(without_user(address))


def root_of(folder: str) -> str:
    """Return a folder as its runs' addresses begin, one way for each; InputError where it does not exist."""
    if is_url(folder):
        return re.sub(r"(?<=[^:/])//+", "/", folder).rstrip("/")
    path = Path(folder).resolve()
    if not path.is_dir():
        raise InputError(f"{folder} is no folder: name one that holds run folders")
    return str(path)


def find_runs(root: str, unseen: UnlistedFolders | None = None) -> Iterator[RunPlace]:
    """Yield the runs in a root and below, each once: no run is looked for within another, in a hidden folder or a link.

    InputError where a URL cannot be listed; folders that cannot be, and empty ones, are put into `unseen`.
    """
    if not is_url(root):
        yield from _below(root, unseen or UnlistedFolders())
        return
    by_folder: dict[str, list[tuple[str, int, str]]] = {}
    for folder, name, size, stamp in remote_files(root):
        by_folder.setdefault(folder, []).append((name, size, stamp))
    for run, files in _grouped(by_folder):
        yield _place(run, files)


def _grouped(by_folder: dict[str, list[tuple[str, int, str]]]) -> Iterator[tuple[str, list[tuple[str, int, str]]]]:
    """Yield the outermost folders that are runs, each with its files as a run folder has them."""
    within: str | None = None
    for folder in sorted(by_folder, key=lambda each: each.split("/")):
        if within is not None and folder.startswith(f"{within}/"):
            continue
        names = {name for name, _, _ in by_folder[folder]}
        if names & MARKS:
            within = folder
            yield folder, [*_kept(by_folder[folder]), *_of_folders(folder, by_folder)]


def _kept(files: Iterable[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    return [each for each in files if each[0] in KEPT_FILES]


def _of_folders(run: str, by_folder: dict[str, list[tuple[str, int, str]]]) -> Iterator[tuple[str, int, str]]:
    numbered = tuple(f"{schema.YOLO_DIR}/{number}" for number in range(1, 100))
    for inner in (*sorted(KEPT_FOLDERS), *numbered):
        yield from ((f"{inner}/{name}", size, stamp) for name, size, stamp in by_folder.get(f"{run}/{inner}", ()))


def _below(folder: str, unseen: UnlistedFolders) -> Iterator[RunPlace]:
    folders = [folder]
    while folders:
        here = folders.pop()
        try:
            with os.scandir(here) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            unseen.unread.append(here)
            continue
        if not entries:
            unseen.empty.append(here)
        if any(entry.name in MARKS for entry in entries):
            yield _place(here, list(_files(entries)))
            continue
        inner = [entry.path for entry in entries if not entry.name.startswith(".") and _is_folder(entry)]
        folders += reversed(inner)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _files(entries: Iterable[os.DirEntry[str]], inner: str = "") -> Iterator[tuple[str, int, str]]:
    """Yield the files of a run, with their names in it, their sizes and times."""
    for entry in entries:
        if inner or entry.name in KEPT_FILES:
            try:
                status = entry.stat()
                if entry.is_file():
                    yield f"{inner}{entry.name}", status.st_size, str(status.st_mtime_ns)
                    continue
            except OSError:
                continue
        if _is_folder(entry) and (inner or entry.name in KEPT_FOLDERS):
            try:
                with os.scandir(entry.path) as found:
                    deeper = sorted(found, key=lambda each: each.name)
            except OSError:
                continue
            yield from _files(deeper, f"{inner}{entry.name}/")


def _place(address: str, files: list[tuple[str, int, str]]) -> RunPlace:
    known = "\n".join("\t".join(map(str, each)) for each in sorted(files))
    digest = hashlib.sha256(known.encode("utf-8", "surrogateescape")).hexdigest()[:KEY_LETTERS]
    names = tuple(name for name, _, _ in files) if is_url(address) else ()
    return RunPlace(address, digest, len(files), sum(size for _, size, _ in files), names)
