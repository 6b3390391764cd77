"""Reading and writing the files of a run folder: the one thing that record, load and imports share.

Writers append whole rows with one `write` each, so that a killed recorder loses at most the row in flight, and
never raise for a full or vanished disk: rows that could not be written are counted and reported when they can be.
"""

import contextlib
import csv
import fcntl
import io
import json
import math
import os
import re
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from gpu_report import schema
from gpu_report.errors import InputError, UsageError, unwritable
from gpu_report.ordinary_file import LARGEST_EVENTS, LARGEST_JSON, refuse_special

RUNS_DIR = "gpu-runs"  # where runs go, and are looked for, when nothing else is said

LARGEST_STAMP_S = 1e11  # in the year 5138; what lies beyond is no time in seconds
WRITTEN_AT_ONCE = 1 << 20  # characters of a file
LINES_AT_ONCE = 500  # of JSON that are parsed as one
# After what was written of a row that was cut short: half of a number must not be read as one.
END_OF_TORN = b"?\n"

_JOB = re.compile(r"[0-9]{1,20}")

Value = str | float | int | None


def name_of(wall_s: float) -> str:
    """Return the name of a run that began at a wall time: its UTC second."""
    return time.strftime("%Y%m%d-%H%M%S", time.gmtime(wall_s))


def cannot_record(folder: Path, error: OSError) -> UsageError:
    """Return that a folder cannot be recorded into, why, and what to do."""
    why = unwritable(folder, error, "name another folder with --output")
    return UsageError(f"cannot record into {folder}: {why}")


def claim_new_run(base: Path, wall_s: float) -> Path:
    """Make a folder under `base` named after the UTC second, with a suffix where that is taken; UsageError if not.

    It is made here, not by whoever writes into it: two recorders may start in the same second.
    """
    name = name_of(wall_s)
    try:
        base.mkdir(parents=True, exist_ok=True)
        for path in (base / (name if n == 1 else f"{name}-{n}") for n in range(1, 1000)):
            with contextlib.suppress(FileExistsError):
                path.mkdir()
                return path
    except OSError as error:
        raise cannot_record(base, error) from error
    raise UsageError(f"{base} holds a thousand runs of this second: name another folder with --output")


def newest_run(base: Path) -> Path:
    """Return the newest run folder under `base`; InputError when there is none."""
    runs = [p for p in base.glob("*") if (p / schema.SAMPLES_CSV).exists() or (p / schema.RUN_JSON).exists()]
    if not runs:
        raise InputError(f"no run under {base}/: name a run folder, or record one: `gpu-report record`")
    return max(runs, key=_started_at)


def _started_at(run: Path) -> tuple[float, str]:
    try:
        return float(read_json(run / schema.RUN_JSON)["start"]["wall_s"]), run.name
    except (InputError, KeyError, TypeError, ValueError):
        return run.stat().st_mtime, run.name


def format_row(columns: Sequence[schema.Column], values: Mapping[str, Value]) -> bytes:
    """Return one CSV line. A value that is None or absent becomes an empty cell: missing is never zero."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([_cell(column, values.get(column.name)) for column in columns])
    return line.getvalue().encode("utf-8", "backslashreplace")


def _cell(column: schema.Column, value: Value) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return number_cell(value, column)


def number_cell(value: float, column: schema.Column) -> str:
    """Return a number as a cell, with the decimals that mean something; time stamps keep their zeros, to line up."""
    text = f"{value:.{column.decimals}f}"
    return text.rstrip("0").rstrip(".") if column.decimals and column not in schema.TIME_COLUMNS else text


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write `value` to `path` atomically: beside it, then renamed."""
    write_text(path, json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: Path, *texts: str) -> None:
    """Write texts, one behind the other, to `path` atomically, so that nobody ever sees half a file.

    OSError where it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for text in texts:
                for at in range(0, len(text), WRITTEN_AT_ONCE):  # a week's page has 60 MB, and would be there once more
                    file.write(text[at : at + WRITTEN_AT_ONCE])
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in `path`; InputError when it is missing, cut short, no object, or no ordinary file."""
    refuse_special(path, LARGEST_JSON)
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig", errors="replace"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON ({error})") from error
    except RecursionError as error:
        raise InputError(f"{path} is nested too deeply to be read") from error
    if not isinstance(value, dict):
        raise InputError(f"{path} does not hold a JSON object")
    return value


def read_events(path: Path, most_bytes: int = LARGEST_EVENTS) -> tuple[list[dict[str, Any]], int]:
    """Return the events of a JSON-lines file in order, and how many lines could not be read.

    Every event has a `wall_s` that is a time, a `mono_s` that is one or None, and a text as its `kind`. Of a larger
    file the whole lines in its first `most_bytes` are read; what is no ordinary file has none.
    """
    try:
        return parse_events(read_lines(path, most_bytes)[0])
    except OSError:
        return [], 0


