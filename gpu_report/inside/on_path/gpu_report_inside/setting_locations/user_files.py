"""Whose files: what of this process's modules is the user's own, and the scripts of the processes above it."""

from __future__ import annotations

import os
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_BYTES = 2**16  # of a file: 64 KiB are 1,700 lines; Python's parser holds the GIL for 0.1 s while it reads them
GENERATIONS = 4  # of processes above a rank: those of torch.distributed, and the script
INSTALLED = re.compile(r"[\\/](?:(?:site|dist)-packages|lib(?:64)?[\\/]python3[^\\/]*|gpu_report_inside)[\\/]")
LIBRARIES = {"torch", "ultralytics"}  # also where they lie beside the user's own code


def own_files(folders: Sequence[str]) -> list[str]:
    """Return the files of the modules of the user's own: below the folder of a script, or the current one."""
    main = _file(sys.modules.get("__main__"))
    roots = {os.path.dirname(_absolute(main)) if main else "", _absolute(""), *folders} - {"", "/"}  # noqa: PTH120
    named = ((name, _file(module)) for name, module in list(sys.modules.items()) if type(name) is str)
    mine = (file for name, file in named if file.endswith(".py") and name.partition(".")[0] not in LIBRARIES)
    files = (_absolute(file) for file in mine if not INSTALLED.search(file))
    below = tuple(root.rstrip(os.sep) + os.sep for root in roots)
    own = (file for file in files if file.startswith(below))
    return list(dict.fromkeys(own))


def _absolute(file: str) -> str:
    """Return where a file lies, empty where that is below a current folder that has been deleted."""
    try:
        return os.path.abspath(file)  # noqa: PTH100 - os.path suffices
    except OSError:
        return ""


def _file(module: object) -> str:
    """Return the file of a module, empty where it has none; one that loads when it is asked is not asked."""
    if not isinstance(module, ModuleType):
        return ""
    file = ModuleType.__getattribute__(module, "__dict__").get("__file__")
    return file if type(file) is str else ""  # a class derived from it has methods of its own


def ancestors() -> list[tuple[int, str]]:
    """Return the processes above this one, the nearest first: pid and script, which is empty for none."""
    found: list[tuple[int, str]] = []
    pid = os.getppid()
    while pid > 1 and len(found) < GENERATIONS:
        found.append((pid, _script(pid)))
        pid = _parent(pid)
    return found


def _script(pid: int) -> str:
    """Return the script that a process of Python runs, absolute; empty where it is none of the user's."""
    words = _proc(pid, "cmdline").split(b"\0")
    script = next((os.fsdecode(word) for word in words[1:] if word.endswith(b".py")), "")
    if b"python" not in os.path.basename(words[0]) or not script:  # noqa: PTH119 - likewise
        return ""
    try:
        file = os.path.join(os.readlink(f"/proc/{pid}/cwd"), script)  # noqa: PTH115, PTH118 - likewise
    except OSError:
        return ""
    return "" if INSTALLED.search(file) else os.path.normpath(file)


def _parent(pid: int) -> int:
    fields = _proc(pid, "stat").rpartition(b")")[2].split()
    return int(fields[1]) if len(fields) > 1 else 0


def has_variable(pid: int, variable: str) -> bool:
    """Tell whether a process was started with a variable as it is here: then it is not its own code that sets it."""
    given = f"{variable}={os.environ.get(variable, '')}"
    return os.fsencode(given) in _proc(pid, "environ").split(b"\0")


def source_of(file: str) -> str:
    """Return the text of a file, empty where it is none that a person writes, or cannot be read."""
    try:
        if not os.path.isfile(file):  # noqa: PTH113 - os.path suffices
            return ""
        with open(file, encoding="utf-8-sig", errors="replace") as opened:  # noqa: PTH123 - likewise
            source = opened.read(MOST_BYTES + 1)
    except (OSError, ValueError):  # the latter of a name with a zero byte
        return ""
    return source if len(source) <= MOST_BYTES else ""


def _proc(pid: int, name: str) -> bytes:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as opened:  # noqa: PTH123 - likewise
            return opened.read(MOST_BYTES)
    except OSError:
        return b""
