"""A folder of baselines: DIR/KEY/SET-UP/RUN, each a run folder as it was recorded, with what it was set up with.

It can lie in a repository, be an artifact, or a folder that machines share. KEY is what the user tells apart (a branch,
a data set); SET-UP is made from the run's fingerprint, so that one folder serves many GPUs and models.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from gpu_report import run_folder, schema
from gpu_report.errors import InputError, NotComparableError, UsageError, unwritable
from gpu_report.ordinary_file import refuse_special

FACTS = "baseline.json"
KEPT = 5  # baselines of one set-up: enough for a band, few enough for a repository
FOLDERS = (schema.YOLO_DIR, schema.INSIDE_DIR)
OF_YOLO = (schema.YOLO_ARGS, schema.YOLO_RESULTS)  # what YOLO writes into a folder of its own


@dataclass(frozen=True)
class AcceptedBaseline:
    """A baseline: its run folder, when it was accepted, and the facts that were written down then."""

    path: Path
    accepted_wall_s: float
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class BaselineSet:
    """The baselines of one key."""

    directory: Path
    key: str

    @property
    def folder(self) -> Path:
        """Return the key's folder: whatever a branch is called, it is one name and no way out of the directory."""
        name = quote(self.key, safe="")
        if not name or set(name) == {"."}:
            raise UsageError(f"--key {self.key!r} is no name")
        return self.directory / name

    def accept(self, run: Path, setup: str, facts: Mapping[str, Any], keep: int = KEPT, began: str = "") -> Path:
        """Copy a run here as its set-up's newest baseline, drop those over `keep`, and return where it lies.

        It is called by when it began (`began`, as folders of runs are) and a part of its digest: whatever the run was
        called, CI calls all of them the same.
        """
        place, digest = self.folder / setup, digest_of(run)
        target = place / "-".join(part for part in (began, digest[:8]) if part)
        part = place / f".{target.name}.{os.getpid()}.part"
        try:
            place.mkdir(parents=True, exist_ok=True)
            _copy(run, part)
            run_folder.write_json(part / FACTS, {"accepted_wall_s": round(time.time(), 3), **facts})
            for same in [each for each in _of_place(place) if digest_of(each.path) == digest]:
                shutil.rmtree(same.path)
            if target.exists():
                shutil.rmtree(target)
            part.rename(target)
            for old in _of_place(place)[keep:]:
                shutil.rmtree(old.path)
        except OSError as error:
            why = unwritable(self.directory, error, "name another folder with --baseline-dir")
            raise UsageError(f"cannot keep a baseline in {place}: {why}") from error
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return target

    def accepted(self) -> list[AcceptedBaseline]:
        """Return all baselines, newest first; NotComparableError that says where there are none."""
        found = [each for place in self.folder.glob("*") if place.is_dir() for each in _of_place(place)]
        if not found:
            raise NotComparableError(f"there is no baseline yet: {self.directory} {self._lacks()}")
        return sorted(found, key=lambda each: -each.accepted_wall_s)

    def _lacks(self) -> str:
        """Return what is wrong with a directory that has no baseline of the key."""
        if not self.directory.exists():
            return "does not exist: either this is the first run, or the path is wrong"
        if any(map(_is_run, (self.directory, *self.directory.glob("*")))):
            return f"holds runs that were not accepted (use `gpu-report compare {self.directory} RUN`)"
        keys = sorted(unquote(path.name) for path in self.directory.glob("*") if path.is_dir() and path != self.folder)
        if keys:
            return f"has none of key {self.key}, and has {', '.join(keys)}"
        return f"has none of key {self.key}" if self.folder.exists() else "is empty"


def baseline_sets(directory: Path) -> list[BaselineSet]:
    """Return every key's baselines by name, of keys that have any; InputError where there is no such directory."""
    if not directory.is_dir():
        keep = f"`gpu-report baseline accept RUN --baseline-dir {directory}`"
        raise InputError(f"{directory} does not exist. To keep a run there: {keep}")
    places = {place.parent for place in directory.glob("*/*") if place.is_dir() and _of_place(place)}
    return [BaselineSet(directory, unquote(folder.name)) for folder in sorted(places)]


