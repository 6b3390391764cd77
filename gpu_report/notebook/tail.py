"""The end of a file that grows: whole lines that were appended since the last look."""

import os
from pathlib import Path

from gpu_report.ordinary_file import LARGEST_HEADER, open_ordinary

MOST_BYTES = 64 * 1024  # read at one look: five seconds of 16 GPUs have 16 KiB


class BoundedTail:
    """What is appended to a file; a torn last line waits for its end.

    Of more than MOST_BYTES the newest are read. A file that is not there, or that became shorter, is begun anew.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._skips_torn = False  # the look began within a line

    def lines(self) -> list[bytes]:
        """Return the whole lines since the last look, none where the file cannot be read."""
        try:
            with open_ordinary(self._path) as file:
                size = os.fstat(file.fileno()).st_size
                self._go_to_newest(size)
                file.seek(self._offset)
                data = file.read(size - self._offset)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        lines = whole.split(b"\n")[:-1]
        skipped, self._skips_torn = self._skips_torn and bool(lines), self._skips_torn and not lines
        return lines[1:] if skipped else lines

    def _go_to_newest(self, size: int) -> None:
        if size < self._offset:
            self._offset = 0
        if size - self._offset > MOST_BYTES:
            self._offset = size - MOST_BYTES
            self._skips_torn = True


def first_line(path: Path) -> bytes:
    """Return a file's first line without its end, nothing where it is not whole or cannot be read."""
    try:
        with open_ordinary(path) as file:
            line = file.readline(LARGEST_HEADER)
    except OSError:
        return b""
    return line[:-1] if line.endswith(b"\n") else b""
