"""Making the JSON lines for the run folder's `inside/<pid>.jsonl`, and keeping our errors to ourselves."""

from __future__ import annotations

import atexit
import functools
import json
import os
import time
from typing import TYPE_CHECKING, Any

from .secrets.hide import hide_and_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .writer import Writer

    Function = Callable[[Any], None]

RUN_FOLDER_VARIABLE = "GPU_REPORT_RUN_FOLDER"
AS_THEY_ARE = {"save_dir", "file", "lines"}  # paths that the recorder opens, and what is packed: not hidden, not cut


def now() -> tuple[float, float]:
    """Return UTC wall seconds since 1970 and monotonic seconds (the same clocks as the recorder's, on one host)."""
    return time.time(), time.monotonic()


class Lines:
    """Makes the lines of this process, which its writer appends to its file. Nothing is raised for a disk's faults.

    `last` is the moment that the newest line is about.
    """

    def __init__(self) -> None:
        self._writers: dict[int, Writer] = {}  # by pid: a fork must not touch its parent's locks
        self.last = (0.0, 0.0)

    def write(self, kind: str, fields: dict[str, Any], at: tuple[float, float] | None = None) -> None:
        """Hand one line over to be written, stamped `at` (default: now)."""
        wall_s, mono_s = self.last = at or now()
        folder = os.environ.get(RUN_FOLDER_VARIABLE)
        if folder:
            self._writer().put(folder, _line(kind, fields, (wall_s, mono_s)))

    def write_found(self, kind: str, find: Callable[[], Sequence[dict[str, Any]]]) -> None:
        """Have lines written of what is found, stamped now: the thread that writes looks for it, not the training."""
        at, folder = now(), os.environ.get(RUN_FOLDER_VARIABLE)

        def lines() -> bytes:
            try:
                return b"".join(_line(kind, fields, at) for fields in find())
            except Exception as error:  # noqa: BLE001 - the thread must go on
                report(f"write_found {kind}", error)
                return b""

        if folder:
            self._writer().put(folder, lines)

    def drain(self) -> None:
        """Wait for this process's own lines to be written, a second at most."""
        writer = self._writers.get(os.getpid())
        if writer is not None:
            writer.drain()

    def _writer(self) -> Writer:
        pid = os.getpid()
        if pid not in self._writers:
            from .writer import Writer  # noqa: PLC0415 - threads are loaded where there is something to write

            self._writers.setdefault(pid, Writer())
            atexit.register(self.drain)
        return self._writers[pid]


LINES = Lines()
_reported: set[tuple[str, str]] = set()


def report(where: str, error: BaseException) -> None:
    """Write an error of ours, each kind of it once."""
    try:
        seen = (where, type(error).__name__)
        if seen not in _reported:
            _reported.add(seen)
            LINES.write("error", {"where": where, "reason": hide_and_cut(f"{type(error).__name__}: {error}")})
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


def _line(kind: str, fields: dict[str, Any], at: tuple[float, float]) -> bytes:
    safe = {name: value if name in AS_THEY_ARE else _safe(value) for name, value in fields.items()}
    stamped = {"wall_s": round(at[0], 6), "mono_s": round(at[1], 6), "kind": kind, **safe}
    return (json.dumps(stamped, default=_text) + "\n").encode("ascii")


def _safe(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_safe(item) for item in value]
    return hide_and_cut(value) if isinstance(value, str) else value


def _text(value: object) -> str:
    return hide_and_cut(str(value))