def runs_in(path: Path, but: Path | None = None) -> list[Path]:
    """Return a run, or the runs of a folder of runs without one of them; InputError where there is none."""
    if path.is_file() or _is_run(path):
        return [path]
    if not path.exists():
        raise InputError(f"{path} does not exist: name a run folder, a samples CSV, or a folder of runs")
    left_out = None if but is None else but.resolve()
    found = sorted(each for each in path.glob("*") if _is_run(each) and each.resolve() != left_out)
    if not found:
        raise _no_run(path, "a run folder, a samples CSV, or a folder of runs")
    return found


def refuse_missing(paths: Sequence[Path]) -> None:
    """Raise InputError that names all paths which do not exist."""
    gone = [str(path) for path in paths if not path.exists()]
    if len(gone) > 1:
        raise InputError(f"{', '.join(gone[:-1])} and {gone[-1]} do not exist: name run folders or samples CSVs")
    if gone:
        raise InputError(f"{gone[0]} does not exist: name a run folder or a samples CSV")


def one_run(path: Path) -> Path:
    """Return a run that is named; InputError that says what to name where it is a folder of several, or of none."""
    if not path.is_dir() or _is_run(path):
        return path
    found = sorted(each.name for each in path.glob("*") if _is_run(each))
    if found:
        more = f" and {len(found) - 3} more" if len(found) > 3 else ""
        raise InputError(f"{path} is a folder of runs ({', '.join(found[:3])}{more}): name one of them")
    raise _no_run(path, "a run folder or a samples CSV")


def _no_run(path: Path, wanted: str) -> InputError:
    """Return that a folder holds no run, and what is `wanted`; of YOLO's own folder that it is that."""
    if any((path / name).is_file() for name in OF_YOLO):
        others = "`gpu-report record` writes those, under gpu-runs/"
        return InputError(f"{path} is YOLO's folder, not a recording: {others}")
    return InputError(f"{path} holds no run: name {wanted}")


def _is_run(path: Path) -> bool:
    return any((path / name).is_file() for name in (schema.SAMPLES_CSV, schema.RUN_JSON))  # one may be lost


def _of_place(place: Path) -> list[AcceptedBaseline]:
    """Return the baselines of one set-up, newest first; what has no facts, or broken ones, is none of ours."""
    found = []
    for path in place.glob("*"):
        if path.name.startswith(".") or not _is_run(path):
            continue
        try:
            facts = run_folder.read_json(path / FACTS)
        except InputError:
            continue
        found.append(AcceptedBaseline(path, run_folder.finite(facts.get("accepted_wall_s")) or 0.0, facts))
    return sorted(found, key=lambda each: (-each.accepted_wall_s, each.path.name))


def digest_of(run: Path) -> str:
    """Return letters that are a recording's own, wherever it was copied to; InputError where it cannot be read."""
    samples, info = (run / schema.SAMPLES_CSV, run / schema.RUN_JSON) if run.is_dir() else (run, None)
    refuse_special(samples)
    try:
        whole = samples.read_bytes() + (info.read_bytes() if info is not None and info.is_file() else b"")
    except OSError as error:
        raise InputError(f"{samples}: {error.strerror}") from error
    return hashlib.sha256(whole).hexdigest()[:16]


def _copy(run: Path, target: Path) -> None:
    """Copy the files of a run folder and nothing else: no links, which could point anywhere."""
    target.mkdir()
    if run.is_file():
        shutil.copyfile(run, target / schema.SAMPLES_CSV)
        return
    for name in schema.RUN_FILES:
        _copy_file(run / name, target / name)
    for folder in (run / name for name in FOLDERS):
        for source in sorted(folder.rglob("*")) if folder.is_dir() and not folder.is_symlink() else ():
            _copy_file(source, target / source.relative_to(run))


def _copy_file(source: Path, target: Path) -> None:
    if source.is_file() and not source.is_symlink():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
