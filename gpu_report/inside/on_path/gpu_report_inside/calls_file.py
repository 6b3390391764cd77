"""The file of a process's calls, `inside/<pid>.calls.csv`: rows are kept for a second and appended together."""

from __future__ import annotations

import os
import threading
from collections import deque

from .writer import File, Writer

HEADER = b"mono_s,model,images,height,width,preprocess_ms,inference_ms,postprocess_ms,total_ms,gap_ms\n"
TOGETHER_S = 1.0  # how long a row waits for others: what a process that is killed loses
MOST_WAITING = 200_000  # rows, 14 MB, of a disk that hangs: a minute of 3,000 calls a second


class CallsFile(File):
    """A CSV that begins with the names of its columns."""

    suffix = ".calls.csv"

    def _opened(self, fd: int) -> None:
        if os.fstat(fd).st_size == 0:
            os.write(fd, HEADER)


class CallRows:
    """The rows of this process, which a thread of its own writes; `dropped` counts those that found no room."""

    def __init__(self) -> None:
        self.dropped = 0
        self._rows: deque[str] = deque()
        self._writer = Writer(file=CallsFile)
        self._asked = False
        self._hurry = threading.Event()

    def add(self, folder: str, row: str) -> None:
        """Keep a row; the first one wakes the thread."""
        if len(self._rows) >= MOST_WAITING:
            self.dropped += 1
            return
        self._rows.append(row)
        if not self._asked:
            self._asked = True
            self._writer.put(folder, self._taken)

    def drain(self) -> None:
        """Wait until all is written, a second at most."""
        self._hurry.set()
        self._writer.drain()
        self._hurry.clear()

    def _taken(self) -> bytes:
        """Return the rows of a second: called by the thread, which waits for that long."""
        self._hurry.wait(TOGETHER_S)
        self._asked = False  # before they are taken: a row that comes now asks anew
        return "".join([self._rows.popleft() for _ in range(len(self._rows))]).encode("ascii")
