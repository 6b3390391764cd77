"""The loop of the live page: looks at the run folder, judges, starts commands, and tells everybody who watches."""

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from gpu_report.live.actions import Actions
from gpu_report.live.alarms import Alarm, alarms
from gpu_report.live.report_so_far import Reports
from gpu_report.live.run_now import RunNow
from gpu_report.live.status import status

LOOK_EVERY_S = 0.5  # where no row is expected: one that comes is on the screen half a second later
WRITTEN_S = 0.1  # after its tick a row is in the file: reading the GPUs takes so long
BEHIND_EVERY_S = 0.02  # while what came before is read
KEPT_TICKS = 600  # for who reconnects: ten minutes; who was away for longer gets everything anew
COMMENT_EVERY_S = 15.0  # proxies end connections that are silent for 30 to 60 s
TICK_AT_LEAST_S = 5.0  # also without a new row: how old the last one is has changed


@dataclass(frozen=True)
class Tick:
    """What is sent at once: its number, and a message of server-sent events."""

    number: int
    message: bytes


class Follower:
    """Follows one run folder for all who watch: what is sent is made once."""

    def __init__(self, run: RunNow, reports: Reports, actions: Actions, price_per_hour: float | None) -> None:
        self.run, self.reports = run, reports
        self._actions, self._price = actions, price_per_hour
        self._name = secrets.token_hex(4)  # of this process: a number of another one's ticks means nothing here
        self._ticks: deque[Tick] = deque(maxlen=KEPT_TICKS)
        self._number = 0
        self._sent_s = float("-inf")
        self._sent_rows_s: dict[int, float] = {}
        self._came = asyncio.Condition()
        self._alarms: list[Alarm] = []
        self._analysed: set[str] = set()  # alarms and epochs that an analysis was made for
        self._tasks: set[asyncio.Task[Any]] = set()
        self.error = ""  # why the run folder cannot be read at present

    def status(self) -> dict[str, Any]:
        """Return what /gpu-status says now."""
        said = status(self.run, time.time(), self._alarms, self.reports.so_far, self._price)
        return {**said, "is_behind": self.run.samples.is_behind, "error": self.error, **self._report()}

    def _report(self) -> dict[str, Any]:
        return {"report_ready": self.is_report, "report_error": self.reports.error}

    @property
    def is_report(self) -> bool:
        """Tell whether the page is the report of the whole run."""
        return self.reports.is_final

    async def follow(self) -> None:
        """Look until cancelled. A disk that hangs holds up a thread, and nobody who watches."""
        while True:
            came = await self._look()
            now_s = time.time()
            self._alarms = alarms(self.run, now_s)
            self._actions.look(self.run, self.reports.so_far, now_s)
            self._analyse_if_due()
            behind = self.run.samples.is_behind
            if came or time.monotonic() - self._sent_s > (1.0 if behind else TICK_AT_LEAST_S):
                await self._send()
            await asyncio.sleep(BEHIND_EVERY_S if behind else self._pause_s(time.time()))

    def _pause_s(self, now_s: float) -> float:
        """Return how long to wait: until the next row is due, for looking twice for one costs as much as looking."""
        last_s, interval_s = self.run.last_s, self.run.interval_s
        due_in_s = 0.0 if last_s is None else last_s + interval_s + WRITTEN_S - now_s
        return min(max(due_in_s, LOOK_EVERY_S / 2), 2 * LOOK_EVERY_S) if due_in_s > 0 else LOOK_EVERY_S

    async def _look(self) -> bool:
        try:
            came = await asyncio.to_thread(self.run.look)
        except OSError as error:
            self.error = error.strerror or str(error)
            return False
        self.error = ""
        return came

    def _analyse_if_due(self) -> None:
        """Have the report made at the end, and an analysis where something is new."""
        if self.run.state(time.time()) == "ended":
            if not self.is_report and not self.reports.is_busy and not self.reports.has_failed:
                self._begin(self.reports.page(is_final=True))
            return
        new = {alarm.key for alarm in self._alarms if alarm.kind != "idle"} - self._analysed
        new |= {f"kernel-{self.run.events.xid_lines}"} - self._analysed if self.run.events.xid_lines else set()
        training = self.run.training
        epoch = training.epoch if training is not None else None
        epochs = {f"at-{self._number // 60}" if epoch is None else f"epoch-{epoch}"}
        urgent, has_worked = bool(new), any(gpu.level_pct is not None for gpu in self.run.gpus)
        if (urgent or (has_worked and epochs - self._analysed)) and self.reports.is_due(urgent=urgent):
            self._analysed |= new | epochs
            self._begin(self.reports.analyse(urgent=urgent))

    def _begin(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self) -> None:
        """Make the next tick, and wake up who waits for it."""
        self._number += 1
        self._sent_s = time.monotonic()
        self._ticks.append(Tick(self._number, self._new_rows()))
        async with self._came:
            self._came.notify_all()

    def _new_rows(self) -> bytes:
        """Return a message with the rows that have come since the last one, everything where a GPU is new."""
        sent, gpus = self._sent_rows_s, self.run.gpus
        self._sent_rows_s = {gpu.index: gpu.at_s for gpu in gpus}
        if sent.keys() != self._sent_rows_s.keys() or any(gpu.at_s < sent[gpu.index] for gpu in gpus):
            return self._everything()
        rows = [[gpu.index, at_s, values] for gpu in gpus for at_s, values in gpu.after(sent[gpu.index])]
        return self._message("tick", {"status": self.status(), "rows": rows})

    def _message(self, event: str, data: dict[str, Any]) -> bytes:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
        return f"event: {event}\nid: {self._name}-{self._number}\ndata: {text}\n\n".encode()

    def _everything(self) -> bytes:
        """Return a message with the whole timeline, for who begins to watch."""
        history = {
            gpu.index: {name: [_short(row) for row in envelope.rows()] for name, envelope in gpu.drawn.items()}
            for gpu in self.run.gpus
        }
        recent = {gpu.index: [[round(at_s, 2), values] for at_s, values in gpu.recent] for gpu in self.run.gpus}
        return self._message("everything", {"status": self.status(), "history": history, "recent": recent})

    async def messages(self, last_id: str) -> AsyncIterator[bytes]:
        """Yield messages for one who watches, from the one after `last_id` on where it is still known."""
        name, _, number = last_id.partition("-")
        known = self._ticks[0].number if self._ticks else self._number + 1
        sent = int(number) if name == self._name and number.isdecimal() else -1
        if not known - 1 <= sent <= self._number:
            yield self._everything()
            sent = self._number
        was_behind = self.run.samples.is_behind
        while True:
            for tick in [tick for tick in self._ticks if tick.number > sent]:
                yield tick.message
                sent = tick.number
            if was_behind and not self.run.samples.is_behind:
                was_behind = False
                yield self._everything()
            try:
                async with asyncio.timeout(COMMENT_EVERY_S), self._came:
                    await self._came.wait_for(lambda: self._number > sent)  # noqa: B023 - called before it changes
            except TimeoutError:
                yield b": nothing new\n\n"

    async def close(self) -> None:
        """Wait for the commands that run, and give up the rest."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._actions.finish()
        self.reports.close()


def _short(row: tuple[float, ...]) -> list[float]:
    return [round(value, 2) for value in row]
