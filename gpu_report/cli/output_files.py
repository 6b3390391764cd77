"""Files that a command writes: where they may lie, and how they come there whole."""

import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import click

from gpu_report import run_folder, schema
from gpu_report.errors import InputError, UsageError, unwritable

DEVICES = Path("/dev")
PAGES = frozenset({".html", ".htm"})


class OutputFile(click.Path):
    """The name of a file to write; what was recorded is refused, for it would be lost.

    `before_run` says that a run may be named after it: then it is easily given in its place.
    """

    def __init__(self, *, before_run: bool = False) -> None:
        """Take it as a Path."""
        super().__init__(path_type=Path)
        self._before_run = before_run

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; click's own error where it cannot be one."""
        path = Path(str(super().convert(value, param, ctx)))  # type: ignore[arg-type] # what click passes
        if str(path) == "-":
            self.fail("'-' is no file: name one", param, ctx)
        way_out = f": the file to write comes first, gpu-report render report.html {path}" if self._before_run else ""
        if path.is_dir():
            self.fail(f"{path} is a folder{way_out or ': name a file to write'}", param, ctx)
        if self._before_run and path.suffix.lower() not in PAGES and path.is_file() and path.stat().st_size:
            self.fail(f"{path} is no HTML file and would be lost{way_out}", param, ctx)
        if path.name in schema.RECORDED_FILES and path.exists() and not _is_special(path):
            self.fail(f"{path} may be part of a recording, and would be lost: name another file", param, ctx)
        return path


def refuse_twice(paths: Iterable[Path | None]) -> None:
    """Raise UsageError where two outputs are one file: the second would take the place of the first."""
    for path, times in Counter(path.resolve() for path in paths if path is not None).items():
        if times > 1:
            raise UsageError(f"{path} is named for two outputs: give each a file of its own")


def refuse_unwritable(paths: Iterable[Path | None]) -> None:
    """Raise InputError for a file that cannot be written, before the minutes whose results it is to hold."""
    for path in paths:
        if path is None or _is_special(path):
            continue
        folder = next(each for each in path.absolute().parents if each.exists())
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path} cannot be written: {unwritable(path, error)}")


def write(path: Path, *texts: str) -> None:
    """Write texts, one behind the other, as a file whole or not at all, a link's target in its place.

    To a device or a pipe they go as to any other.
    """
    try:
        if _is_special(path):
            with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(texts)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        run_folder.write_text(path.resolve() if path.is_symlink() else path, *texts)
    except OSError as error:
        raise _unwritable(path, error) from error


def _is_special(path: Path) -> bool:
    return path.is_relative_to(DEVICES) or (path.exists() and not path.is_file())
