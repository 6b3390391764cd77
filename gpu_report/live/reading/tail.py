"""Whole lines of a file that somebody else appends to, as they come."""

import os
from pathlib import Path

from gpu_report.ordinary_file import LARGEST_LINE, MIB, open_ordinary

READ_AT_ONCE = MIB  # 10,000 rows: in between others have their turn


class FileTail:
    """A file from a byte on, to its end or to another byte. It may not exist yet, vanish, or be made anew.

    A torn last line waits until it is whole; what precedes the first line's beginning is left out.
    """

    def __init__(self, path: Path, begin: int = 0, end: int | None = None) -> None:
        self._path, self._offset, self._end = path, begin, end
        self._inode: int | None = None
        self._torn: bytes | None = None if begin else b""  # None: within a line whose beginning is not known
        self.is_behind = True  # there is more to be read at once
        self.was_made_anew = self._is_gone = False

    def lines(self) -> list[bytes]:
        """Return the lines that have come since the last call, of READ_AT_ONCE bytes at most; none where it is gone.

        OSError where the disk says so: what is there is read the next time.
        """
        data = self._read()
        *whole, torn = ((self._torn or b"") + data).split(b"\n")
        if self._torn is None and whole:
            del whole[0]
            self._torn = b""
        if self._torn is not None:
            self._torn = torn if len(torn) <= LARGEST_LINE else b""
        return whole

    def _read(self) -> bytes:
        self.is_behind = False
        try:
            file = open_ordinary(self._path)
        except FileNotFoundError:
            self._is_gone = self._inode is not None
            return b""
        with file:
            status = os.fstat(file.fileno())
            is_another = self._inode not in (None, status.st_ino) or status.st_size < self._offset
            self.was_made_anew, self._is_gone = is_another or self._is_gone, False
            if self.was_made_anew:
                self._offset, self._torn = 0, b""
            self._inode = status.st_ino
            end = status.st_size if self._end is None else min(self._end, status.st_size)
            data = os.pread(file.fileno(), max(min(READ_AT_ONCE, end - self._offset), 0), self._offset)
        self._offset += len(data)
        self.is_behind = self._offset < end
        return data
