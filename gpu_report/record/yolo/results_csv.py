"""Reading results.csv as it grows."""

import csv
import math
import os
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gpu_report.ordinary_file import open_ordinary

MAX_BYTES = 16 << 20  # a results.csv of 10,000 epochs has about 2 MiB
CHECKED_BYTES = 1024  # before what is new: some rows, and each has another `time` in a file that was begun anew


@dataclass(frozen=True)
class ResultRow:
    """A row of results.csv: its 1-based epoch, its `time` (seconds since training began), and its other columns."""

    epoch: int
    time_s: float | None
    metrics: dict[str, float | None]


@dataclass
class ResultsTail:
    """Complete rows of one results.csv in the order they appear; `rows_read` counts those given out.

    `_read` and `_checksum` are the length and CRC-32 of the bytes that those rows were read from.
    """

    path: Path
    rows_read: int = 0
    mtime_s: float | None = None
    _signature: tuple[int, int, int] | None = None
    _read: int = 0
    _checksum: int = 0
    _inode: int = 0
    _header: bytes = b""
    _last: bytes = b""

    def changed(self) -> bool:
        """Say whether the file is another than at the last call: one stat, about 1 us."""
        status = self._status()
        if status is None:
            return False
        known, self._signature = self._signature, _signature(status)
        self.mtime_s = status.st_mtime
        return self._signature != known

    def differs(self) -> bool:
        """Say what `changed` would, and leave it to be said again."""
        status = self._status()
        return status is not None and _signature(status) != self._signature

    def _status(self) -> os.stat_result | None:
        try:
            return self.path.stat()
        except OSError:
            return None

    def read(self) -> tuple[list[ResultRow], bool]:
        """Return the rows that are new, and whether the file was begun anew (a run in the same folder).

        A resumed run appends. One begun anew has another beginning, for its `time` differs in each row: however many
        rows it has by now, and whatever inode a file system gives out again.
        """
        appended = self._appended()
        if appended is not None:
            return self._take(appended), False
        try:
            with open_ordinary(self.path) as file:
                data = file.read(MAX_BYTES)
        except OSError:
            return [], False
        rows = parse_rows(data)
        restarted = self.rows_read > 0 and zlib.crc32(data[: self._read]) != self._checksum
        new = rows if restarted else rows[self.rows_read :]
        self.rows_read, self._read = len(rows), data.rfind(b"\n") + 1
        self._checksum = zlib.crc32(data[: self._read])
        self._inode = 0 if self._signature is None else self._signature[0]
        self._header = data[: data.find(b"\n") + 1]
        self._last = data[max(0, self._read - CHECKED_BYTES) : self._read]
        return new, restarted

    def _appended(self) -> bytes | None:
        """Return what the file has grown by since the last reading, None where it may be another one: read it whole."""
        try:
            with open_ordinary(self.path) as file:
                status = os.fstat(file.fileno())
                if not self.rows_read or status.st_ino != self._inode or not self._read < status.st_size <= MAX_BYTES:
                    return None
                file.seek(self._read - len(self._last))
                data = file.read(MAX_BYTES)
        except OSError:
            return None
        return data[len(self._last) :] if data.startswith(self._last) else None

    def _take(self, appended: bytes) -> list[ResultRow]:
        """Return the whole rows of what was appended."""
        whole = appended[: appended.rfind(b"\n") + 1]
        rows = parse_rows(self._header + whole)
        self.rows_read += len(rows)
        self._read += len(whole)
        self._checksum = zlib.crc32(whole, self._checksum)
        self._last = (self._last + whole)[-CHECKED_BYTES:]
        return rows


def _signature(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


def parse_rows(data: bytes) -> list[ResultRow]:
    """Return the complete rows (those with an end of line) that have an epoch; column names are stripped."""
    text = data[: data.rfind(b"\n") + 1].decode("utf-8-sig", "replace")
    lines = csv.reader(text.splitlines())
    header = [name.strip() for name in next(lines, [])]
    rows = (_row(header, cells) for cells in lines)
    return [row for row in rows if row is not None]


def _row(header: Sequence[str], cells: Sequence[str]) -> ResultRow | None:
    values = {name: _number(cell) for name, cell in zip(header, cells, strict=False) if name}
    epoch = values.pop("epoch", None)
    if epoch is None:
        return None
    return ResultRow(int(epoch), values.pop("time", None), values)


def _number(cell: str) -> float | None:
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def wall_times(rows: Sequence[ResultRow], mtime_s: float) -> list[float | None]:
    """Return when each row was written: the last one at the file's mtime, those before it by their `time`.

    A row before a restart of `time` (a resume), or without a `time`, cannot be placed: None.
    """
    walls: list[float | None] = []
    later: float | None = None
    last = rows[-1].time_s if rows else None
    for number, row in enumerate(reversed(rows)):
        if number == 0:
            walls.append(mtime_s)
        elif row.time_s is None or last is None or later is None or row.time_s > later:
            walls.extend([None] * (len(rows) - number))
            break
        else:
            walls.append(mtime_s - (last - row.time_s))
        later = row.time_s
    return walls[::-1]
