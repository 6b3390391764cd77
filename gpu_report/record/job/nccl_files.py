"""What is kept of the files in which NCCL and torch's flight recorder write, where the command's environment says so.

They are looked for once, when the recording ends, and never written to. Of NCCL's log only the lines that say something
are kept, without secrets. Traces of the flight recorder are mostly pickles: these are counted and never read.
"""

import contextlib
import glob
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_values
from gpu_report.ordinary_file import MIB, open_ordinary
from gpu_report.run_folder import write_text
from gpu_report.without_secrets import safe_text

DEBUG_FILE = "NCCL_DEBUG_FILE"
TRACES = ("TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE")  # the second is its old name
MOST_FILES = 64  # of each kind: a node has 16 ranks, and torchrun may start them again
LONGEST_S = 3.0  # for all of it: whoever ends a recording waits
HEAD_BYTES, TAIL_BYTES = 4 * MIB, MIB  # of a log: connections are made at its beginning, warnings stand at its end
MOST_LINES, LONGEST_LINE = 2000, 1000
LARGEST_TRACE = 32 * MIB
LAST_ENTRIES = 128  # of a trace: collectives before them tell nothing of where ranks stopped
WITH_STACKS = 16  # the last of them: secrets are looked for in each name
ENTRY = (
    *("record_id", "process_group", "collective_seq_id", "profiling_name", "time_created_ns", "state", "frames"),
    "is_p2p",
)
OF_TRACE = ("version", "comm_lib_version", "pg_config", "pg_status")
PICKLE = b"\x80"  # how one of protocol 2 or later begins

_SAYS_SOMETHING = re.compile(
    rb"NCCL WARN|NCCL version|Using network|comm 0x[0-9a-f]+ rank|(?:Channel|Ring) \d.* via |NET/\w+ ?: |"
    + schema.NCCL_SETTINGS.encode()
    + rb" set"
)
_CHANNEL = re.compile(rb"((?:Channel|Ring)) \d+(?:/\d+)?")
_ODD = re.compile(r"[^\w.\-]")


def keep_nccl_files(
    folder: Path, since_wall_s: float, command: Sequence[str], env: Mapping[str, str] = os.environ
) -> None:
    """Keep what matters of the files of this recording (written since a wall time) in schema.NCCL_DIR.

    OSError where the run folder cannot be written. Files that cannot be read are left out.
    """
    until_s = time.monotonic() + LONGEST_S
    given = {**env, **_given_to(command)}
    prefix = next((given[name] for name in TRACES if given.get(name)), "")
    pickles = 0
    for path in _written(glob.escape(prefix) + "[0-9]*" if prefix else "", since_wall_s, until_s):
        data = _read(path, LARGEST_TRACE)
        pickles += data.startswith(PICKLE)
        _put(folder, path, ".json", _trace(data))
    if pickles:
        place = folder / schema.NCCL_DIR
        place.mkdir(exist_ok=True)
        write_text(place / schema.NCCL_PICKLES, f"{pickles}\n")
    for path in _written(_pattern(given.get(DEBUG_FILE, "")), since_wall_s, until_s):
        _put(folder, path, ".log", _log(path, until_s))


def _given_to(command: Sequence[str]) -> dict[str, str]:
    """Return the variables of a command that begins with `env NAME=value ...`."""
    given = {}
    for word in command[1:] if command[:1] and Path(command[0]).name == "env" else ():
        name, is_pair, value = word.partition("=")
        if not is_pair:
            break
        given[name] = value
    return given


def _pattern(name: str) -> str:
    """Return what matches the files that NCCL makes of a name (ncclDebugInit): %h is the host, %p the process."""
    host = socket.gethostname().partition(".")[0]
    parts = re.split(r"(%[hp%])", name)
    filled = {"%h": glob.escape(host), "%p": "[0-9]*", "%%": "%"}
    return "".join(filled.get(part) or glob.escape(part) for part in parts)


def _written(pattern: str, since_wall_s: float, until_s: float) -> Iterator[Path]:
    """Yield MOST_FILES files of a pattern that were written since a time, the first ones by name; no links."""
    found = sorted(_new(pattern, since_wall_s, until_s)) if pattern else []
    for path in found[:MOST_FILES]:
        if time.monotonic() < until_s:
            yield path


def _new(pattern: str, since_wall_s: float, until_s: float) -> Iterator[Path]:
    for name in glob.iglob(pattern):  # noqa: PTH207 - of an absolute path pathlib has none
        if time.monotonic() >= until_s:
            return
        with contextlib.suppress(OSError):
            path = Path(name)
            if not path.is_symlink() and path.stat().st_mtime >= since_wall_s:
                yield path


def _read(path: Path, most: int) -> bytes:
    """Return a file, nothing of one that is too large or cannot be read."""
    try:
        with open_ordinary(path) as file:
            data = file.read(most + 1)
    except OSError:
        return b""
    return data if len(data) <= most else b""


def _put(folder: Path, path: Path, suffix: str, text: str) -> None:
    if not text:
        return
    place = folder / schema.NCCL_DIR
    place.mkdir(exist_ok=True)
    name = _ODD.sub("_", path.name.removesuffix(suffix))[-100:]  # at its end it has the rank
    write_text(place / f"{name}{suffix}", text)


def _log(path: Path, until_s: float) -> str:
    """Return the lines of a log that say something, each connection once, below the zone of their times."""
    said: list[bytes] = []
    connections: set[bytes] = set()
    for line in _lines(path):
        if _SAYS_SOMETHING.search(line) and (connection := _CHANNEL.sub(rb"\1", line)) not in connections:
            said.append(line)
            if connection != line:
                connections.add(connection)
    if not said:
        return ""
    zone = time.strftime("%z")
    if len(said) > MOST_LINES:
        said = said[: MOST_LINES // 2] + said[-MOST_LINES // 2 :]
    lines = [safe_text(line.decode("utf-8", "replace")) for line in said if time.monotonic() < until_s]
    return "\n".join([f"{schema.NCCL_ZONE}{zone[:3]}:{zone[3:5]}", *lines]) + "\n"


def _lines(path: Path) -> list[bytes]:
    """Return the lines at the beginning and the end of a file, without those that are cut."""
    try:
        with open_ordinary(path) as file:
            head = file.read(HEAD_BYTES)
            size = os.fstat(file.fileno()).st_size
            file.seek(max(len(head), size - TAIL_BYTES))
            tail = file.read(TAIL_BYTES)
    except OSError:
        return []
    lines = head.split(b"\n")
    rest = tail.split(b"\n")
    joined = [*lines[:-1], lines[-1] + rest[0], *rest[1:]] if size <= HEAD_BYTES + TAIL_BYTES else lines[:-1] + rest[1:]
    return [line[:LONGEST_LINE] for line in joined]


def _trace(data: bytes) -> str:
    """Return the last of a trace in JSON without secrets, empty for what is none."""
    if not data.lstrip().startswith(b"{"):
        return ""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return ""
    entries = value.get("entries")
    last = entries[-LAST_ENTRIES:] if isinstance(entries, list) else []
    kept: dict[str, Any] = {name: value[name] for name in OF_TRACE if name in value}
    stackless = len(last) - WITH_STACKS
    kept["entries"] = [
        _entry(each, has_stack=at >= stackless) for at, each in enumerate(last) if isinstance(each, dict)
    ]
    try:
        return json.dumps(hide_in_values(kept)) + "\n"
    except RecursionError:
        return ""


def _entry(entry: Mapping[str, Any], *, has_stack: bool) -> dict[str, Any]:
    return {name: entry[name] for name in ENTRY if name in entry and (has_stack or name != "frames")}
