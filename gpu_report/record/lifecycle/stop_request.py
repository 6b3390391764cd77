"""What ends a recording, told from the thread that hears of it to the one that records."""

import threading
import time
from dataclasses import dataclass

from gpu_report.record.lifecycle.command import Ended


@dataclass(frozen=True)
class RecordingEnd:
    """Why a recording ended: duration, signal or command; with a command, how that ended."""

    ended_by: str
    signal_name: str | None = None
    command: Ended | None = None


class StopRequest:
    """A recording waits on it between two ticks; whoever tells it first is heard."""

    def __init__(self) -> None:
        self._made = threading.Event()
        self._end: RecordingEnd | None = None

    def tell(self, end: RecordingEnd) -> None:
        """End the recording for this reason, unless one was reported before."""
        if self._end is None:
            self._end = end
            self._made.set()

    def wait_until(self, mono_s: float) -> RecordingEnd | None:
        """Sleep until a moment of the monotonic clock, or until the end is reported, which is returned."""
        self._made.wait(max(0.0, mono_s - time.monotonic()))
        return self._end
