"""events.jsonl while it grows: how the recording and its command ended, and faults of a GPU."""

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpu_report import schema
from gpu_report.live.reading.tail import FileTail
from gpu_report.run_folder import finite, parse_events

XID = "Xid"  # in a line of the kernel log: the driver reports a fault
MOST_FAULTS = 100  # lines that are kept: the report has them all


class Events:
    """What has happened so far. Times are wall seconds; None is not known, or not yet."""

    def __init__(self, folder: Path) -> None:
        self._tail = FileTail(folder / schema.EVENTS_JSONL)
        self.started_s: float | None = None
        self.ended_s: float | None = None
        self.ended_by: str | None = None
        self.has_command = False
        self.exit_code: int | None = None
        self.exit_signal: str | None = None
        self.xid_lines = 0  # of the kernel log
        self.xids: deque[tuple[float, int | None, int]] = deque(maxlen=MOST_FAULTS)  # when, GPU, code

    def look(self) -> None:
        """Take in what has come; OSError where it cannot be read."""
        while True:
            lines = self._tail.lines()
            for event in parse_events(b"\n".join(lines))[0]:
                self._take(event["kind"], event)
            if not self._tail.is_behind:
                return

    def _take(self, kind: str, event: Mapping[str, Any]) -> None:
        if kind == "recording_started":
            self.started_s, self.ended_s, self.ended_by = event["wall_s"], None, None
            self.exit_code, self.exit_signal, self.has_command = None, None, False
        elif kind == "recording_ended":
            self.ended_s, self.ended_by = event["wall_s"], str(event.get("ended_by") or "")
        elif kind == "command_started":
            self.has_command = True
        elif kind == "command_ended":
            code, name = finite(event.get("exit_code")), event.get("signal")
            self.exit_code = None if code is None else int(code)
            self.exit_signal = name[:32] if isinstance(name, str) else None
        elif kind == "kernel":
            self.xid_lines += XID in str(event.get("text"))
        elif kind == "xid" and (code := finite(event.get("code"))) is not None:
            gpu = finite(event.get("gpu"))
            self.xids.append((event["wall_s"], None if gpu is None else int(gpu), int(code)))
