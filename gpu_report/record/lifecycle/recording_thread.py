"""The recording in a thread of its own: a disk that hangs holds neither signals nor the command nor the exit."""

import queue
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gpu_report.errors import UsageError
from gpu_report.record.gpu.sampler import GpuWatch
from gpu_report.record.lifecycle import signals
from gpu_report.record.lifecycle.recording import OpenRecording, StartedCommand
from gpu_report.record.lifecycle.stop_request import RecordingEnd, StopRequest
from gpu_report.record.options import RecordOptions
from gpu_report.record.run_folder_writer import Say

POLL_S = 0.05  # how often a wait for the folder looks for signals


class RecordingThread:
    """Claims the run folder at once, records from `begin` on, and wakes the thread that made it when it is done."""

    def __init__(self, options: RecordOptions, gpus: GpuWatch, say: Say) -> None:
        self._options = options
        self._gpus = gpus
        self._say = say
        self._maker = signals.this_thread()
        self._claimed: queue.SimpleQueue[Path | Exception] = queue.SimpleQueue()
        self._orders: queue.SimpleQueue[Callable[[OpenRecording], None]] = queue.SimpleQueue()
        self._ending = StopRequest()
        self.done = False
        self.recorded: Path | None = None  # the run folder, once something was recorded and it has been closed
        self.error: Exception | None = None
        threading.Thread(target=self._run, name="recording", daemon=True).start()

    def await_folder(self, limit_s: float, interrupted: Callable[[], bool]) -> Path | None:
        """Return the claimed run folder, None when the disk does not answer in time; raises what claiming it raised."""
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and not interrupted():
            try:
                claimed = self._claimed.get(timeout=POLL_S)
            except queue.Empty:
                continue
            if isinstance(claimed, Exception):
                raise claimed
            return claimed
        return None

    def begin(self, command: StartedCommand | None) -> None:
        """Record from now on, or from when the folder has been claimed; `command` is what was started."""
        self._orders.put(lambda recording: self._record(recording, command))

    def discard(self) -> None:
        """Take the recording back instead of beginning it."""
        self._orders.put(OpenRecording.discard)

    def end(self, end: RecordingEnd) -> None:
        """End the recording; `done` says when it has been closed."""
        self._ending.tell(end)

    def _run(self) -> None:
        try:
            recording = OpenRecording(self._options, self._say)
        except Exception as error:  # noqa: BLE001 - whoever waits for the folder must hear of it
            self.error = error
            self._claimed.put(error)
        else:
            self._claimed.put(recording.folder)
            self._carry_out(recording)
        self.done = True
        signals.wake(self._maker)

    def _carry_out(self, recording: OpenRecording) -> None:
        order = self._orders.get()
        try:
            order(recording)
        except Exception as error:  # noqa: BLE001 - a bug in recording must never end a training
            self.error = error
            self._say(f"recording failed ({type(error).__name__}: {error}); please report this")

    def _record(self, recording: OpenRecording, command: StartedCommand | None) -> None:
        recording.run(self._gpus, command, self._ending)
        self._say(recording.outcome)
        self.recorded = recording.folder


def refusal(error: Exception) -> UsageError | None:
    """Return the error when the user can mend it at once (a folder in use), None for a disk's or our own failure."""
    if not isinstance(error, UsageError):
        return None
    of_the_disk = isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, BlockingIOError)
    return None if of_the_disk else error
