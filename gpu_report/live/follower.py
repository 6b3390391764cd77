"""The loop of the live page: looks at the run folder, judges, starts commands, and tells everybody who watches."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from gpu_report.live.actions import Actions
from gpu_report.live.alarms import Alarm, alarms
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.report_so_far import Reports
from gpu_report.live.web.messages import ALIVE, Messages, Status
from gpu_report.live.web.status import status, without_answer

LOOK_EVERY_S = 0.5  # where no row is expected: one that comes is on the screen half a second later
WRITTEN_S = 0.1  # after its tick a row is in the file: reading the GPUs takes so long
BEHIND_EVERY_S = 0.02  # while what came before is read
BEHIND_TICK_S = 1.0
ALIVE_EVERY_S = 5.0  # proxies end connections that are silent for 30 to 60 s
TICK_AT_LEAST_S = 5.0  # also without a new row: how old the last one is has changed
ANSWER_S = 1.0  # a look takes milliseconds: one that takes longer waits for a disk


class Follower:
    """Follows one run folder for all who watch. Whatever goes wrong in a look is said, and the next one comes."""

    def __init__(self, run: RunNow, reports: Reports, actions: Actions, price_per_hour: float | None) -> None:
        self.run, self.reports = run, reports
        self._actions, self._price = actions, price_per_hour
        self._messages = Messages(run)
        self._looking = threading.Lock()  # held while the run's state changes; read in threads, never on the loop
        self._came = asyncio.Condition()
        self._alarms: list[Alarm] = []
        self._analysed: set[str] = set()  # alarms and epochs that an analysis was made for
        self._tasks: set[asyncio.Task[Any]] = set()
        self._said: Status = {}
        self.error = ""  # why the run folder cannot be read at present

    async def status(self) -> Status:
        """Return what /gpu-status says now."""
        return await asyncio.to_thread(self._status)

    def _status(self) -> Status:
        """Return the state of the run; where a look hangs, what was said last without any reading."""
        if not self._looking.acquire(timeout=ANSWER_S):
            return without_answer(self._said, time.time())
        try:
            said = status(self.run, time.time(), self._alarms, self.reports.so_far, self._price)
        finally:
            self._looking.release()
        report = {"report_ready": self.reports.is_final, "report_error": self.reports.error}
        self._said = {**said, "is_behind": self.run.samples.is_behind, "error": self.error, **report}
        return self._said

    async def follow(self) -> None:
        """Look until cancelled. A disk that hangs holds up a thread, and nobody who watches."""
        while True:
            try:
                await self._once()
            except Exception as error:  # noqa: BLE001 - alarms and commands must go on; the page says what it was
                self.error = f"{type(error).__name__}: {error}"
            behind = self.run.samples.is_behind
            await asyncio.sleep(BEHIND_EVERY_S if behind else self._pause_s(time.time()))

    async def _once(self) -> None:
        came = await asyncio.to_thread(self._look)
        if not self.run.samples.is_behind:  # half of a run says nothing of since when
            now_s = time.time()
            self._alarms = alarms(self.run, now_s)
            self._actions.look(self.run, self.reports.so_far, now_s)
            self._report_if_due(now_s)
        most_s = BEHIND_TICK_S if self.run.samples.is_behind else TICK_AT_LEAST_S
        if came or time.monotonic() - self._messages.sent_s > most_s:
            self._messages.add(await self.status())
            async with self._came:
                self._came.notify_all()

    def _look(self) -> bool:
        try:
            with self._looking:
                came = self.run.look()
        except OSError as error:
            self.error = error.strerror or str(error)
            return False
        self.error = ""
        return came

    def _pause_s(self, now_s: float) -> float:
        """Return how long to wait: until the next row is due, for looking twice for one costs as much as looking."""
        last_s, interval_s = self.run.last_s, self.run.interval_s
        due_in_s = 0.0 if last_s is None else last_s + interval_s + WRITTEN_S - now_s
        return min(max(due_in_s, LOOK_EVERY_S / 2), 2 * LOOK_EVERY_S) if due_in_s > 0 else LOOK_EVERY_S

    def _report_if_due(self, now_s: float) -> None:
        """Have the report made once the recorder has ended, and an analysis where something is new."""
        if self.run.state(now_s) != "ended":
            self.reports.reopen()
            self._analyse_if_due()
        elif not self.run.is_recorded and self.reports.wants_final:
            self._begin(self.reports.page(is_final=True))

    def _analyse_if_due(self) -> None:
        training, xids = self.run.training, self.run.events.xid_lines
        epoch = training.epoch if training is not None else None
        urgent = {alarm.key for alarm in self._alarms if alarm.kind != "idle"} | ({f"xid-{xids}"} if xids else set())
        usual = {f"at-{self._messages.number // 60}" if epoch is None else f"epoch-{epoch}"}
        is_urgent = bool(urgent - self._analysed)
        # without a GPU there is something to be said once YOLO's callbacks report
        has_worked = any(gpu.level_pct is not None for gpu in self.run.gpus) or (not self.run.gpus and bool(training))
        is_new = is_urgent or (has_worked and bool(usual - self._analysed))
        if is_new and self.reports.is_due(urgent=is_urgent):
            self._begin(self._analyse(urgent | usual, urgent=is_urgent))

    async def _analyse(self, of: set[str], *, urgent: bool) -> None:
        if await self.reports.analyse(urgent=urgent):
            self._analysed |= of

    def _begin(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def messages(self, last_id: str) -> AsyncIterator[bytes]:
        """Yield messages for one who watches, from the one after `last_id` on where it is still known."""
        sent, was_behind = self._messages.number_of(last_id), self.run.samples.is_behind
        while True:
            new = self._messages.after(sent)
            caught_up = was_behind and not self.run.samples.is_behind
            if new is None or caught_up:
                was_behind, sent = self.run.samples.is_behind, self._messages.number
                yield await self._everything()
                continue
            for tick in new:
                sent = tick.number
                yield tick.message
            if not await self._another_after(sent):
                yield ALIVE

    async def _everything(self) -> bytes:
        said = await self.status()

        def make() -> bytes:
            if not self._looking.acquire(timeout=ANSWER_S):
                return ALIVE
            try:
                return self._messages.everything(said)
            finally:
                self._looking.release()

        return await asyncio.to_thread(make)

    async def _another_after(self, number: int) -> bool:
        """Wait for the tick after a number, not for ever; tell whether there is one."""
        try:
            async with asyncio.timeout(ALIVE_EVERY_S), self._came:
                await self._came.wait_for(lambda: self._messages.number > number)
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        """Wait for the commands that run, and give up the rest.

        It is called while the server ends, for a signal ends the process right after that.
        """
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._actions.finish()
        self.reports.close()
