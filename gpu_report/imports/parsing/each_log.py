"""Reading several logs of one tool, of which some may be of no use."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from gpu_report.errors import InputError

Read = TypeVar("Read")


def read_each(paths: Iterable[Path], read: Callable[[Path], Read], nothing: str) -> tuple[list[Read], list[str]]:
    """Return what `read` says of each log, and which are left out for its InputError.

    InputError with the first reason where none is left, with `nothing` where no log was named.
    """
    found: list[Read] = []
    unusable: list[str] = []
    for path in paths:
        try:
            found.append(read(path))
        except InputError as error:
            unusable.append(str(error))
    if not found:
        raise InputError(unusable[0] if unusable else nothing)
    return found, [f"Left out: {reason}." for reason in unusable]
