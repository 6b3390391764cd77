"""The file of a process's calls, `inside/<pid>.calls.csv`: rows are kept for a second and appended together."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from .lines import report
from .writer import File, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEADER = b"mono_s,model,images,height,width,preprocess_ms,inference_ms,postprocess_ms,total_ms,gap_ms,new_thread\n"
TOGETHER_S = 1.0  # how long a row waits for others: what a process that is killed loses
MOST_WAITING = 100_000  # calls, 40 MB, of a disk that hangs: half a minute of 3,000 a second
AT_ONCE = 100  # rows: 0.3 ms, for which the thread keeps the interpreter's lock


class CallsFile(File):
    """A CSV that begins with the names of its columns."""

    suffix = ".calls.csv"

    def _opened(self, fd: int) -> None:
        if os.fstat(fd).st_size == 0:
            os.write(fd, HEADER)


class CallRows:
    """The calls of this process, which a thread of its own writes; `dropped` counts those that found no room.

    A thread that is woken takes the interpreter's lock, in the middle of a call. So it is woken by the first call
    alone, and then looks by itself, until a second has none.
    """

    def __init__(self, row: Callable[[Any], str]) -> None:
        """Take what makes a row of a call."""
        self.dropped = 0
        self._row = row
        self._calls: deque[Any] = deque()
        self._writer = Writer(file=CallsFile)
        self._asked = False
        self._folder = ""
        self._hurry = threading.Event()

    def add(self, folder: str, call: Any) -> None:
        """Keep a call; the first one, and one after a second without, wakes the thread."""
        if len(self._calls) >= MOST_WAITING:
            self.dropped += 1
            return
        self._folder = folder
        self._calls.append(call)
        if not self._asked:
            self._asked = True
            try:
                self._writer.put(folder, self._taken)
            except Exception:
                self._asked = False  # no thread could be started: the next call asks anew
                raise

    def drain(self) -> None:
        """Wait until all is written, a second at most."""
        self._hurry.set()
        self._writer.drain()
        self._hurry.clear()

    def _taken(self) -> bytes:
        """Return the rows of a second: called by the thread, which waits for that long."""
        self._hurry.wait(TOGETHER_S)
        rows = "".join(self._made(len(self._calls)))
        if not rows:
            self._asked = False  # before it looks once more: a call that comes now asks anew
        if rows or self._calls:
            self._asked = True
            self._writer.put(self._folder, self._taken)
        return rows.encode("ascii")

    def _made(self, count: int) -> Iterator[str]:
        """Yield the rows of so many calls; one that cannot be made is left out. Others may run Python in between."""
        for number in range(count):
            if number % AT_ONCE == AT_ONCE - 1:
                time.sleep(0)
            try:
                yield self._row(self._calls.popleft())
            except Exception as error:  # noqa: BLE001 - the service must go on, and the others be written
                report("calls", error)
