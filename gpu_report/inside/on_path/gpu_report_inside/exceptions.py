"""What an exception says of itself: types, words without secrets, an error number, where ultralytics raised it."""

from __future__ import annotations

import errno
import os
import re
from collections import deque
from itertools import islice
from typing import TYPE_CHECKING, Any

from . import facts
from .secrets.hide import hide_and_cut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

LONGEST_READ = 4000  # characters of an exception's words that are looked through
LONGEST_MESSAGE = 300  # ... and that are kept
MOST_FRAMES = 2000  # Python's own limit is 1000
MOST_CHAINED = 16
FRAMES_KEPT = 32  # the innermost ones: what raised it, and who called that
MOST_TRACED = 100_000  # a recursion that was let run on: 10 ms
LEAST_FREE_BYTES = 16 * 2**20  # what a disk has left that had no room for a checkpoint

# torch raises a loader's exception anew in the main process, with all of the worker's traceback as its words.
_IN_WORKER = re.compile(r"Caught \S+ in DataLoader worker process \d+\.\n")
_LINE_OF_TRACEBACK = re.compile(r'(?m)^  File "([^"\n]{1,300})", line (\d{1,7}), in ([^\n]{1,100})$')
_WORKER_ENDED = "DataLoader worker (pid "
_ERROR_NUMBER = re.compile(r"\[Errno (\d{1,4})\] ")
_FULL = ("ENOSPC", "EDQUOT")
_EVERY_TYPE = (Exception, BaseException, object)


def described(error: BaseException | None, folder: str | None) -> dict[str, Any]:
    """Return the fields of a run's `ended` line that tell of an exception; `folder` is where the run writes."""
    if error is None:
        return {"error": None}
    error = _interrupt(error) or _end_of_worker(error) or error
    told = facts.read({**_READERS, "message": lambda each: _message(each, folder)}, error)
    told["frames"] = _frames_if_any(error)
    return {"error": type(error).__name__, **{name: value for name, value in told.items() if value}}


def _interrupt(error: BaseException) -> BaseException | None:
    """Return the Ctrl-C while which another exception was raised, None where there was none."""
    for _ in range(MOST_CHAINED):
        if isinstance(error, KeyboardInterrupt):
            return error
        before = error.__cause__ or error.__context__
        if before is None:
            break
        error = before
    return None


def _end_of_worker(error: BaseException) -> BaseException | None:
    """Return the exception that names the signal that ended a loader's worker, where another one was made of it."""
    cause = error.__cause__
    return cause if type(cause) is RuntimeError and str(cause).startswith(_WORKER_ENDED) else None


def _bases(error: BaseException) -> list[str]:
    return [each.__name__ for each in type(error).__mro__[1:] if each not in _EVERY_TYPE]


def _message(error: BaseException, folder: str | None) -> str:
    """Return its words on one line; those of a loader's exception without the traceback before them."""
    text = _ERROR_NUMBER.sub("", _words(error), count=1)
    if isinstance(error, OSError) and error.strerror:
        place = error.filename or (_full(folder) if _errno(error) in _FULL else None)
        text = f"{error.strerror}: {place}" if place else str(error.strerror)
    return " ".join(hide_and_cut(text).split())[:LONGEST_MESSAGE]


def _words(error: BaseException) -> str:
    text = str(error)
    if not _IN_WORKER.match(text):
        return text[:LONGEST_READ]
    name = re.escape(type(error).__name__)
    end = text[-LONGEST_READ:]
    at = [found.end() for found in re.finditer(rf"(?m)^(?:[\w.]+\.)?{name}(?:: |$)", end)]
    return end[at[-1] :] if at else end.rstrip().rpartition("\n")[2]


def _errno(error: BaseException) -> str | None:
    """Return an error number by its name (ENOSPC); of an exception of a loader's worker only its words have it."""
    if not isinstance(error, OSError):
        return None
    said = None if error.errno else _ERROR_NUMBER.match(_words(error))
    return errno.errorcode.get(int(said[1]) if said else error.errno or 0)


def _cuda_error(error: BaseException) -> int | None:
    """Return the number of CUDA's error, which torch tells from 2.8 on."""
    number = getattr(error, "error_code", None)
    return number if type(error).__name__ == "AcceleratorError" and isinstance(number, int) else None


def _raised_in(error: BaseException) -> str | None:
    """Return the function of ultralytics that the exception came from, or through last."""
    found = None
    for at in islice(_traceback(error), MOST_FRAMES):
        module = at.tb_frame.f_globals.get("__name__")
        if isinstance(module, str) and module.startswith("ultralytics."):
            found = f"{module}:{at.tb_frame.f_code.co_name}"
    return found


def _frames_if_any(error: BaseException) -> list[list[Any]]:
    try:
        return _frames(error)
    except Exception:  # noqa: BLE001 - an exception whose words raise one: where it was raised is not known
        return []


def _frames(error: BaseException) -> list[list[Any]]:
    """Return file, line and function of frames that the exception came through, innermost first, the outermost last.

    One of a loader's worker has that worker's frames, which torch gives as text.
    """
    text = str(error)
    told = _LINE_OF_TRACEBACK.findall(text) if _IN_WORKER.match(text) else []
    frames = ((file, int(line), name) for file, line, name in told) if told else map(_frame, _traceback(error))
    return [[hide_and_cut(file), line, name[:100]] for file, line, name in _ends(frames)]


def _traceback(error: BaseException) -> Iterator[TracebackType]:
    """Yield what an exception came through, outermost first."""
    at = error.__traceback__
    for _ in range(MOST_TRACED):
        if at is None:
            return
        yield at
        at = at.tb_next


def _frame(at: TracebackType) -> tuple[str, int, str]:
    code = at.tb_frame.f_code
    return code.co_filename, at.tb_lineno, code.co_name


def _ends(frames: Iterable[tuple[str, int, str]]) -> list[tuple[str, int, str]]:
    """Return the innermost of many frames, innermost first, and the outermost one, which says whose they are."""
    first = None
    kept: deque[tuple[str, int, str]] = deque(maxlen=FRAMES_KEPT)
    for frame in frames:
        first = first or frame
        kept.append(frame)
    found = list(kept)[::-1]
    return found if first is None or found[-1] == first else [*found[:-1], first]


def _full(folder: str | None) -> str | None:
    """Return the run's folder where its disk is full: a write that fails does not tell to which file."""
    try:
        disk = os.statvfs(folder) if folder else None
    except (OSError, AttributeError):  # Windows has no statvfs
        return None
    return folder if disk is not None and disk.f_bavail * disk.f_frsize < LEAST_FREE_BYTES else None


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "bases": _bases,
    "errno": _errno,
    "cuda_error": _cuda_error,
    "raised_in": _raised_in,
}
