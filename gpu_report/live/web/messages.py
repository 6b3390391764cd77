"""What is sent to who watches, as server-sent events: everything first, then a tick for what is new."""

import json
import secrets
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

from gpu_report.live.reading.gpu_readings import RECENT_S
from gpu_report.live.reading.last_minute import host_recent
from gpu_report.live.reading.run_now import RunNow

KEPT_TICKS = 600  # for who reconnects: ten minutes; who was away for longer gets everything anew
ALIVE = b"event: alive\ndata:\n\n"  # a proxy ends connections that are silent, and a page wants to know

Status = dict[str, Any]


@dataclass(frozen=True)
class Tick:
    """What is sent at once: its number, and a message of server-sent events."""

    number: int
    message: bytes


class Messages:
    """Makes each message once for all who watch. Numbers count up; those of another process mean nothing here."""

    def __init__(self, run: RunNow) -> None:
        self._run = run
        self._name = secrets.token_hex(4)
        self._ticks: deque[Tick] = deque(maxlen=KEPT_TICKS)
        self._sent_rows_s: dict[int, float] = {}
        self._everything: Tick | None = None
        self.number = 0
        self.sent_s = float("-inf")  # on the monotonic clock

    def add(self, status: Status) -> None:
        """Make the next tick: the rows that have come since the last one, everything where a GPU is new."""
        self.number += 1
        self.sent_s = time.monotonic()
        self._ticks.append(Tick(self.number, self._new_rows(status)))

    def after(self, number: int) -> list[Tick] | None:
        """Return the ticks after a number, None where some of them are not kept any more."""
        if not 0 <= number <= self.number or (self._ticks and self._ticks[0].number > number + 1):
            return None
        return [tick for tick in self._ticks if tick.number > number]

    def number_of(self, event_id: str) -> int:
        """Return the number in the id of an event, -1 for what is none of ours."""
        name, _, number = event_id.partition("-")
        return int(number) if name == self._name and number.isdecimal() and len(number) < 16 else -1

    def everything(self, status: Status) -> bytes:
        """Return a message with the whole timeline, for who begins to watch."""
        if self._everything is None or self._everything.number != self.number:
            gpus = self._run.gpus
            history = {gpu.index: {name: drawn.short_rows() for name, drawn in gpu.drawn.items()} for gpu in gpus}
            recent = {gpu.index: gpu.after(0.0) for gpu in gpus}
            host = host_recent(self._run.folder, time.time() - RECENT_S)
            every = {"status": status, "history": history, "recent": recent, "host": host}
            message = self._message("everything", every)
            self._everything = Tick(self.number, message)
        return self._everything.message

    def _new_rows(self, status: Status) -> bytes:
        sent, gpus = self._sent_rows_s, self._run.gpus
        self._sent_rows_s = {gpu.index: gpu.at_s for gpu in gpus}
        if sent.keys() != self._sent_rows_s.keys() or any(gpu.at_s < sent[gpu.index] for gpu in gpus):
            return self.everything(status)
        rows = [[gpu.index, at_s, values] for gpu in gpus for at_s, values in gpu.after(sent[gpu.index])]
        return self._message("tick", {"status": status, "rows": rows})

    def _message(self, event: str, data: dict[str, Any]) -> bytes:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        return f"event: {event}\nid: {self._name}-{self.number}\ndata: {text}\n\n".encode()
