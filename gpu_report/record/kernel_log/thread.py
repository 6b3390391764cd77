"""Following the kernel log while recording: each line is stamped by our own clocks as it arrives."""

import os
import select
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.kernel_log.sources import LogSource, Refused, advice_for, open_best
from gpu_report.record.rate_cap import RateCap

FILE_POLL_MS = 250  # a regular file cannot be waited for
IDLE_POLL_MS = 5000  # the log itself, or the end, wakes it

Emit = Callable[[str, Clocks, Mapping[str, object]], object]


class KernelLogThread:
    """Follows the best kernel log there is, in a thread of its own, until told to stop."""

    def __init__(self, kernel_log: Path | None, emit: Emit) -> None:
        self._kernel_log = kernel_log
        self._emit = emit
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._cap = RateCap()
        self._thread = threading.Thread(target=self._run, name="kernel-log", daemon=True)
        self._thread.start()

    def finish(self, wait_s: float) -> bool:
        """Read what is there, then stop; False when a read does not return."""
        os.write(self._wake_write, b"x")
        self._thread.join(wait_s)
        if self._thread.is_alive():
            return False
        os.close(self._wake_read)
        os.close(self._wake_write)
        return True

    def _run(self) -> None:
        try:
            source = open_best(self._kernel_log)
        except Refused as refusal:
            self._status(
                "restricted" if refusal.restricted else "unavailable", None, refusal.reason, advice_for(refusal)
            )
            return
        self._status("read", source.name, "", "")
        try:
            self._follow(source)
        except Exception as error:  # noqa: BLE001 - a line that we cannot bear must be told, not end the thread silently
            reason = getattr(error, "strerror", None) or f"{type(error).__name__}: {error}"
            self._status("unavailable", source.name, f"reading stopped: {reason}", "")
        finally:
            self._report_dropped()
            source.close()

    def _follow(self, source: LogSource) -> None:
        poll = select.poll()
        poll.register(self._wake_read, select.POLLIN)
        if source.path is None:
            poll.register(source.fd, select.POLLIN)
        timeout_ms = IDLE_POLL_MS if source.path is None else FILE_POLL_MS
        while True:
            stop = any(fd == self._wake_read for fd, _ in poll.poll(timeout_ms))
            records = source.read()
            for record in records or ():
                self._keep(source, record)
            if source.overwritten:
                self._emit("kernel_lines_dropped", clocks.now(), {"count": source.overwritten})
                source.overwritten = 0
            if records is None:
                self._status("unavailable", source.name, "it ended while recording", "")
            if stop or records is None:
                return

    def _keep(self, source: LogSource, record: bytes) -> None:
        line = source.parse(record)
        if line is None:
            return
        at = clocks.now()
        dropped = self._cap.new_window(at.mono_s)
        if dropped:
            self._emit("kernel_lines_dropped", at, {"count": dropped})
        if self._cap.admit():
            fields = {"text": line.text, "level": line.level, "source": source.name, "stamp_s": line.stamp_s}
            self._emit("kernel", at, fields)

    def _report_dropped(self) -> None:
        if self._cap.dropped:
            self._emit("kernel_lines_dropped", clocks.now(), {"count": self._cap.dropped})

    def _status(self, status: str, source: str | None, reason: str, advice: str) -> None:
        fields = {"status": status, "source": source, "reason": reason, "advice": advice}
        self._emit("kernel_log", clocks.now(), fields)
