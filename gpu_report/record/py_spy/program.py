"""py-spy, where it is installed: one dump of a process's stacks, within a time limit and without pausing the process.

Without `--nonblocking` py-spy stops every thread of the process by ptrace: each dump held a busy Python for 33 ms. With
it, memory is only read: nobody traced the process, 60 dumps cost it less than the noise of 1 ms each, and each of 150
dumps of a process that ran all the time was whole (py-spy 0.4.3, Python 3.11, two CPU cores).
"""

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO

PROGRAM = "py-spy"
LIMIT_S = 5.0  # a dump takes 10 to 30 ms; on a machine without a free core, seconds
MOST_BYTES = 4 * 2**20  # of an answer: 64 threads of 100 frames are 2 MB
MOST_OF_ERRORS = 4096  # bytes: py-spy's reason is the first line, a backtrace may follow
LONGEST_REASON = 300  # characters of an event
READ_AT_ONCE = 65_536  # bytes
KILLED_WITHIN_S = 1.0  # who reads memory that a hung disk holds cannot be killed, and is left behind


class DumpFailed(Exception):  # noqa: N818 - an answer, not an error
    """No dump of a process could be had: why."""


def find_program() -> str | None:
    """Return the path of py-spy on PATH, else beside our own Python (the extra `[stacks]`); None where it is not."""
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path=str(Path(sys.executable).parent))


class PySpy:
    """Runs py-spy, once at a time; `kill` may come from another thread."""

    def __init__(self, program: str, limit_s: float = LIMIT_S) -> None:
        self._program, self._limit_s = program, limit_s
        # it ends itself in time also where the recorder was killed meanwhile
        guard = shutil.which("timeout")
        self._guard = [guard, "-s", "KILL", f"{limit_s + KILLED_WITHIN_S:g}"] if guard else []
        self._child: subprocess.Popen[bytes] | None = None
        self._is_ended = False

    def dump(self, pid: int) -> bytes:
        """Return py-spy's JSON of all threads of a process; DumpFailed with the reason."""
        if self._is_ended:
            raise DumpFailed("the recording ends")
        command = [*self._guard, self._program, "dump", "--nonblocking", "--json", "--pid", str(pid)]
        try:
            child = self._child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_environment(os.environ),
                start_new_session=True,  # a key on the terminal is not for it, and all of it is killed together
            )
        except OSError as error:
            raise DumpFailed(f"{PROGRAM} cannot be started ({error.strerror})") from error
        if self._is_ended:  # `kill` came before there was anything to kill
            _kill(child)
        try:
            return self._answer(child)
        finally:
            self._reap(child)

    def kill(self) -> None:
        """End a dump under way and begin none again."""
        self._is_ended, child = True, self._child
        if child is not None and child.returncode is None:
            _kill(child)

    def _answer(self, child: subprocess.Popen[bytes]) -> bytes:
        until_s = time.monotonic() + self._limit_s
        answer = _read(_number(child.stdout), until_s)
        try:
            code = child.wait(max(until_s - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            raise DumpFailed(_too_slow(self._limit_s)) from None
        if code:
            raise DumpFailed(_reason(_number(child.stderr), code))
        return answer

    def _reap(self, child: subprocess.Popen[bytes]) -> None:
        if child.poll() is None:
            _kill(child)
        for stream in filter(None, (child.stdout, child.stderr)):
            stream.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(KILLED_WITHIN_S)
        self._child = None


def _environment(ours: Mapping[str, str]) -> dict[str, str]:
    return {**ours, "RUST_BACKTRACE": "0"}


def _number(pipe: IO[bytes] | None) -> int:
    return -1 if pipe is None else pipe.fileno()  # it is one: PIPE was asked for


def _kill(child: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)


def _read(number: int, until_s: float) -> bytes:
    """Return what comes from a pipe until it is closed; DumpFailed when that takes too long, or is too much."""
    parts, size, limit_s, poll = list[bytes](), 0, until_s - time.monotonic(), select.poll()
    poll.register(number, select.POLLIN | select.POLLHUP)
    while poll.poll(1000 * max(until_s - time.monotonic(), 0.0)):
        part = os.read(number, READ_AT_ONCE)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if size > MOST_BYTES:
            raise DumpFailed(f"{PROGRAM} answered more than {MOST_BYTES} bytes")
        if time.monotonic() > until_s:
            break
    raise DumpFailed(_too_slow(limit_s))


def _reason(number: int, code: int) -> str:
    """Return the first line of what a program that failed wrote to stderr; it has ended, and nothing is waited for."""
    os.set_blocking(number, False)
    try:
        said = os.read(number, MOST_OF_ERRORS).decode("utf-8", "replace")
    except BlockingIOError:  # a child of its own keeps the pipe open
        said = ""
    first = next((line.strip() for line in said.splitlines() if line.strip()), "")
    return "".join(filter(str.isprintable, first))[:LONGEST_REASON] or f"{PROGRAM} failed with exit code {code}"


def _too_slow(limit_s: float) -> str:
    return f"{PROGRAM} did not answer within {limit_s:.0f} s"
