"""A worker as its conductor has it: a process that is asked and answers, or has failed for a reason."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_and_cut

END_LIMIT_S = 10.0  # a process that writes its last calls and frees a GPU takes a second or two
READ_BYTES = 1 << 16
# ultralytics would install what an export lacks into the user's environment, in the middle of a benchmark.
# Hashes that differ from process to process make the same Python faster or slower by a few percent.
ENVIRONMENT = {"YOLO_AUTOINSTALL": "False", "PYTHONHASHSEED": "0"}
LONGEST_LAST_LINE = 300  # characters


class ChildFailed(Exception):  # noqa: N818 - an answer, not an error
    """What was asked could not be done; the text is the reason, for people."""


class Answers(Protocol):
    """Whoever answers a request at once."""

    def ask(self, request: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        """Return the answer; ChildFailed where there is none."""


class WorkerProcess(Answers, Protocol):
    """A process that is asked."""

    def send(self, request: Mapping[str, Any]) -> None:
        """Ask something, whose answer is fetched later."""

    def answer(self, limit_s: float) -> dict[str, Any]:
        """Return the answer; ChildFailed where there is none."""

    def close(self) -> None:
        """Let it end when it is done; nothing is asked any more."""

    def interrupt(self) -> None:
        """Let it stop what it does, as Ctrl-C would; what it has written of its calls stays."""

    def end(self) -> None:
        """End it, whatever it does."""


class Child:
    """A process of worker.py; its log takes all that it prints."""

    def __init__(self, log: Path) -> None:
        """Start it."""
        self._log = log
        self._answers, given = os.pipe()
        self._read = b""
        with log.open("ab") as printed:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gpu_report.bench.worker", str(given)],
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=printed,
                pass_fds=(given,),
                env={**os.environ, **ENVIRONMENT},
            )
        os.close(given)

    def send(self, request: Mapping[str, Any]) -> None:
        """Ask something, whose answer is fetched later."""
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise ChildFailed(self._how_it_ended()) from error

    def answer(self, limit_s: float) -> dict[str, Any]:
        """Return the answer; ChildFailed where it is an error, where the process ended, or takes too long."""
        until_s = time.monotonic() + limit_s
        while b"\n" not in self._read:
            if not select.select([self._answers], [], [], max(until_s - time.monotonic(), 0.0))[0]:
                self._process.kill()
                raise ChildFailed(f"no answer within {limit_s:.0f} s")
            more = os.read(self._answers, READ_BYTES)
            if not more:
                raise ChildFailed(self._how_it_ended())
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise ChildFailed(answer["error"])
        return answer

    def ask(self, request: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        """Ask, and return the answer."""
        self.send(request)
        return self.answer(limit_s)

    def close(self) -> None:
        """Let it end when it is done; nothing is asked any more."""
        assert self._process.stdin is not None  # noqa: S101 - for the type checker
        try:
            self._process.stdin.close()
        except OSError:
            self._process.kill()

    def interrupt(self) -> None:
        """Let it stop what it does, as Ctrl-C would; what it has written of its calls stays."""
        self._process.send_signal(signal.SIGINT)

    def end(self) -> None:
        """Let it end, and kill it where it does not."""
        self.close()
        try:
            self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def _how_it_ended(self) -> str:
        """Return how the process ended, with the last line that it printed."""
        try:
            code = self._process.wait(END_LIMIT_S)
        except subprocess.TimeoutExpired:
            return "its process takes no more requests"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        last = _last_line(self._log)
        return f"its process ended with {how}{f': {last}' if last else ''}"


class Renewed:
    """A worker that is replaced by a new one after a failure: what it failed in may have left it in any state."""

    def __init__(self, start: Callable[[], WorkerProcess]) -> None:
        """Start none yet."""
        self._start = start
        self._child: WorkerProcess | None = None

    def ask(self, request: Mapping[str, Any], limit_s: float) -> dict[str, Any]:
        """Return the answer of a worker that has not failed."""
        self._child = self._child or self._start()
        try:
            return self._child.ask(request, limit_s)
        except ChildFailed:
            self.end()
            raise

    def interrupt(self) -> None:
        """Let the worker that there is stop what it does."""
        if self._child is not None:
            self._child.interrupt()

    def end(self) -> None:
        """End the worker that there is."""
        child, self._child = self._child, None
        if child is not None:
            child.end()


def _last_line(log: Path) -> str:
    try:
        text = log.read_bytes()[-READ_BYTES:].decode("utf-8", "replace")
    except OSError:
        return ""
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")
    return hide_and_cut(last)[:LONGEST_LAST_LINE]  # half a secret would not be known as one
