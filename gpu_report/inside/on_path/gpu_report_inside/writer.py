"""The thread that does all of a process's writing: a disk that hangs must not hang the training."""

from __future__ import annotations

import json
import os
import queue
import stat
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = "inside"
MOST_WAITING = 1000  # lines: some 200 kB, and an hour of a long training
LONGEST_WAIT_S = 1.0  # for the lines still waiting, when a run or the process ends


class File:
    """The file of this process in one run folder; only the writer's thread touches it."""

    flags = os.O_APPEND
    suffix = ".jsonl"

    def __init__(self, within: str = FOLDER) -> None:
        self._within = within
        self._fd: int | None = None
        self._folder: str | None = None
        self._torn = False

    def append(self, folder: str, line: bytes) -> None:
        """Append one line with one write; one that cannot be written is lost."""
        try:
            fd = self._open(folder)
            if fd is not None:
                line = b"\n" + line if self._torn else line  # a torn line must not swallow the next one
                self._torn = 0 < os.write(fd, line) < len(line)
        except OSError:  # a full disk, a removed folder: the training has better things to do
            return

    def _open(self, folder: str) -> int | None:
        """Return the file in this very run folder, None where there is none."""
        if self._fd is None or self._folder != folder:
            self._close()
            if not os.path.isdir(folder):  # noqa: PTH112 - os.path is loaded already, pathlib may not be
                return None
            os.makedirs(os.path.join(folder, self._within), exist_ok=True)  # noqa: PTH103, PTH118 - likewise
            path = os.path.join(folder, self._within, f"{os.getpid()}{self.suffix}")  # noqa: PTH118 - likewise
            self._fd = _regular(path, self.flags)
            self._folder, self._torn = folder, False
            self._opened(self._fd)
        return self._fd

    def _opened(self, fd: int) -> None:
        """Begin where the file ends: that is what its flag is for."""

    def _close(self) -> None:
        fd, self._fd = self._fd, None
        if fd is not None:
            os.close(fd)


class DraftFile(File):
    """A file whose newest line may be a draft: the next line then takes its place, and is as long at least."""

    flags = 0  # with O_APPEND, pwrite would append, too

    def __init__(self, within: str) -> None:
        super().__init__(within)
        self._end, self._draft = 0, 0

    def append(self, folder: str, line: bytes, *, draft: bool = False) -> None:
        """Write a line in the place of a draft; with `draft` the next one will come there, too."""
        try:
            fd = self._open(folder)
            if fd is not None:
                if self._torn:  # a torn line must not swallow the next one
                    self._end, self._torn = self._end + os.pwrite(fd, b"\n", self._end), False
                line = line[:-1].ljust(self._draft - 1) + b"\n"
                written = os.pwrite(fd, line, self._end)
                self._draft = max(written, self._draft) if draft else 0
                self._torn = not draft and 0 < written < len(line)
                self._end += 0 if draft else written
        except OSError:  # as for others
            return

    def _opened(self, fd: int) -> None:
        self._end, self._draft = os.fstat(fd).st_size, 0


class Writer:
    """A queue of lines and the daemon thread that empties it, in one process: a fork makes its own."""

    def __init__(self, within: str = FOLDER, file: Callable[[str], File] = File) -> None:
        self._within, self._file = within, file
        self._queue: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None
        self._awaited: threading.Event | None = None
        self._dropped = 0  # only callers count up ...
        self._reported = 0  # ... and only the thread this

    @property
    def is_idle(self) -> bool:
        """Tell whether all that was handed over has been taken from the queue."""
        return self._queue.qsize() == 0

    def put(self, folder: str, line: bytes | Callable[[], bytes], **how: bool) -> None:
        """Hand over a line, or drop it when the disk has not kept up; `how` is the file's own affair.

        What makes lines is called by the thread.
        """
        if self._thread is None:
            self._start()
        if self._queue.qsize() >= MOST_WAITING:
            self._dropped += 1
        else:
            self._queue.put((folder, line, how))

    def drain(self) -> None:
        """Wait until what was handed over is written, a second at most; not again while that wait was in vain."""
        if self._thread is None or (self._awaited is not None and not self._awaited.is_set()):
            return
        self._awaited = threading.Event()
        self._queue.put(self._awaited)
        self._awaited.wait(LONGEST_WAIT_S)

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="gpu-report", daemon=True)
                thread.start()
                self._thread = thread

    def _work(self) -> None:
        file, folder = self._file(self._within), ""
        while True:
            item = self._queue.get()
            awaited = isinstance(item, threading.Event)
            if not awaited:
                folder, line, how = item
                file.append(folder, line() if callable(line) else line, **how)
            if folder and self._dropped > self._reported and (awaited or self._queue.qsize() == 0):
                file.append(folder, self._report_dropped())
            if awaited:
                item.set()

    def _report_dropped(self) -> bytes:
        dropped = self._dropped
        reason = f"{dropped - self._reported} lines dropped: the disk did not keep up"
        self._reported = dropped
        stamps = {"wall_s": round(time.time(), 6), "mono_s": round(time.monotonic(), 6)}
        return (json.dumps({**stamps, "kind": "error", "where": "writer", "reason": reason}) + "\n").encode("ascii")


def _regular(path: str, flags: int) -> int:
    """Open a regular file to write to; OSError for anything else, which could block."""
    fd = os.open(path, os.O_WRONLY | flags | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(path)
    return fd
