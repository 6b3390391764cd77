"""Files that somebody else made: only ordinary ones are read, and no larger ones than a recording can have."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from gpu_report.errors import InputError

MIB = 2**20
LARGEST_JSON = (
    4 * MIB
)  # run.json: 100 KiB with 16 GPUs of 7 MIG devices each, and 256 mounts; a command has 2 MiB at most
LARGEST_EVENTS = 1024 * MIB  # events.jsonl: 34 kernel lines a second, which the recorder keeps at most, for two days
LARGEST_HEADER = 2**16  # bytes of a CSV's first line: 400 in our own, 3,000 with all that nvidia-smi can query
LARGEST_LINE = 64 * MIB  # of any other: a machine that went down may leave as much of nothing but zeros
LARGEST_ANY_CSV = 1024 * MIB  # one that holds more than numbers, and is read as a whole
LARGEST_CONFIG = MIB  # of gates
LARGEST_SMI_LOG = 1024 * MIB  # a week of eight GPUs at 1 Hz has 900
LARGEST_KERNEL_LOG = 256 * MIB  # a machine's busy year
LARGEST_RESULTS = 64 * MIB  # results.csv: 100,000 epochs with all metrics have 30
MOST_GPUS = 256  # of a machine: 16, each in 7 MIG devices, are 128
LARGEST_INDEX = 65535  # of a GPU
KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a disk"),
    (stat.S_ISSOCK, "a socket"),
)


def refuse_special(path: Path, most_bytes: int | None = None) -> None:
    """Raise InputError for what may never end when it is read, or is larger than any real one.

    What does not exist, cannot be seen or is a folder is left to whoever reads it, who says so.
    """
    try:
        status = path.stat()
    except OSError:
        return
    kind = next((words for is_kind, words in KINDS if is_kind(status.st_mode)), None)
    if kind is not None:
        raise InputError(f"{path} is {kind}, and not read: put an ordinary file in its place")
    if most_bytes is not None and status.st_size > most_bytes:
        raise InputError(f"{path} has {status.st_size:,} bytes, and is not read: a real one has {most_bytes:,} at most")


def refuse_way_out(path: Path, folder: Path) -> None:
    """Raise InputError where links lead from a path in a folder to what lies outside of it.

    Who renders a stranger's run folder would else put any file of this machine into the page. The folder itself may be
    reached by a link.
    """
    below = (path, *path.parents)[: len(path.parts) - len(folder.parts)]
    if not any(map(os.path.islink, below)):
        return
    inside = os.path.realpath(folder)
    if os.path.commonpath((inside, os.path.realpath(path))) != inside:
        raise InputError(f"{path} leads out of {folder} by a link, and is not read: put a copy in its place")


def open_ordinary(path: Path) -> BinaryIO:
    """Open a file to read; OSError at once for what may never answer or never end: a pipe, a device, a socket."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    raise OSError(errno.EINVAL, "no ordinary file", str(path))
