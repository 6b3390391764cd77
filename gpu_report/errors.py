"""The errors a person may see: one line saying what happened and what to do, and an exit code."""

import errno
import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# In the environment of a command line of ours that another process of ours starts: its error is JSON, {"error": "..."}.
ERROR_AS_JSON: Final = "GPU_REPORT_ERROR_AS_JSON"

# What helps beside another place, by why a file cannot be written.
_HELPS: Final[Mapping[int, str]] = {
    errno.ENOSPC: "free some there (`df -h {folder}` shows how full it is), or ",
    errno.EDQUOT: "delete files of yours there (`quota -s` shows how much you may store), or ",
}

# ... and for which a place elsewhere may do.
_OF_THE_PLACE: Final = frozenset({*_HELPS, errno.EACCES, errno.EPERM, errno.EROFS})


class GpuReportError(Exception):
    """Something the user can act on; the command line prints it as one line and exits with `exit_code`."""

    exit_code = 1


class UsageError(GpuReportError):
    """The command was asked for something that cannot be: exit 2."""

    exit_code = 2


class NotComparableError(GpuReportError):
    """There is nothing to compare with, or too little data to say: exit 3."""

    exit_code = 3


class InputError(GpuReportError):
    """The input could not be read, or holds not one valid row: exit 4."""

    exit_code = 4


class NothingToRecordError(GpuReportError):
    """No NVML, no GPU, and no command to run: exit 5."""

    exit_code = 5


def error_as_json(line: str) -> str:
    """Return an error for the process that asked for it so: in one line, its commands between backticks."""
    return json.dumps({"error": line})


def error_in(printed: str) -> str:
    """Return the error in what a command line printed that was asked for JSON, all of that where there is none."""
    for line in reversed(printed.splitlines()):
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and isinstance(said.get("error"), str):
            return str(said["error"])
    return printed.strip()


def unwritable(path: Path, error: OSError, elsewhere: str = "name another place") -> str:
    """Return why a file or folder cannot be written and what to do; `elsewhere` says how another place is named."""
    folder = next((each for each in path.absolute().parents if each.is_dir()), Path("/"))
    helps = _HELPS.get(error.errno or 0, "").format(folder=shlex.quote(str(folder)))
    other = _in_home(path, folder) if error.errno in _OF_THE_PLACE else ""
    return f"{error.strerror or error}; {helps}{elsewhere}{f', such as {other}' if other else ''}"


def _in_home(path: Path, folder: Path) -> str:
    """Return the same name in the home folder, empty where that cannot be written or is on the same disk."""
    try:
        home = Path.home()
        is_better = home.stat().st_dev != folder.stat().st_dev or not os.access(folder, os.W_OK)
        return shlex.quote(str(home / path.name)) if is_better and os.access(home, os.W_OK | os.X_OK) else ""
    except (OSError, RuntimeError):  # without a home
        return ""