def has_callbacks(folder: Path) -> bool:
    """Tell whether YOLO's callbacks wrote anything into a run folder."""
    return any((folder / schema.INSIDE_DIR).glob("*.jsonl"))


def read_lines(path: Path, most_bytes: int) -> tuple[bytes, bool]:
    """Return a file as far as `most_bytes` go, in whole lines, and whether that is less than all of it.

    Nothing of what is no ordinary file: it may never end. OSError where it cannot be read.
    """
    if not path.is_file():
        return b"", False
    with path.open("rb") as file:
        data = file.read(min(most_bytes, os.fstat(file.fileno()).st_size) + 1)  # room for all of it is made at once
    if len(data) <= most_bytes:
        return data, False
    return data[: data.rfind(b"\n", 0, most_bytes) + 1], True


def parse_events(data: bytes) -> tuple[list[dict[str, Any]], int]:
    """Return the events of JSON lines as `read_events` does."""
    text = data.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n")
    lines = [line for line in text.split("\n") if line and not line.isspace()]
    blocks = (lines[at : at + LINES_AT_ONCE] for at in range(0, len(lines), LINES_AT_ONCE))
    read = [_event(value) for block in blocks for value in _values(block)]
    events = [event for event in read if event is not None]
    return events, len(read) - len(events)


def _values(lines: Sequence[str]) -> list[Any]:
    """Return the value of each line, None where it has none; all at once where all are whole: half the time."""
    try:
        values: list[Any] = json.loads(f"[{','.join(lines)}]")
    except (ValueError, RecursionError):
        values = []
    return values if len(values) == len(lines) else [_value(line) for line in lines]


def _value(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _event(value: Any) -> dict[str, Any] | None:
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return None
    wall_s, mono_s = stamp(value.get("wall_s")), stamp(value.get("mono_s"))
    if wall_s is None or (mono_s is None and value.get("mono_s") is not None):
        return None
    value["wall_s"], value["mono_s"] = wall_s, mono_s
    return value


def stamp(value: object) -> float | None:
    """Return a time in seconds, of whichever clock, None for what cannot be one."""
    number = finite(value)
    return number if number is not None and abs(number) <= LARGEST_STAMP_S else None


def slurm_job_id(value: object) -> str | None:
    """Return the number of a Slurm job as text, None for what can be none."""
    return value if isinstance(value, str) and _JOB.fullmatch(value) else None


def finite(value: object) -> float | None:
    """Return a number as a finite float, None for NaN, infinity, what no float can hold, and what is no number."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:  # JSON's whole numbers have no limit
        return None


class Appender:
    """An append-only file whose `write` never raises: what cannot be written is counted in `lost`."""

    def __init__(self, path: Path, header: bytes = b"", *, claim: bool = False) -> None:
        """Open it; `claim` locks it until this process ends, however it ends: UsageError when another one holds it."""
        self.path = path
        self.lost = 0
        self.lost_reason = ""
        self._torn = False
        self._fd = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            if claim:
                self._lock()
            self._begin(header)
        except Exception:
            self.close()
            raise

    def write(self, lines: bytes, *, rows: int = 1) -> bool:
        """Append whole lines with one write; False when these `rows` were lost (a full disk, a removed folder)."""
        torn, self._torn = self._torn, False
        text = END_OF_TORN + lines if torn else lines  # a torn row must not swallow the next one
        try:
            if os.fstat(self._fd).st_nlink == 0:
                return self._lose("the run folder was removed", rows)
            written = os.write(self._fd, text)
        except OSError as error:
            self._torn = torn
            return self._lose(error.strerror or str(error), rows)
        self._torn = 0 < written < len(text)
        return written == len(text) or self._lose("only part of a row could be written", rows)

    def sync(self) -> None:
        """Ask the disk to keep what was written; a disk that cannot is not our caller's business."""
        try:
            os.fsync(self._fd)
        except OSError as error:
            self.lost_reason = error.strerror or str(error)

    def close(self) -> None:
        """Close the file."""
        os.close(self._fd)

    def _lose(self, reason: str, rows: int) -> bool:
        self.lost += rows
        self.lost_reason = reason
        return False

    def _lock(self) -> None:
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                f"{self.path.parent} is in use by a running recorder: name another folder with --output"
            ) from error
        except OSError:
            return  # a file system without locks cannot protect us, nor need it stop us

    def _begin(self, header: bytes) -> None:
        size = os.fstat(self._fd).st_size
        if size == 0 and header:
            os.write(self._fd, header)
        elif size and os.pread(self._fd, 1, size - 1) != b"\n":
            os.write(self._fd, END_OF_TORN)  # of a killed recorder


def csv_appender(folder: Path, name: str, columns: Sequence[schema.Column], *, claim: bool = False) -> Appender:
    """Open a CSV of the run folder for appending, with its header when it is new; `claim` as for Appender."""
    header = ",".join(column.name for column in columns) + "\n"
    return Appender(folder / name, header.encode(), claim=claim)
