"""Where Python keeps what it compiled: what we make of our own files alone is kept there as well."""

import contextlib
import os
import sys
from importlib.util import cache_from_source
from pathlib import Path


def folder_of_compiled(module: Path) -> Path | None:
    """Return where Python keeps a module compiled; None where it keeps nothing.

    It is `__pycache__` beside the module, which whoever can write to it can as well make run anything.
    """
    folder = Path(cache_from_source(str(module))).parent
    return None if sys.dont_write_bytecode or not folder.is_dir() else folder


def keep(data: bytes, path: Path) -> None:
    """Write a file whole or not at all: a disk that is full or only to be read keeps nothing."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with contextlib.suppress(OSError):
        try:
            part.write_bytes(data)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
