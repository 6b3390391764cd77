"""Writing one JSON line at a time into the run folder, `inside/<pid>.jsonl`, and keeping our errors to ourselves."""

from __future__ import annotations

import functools
import json
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = Callable[[Any], None]

RUN_FOLDER_VARIABLE = "GPU_REPORT_RUN_FOLDER"
FOLDER = "inside"
LONGEST_TEXT = 500  # characters of one value; a path has fewer


def now() -> tuple[float, float]:
    """Return UTC wall seconds since 1970 and monotonic seconds (the same clocks as the recorder's, on one host)."""
    return time.time(), time.monotonic()


class Lines:
    """The file of this process, opened at the first line. A line that cannot be written is lost; nothing is raised.

    `last` is the moment that the newest line is about.
    """

    def __init__(self) -> None:
        self._fd: int | None = None
        self._pid = 0
        self._folder: str | None = None
        self._torn = False
        self.last = (0.0, 0.0)

    def write(self, kind: str, fields: dict[str, Any], at: tuple[float, float] | None = None) -> None:
        """Append one line with one write, stamped `at` (default: now)."""
        wall_s, mono_s = self.last = at or now()
        stamped = {"wall_s": round(wall_s, 6), "mono_s": round(mono_s, 6), "kind": kind, **fields}
        line = (json.dumps(stamped, default=_text) + "\n").encode("ascii")
        try:
            fd = self._open()
            if fd is not None:
                line = b"\n" + line if self._torn else line  # a torn line must not swallow the next one
                self._torn = 0 < os.write(fd, line) < len(line)
        except OSError:  # a full disk, a removed folder: the training has better things to do
            return

    def _open(self) -> int | None:
        """Return the file of this very process in this very run folder, None where there is none."""
        folder = os.environ.get(RUN_FOLDER_VARIABLE)
        if self._fd is None or (self._pid, self._folder) != (os.getpid(), folder):
            self._fd, self._folder = None, folder
            if not folder or not os.path.isdir(folder):  # noqa: PTH112 - os.path is loaded already, pathlib may not be
                return None
            os.makedirs(os.path.join(folder, FOLDER), exist_ok=True)  # noqa: PTH103, PTH118 - likewise
            path = os.path.join(folder, FOLDER, f"{os.getpid()}.jsonl")  # noqa: PTH118 - likewise
            self._fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._pid, self._torn = os.getpid(), False
        return self._fd


LINES = Lines()
_reported: set[tuple[str, str]] = set()


def report(where: str, error: BaseException) -> None:
    """Write an error of ours, each kind of it once."""
    try:
        seen = (where, type(error).__name__)
        if seen not in _reported:
            _reported.add(seen)
            LINES.write("error", {"where": where, "reason": f"{type(error).__name__}: {error}"[:LONGEST_TEXT]})
    except Exception:  # noqa: BLE001, S110 - there is nobody left to tell
        pass


def guarded(function: Function) -> Function:
    """Return the function without its exceptions: ultralytics lets those of a callback end the training."""

    @functools.wraps(function)
    def call(instance: Any) -> None:
        try:
            function(instance)
        except Exception as error:  # noqa: BLE001 - see above
            report(function.__name__, error)

    return call


def _text(value: object) -> str:
    return str(value)[:LONGEST_TEXT]
