"""The threads that talk to NVML, so that a call that never returns hangs nothing else.

A driver in trouble may keep a call for minutes or for ever, and a Python signal handler does not run meanwhile. The
scheduler therefore only talks to these threads through queues and stops waiting after a while. One thread reads all
GPUs, which is cheapest; when one GPU's call does not return, that thread is left to it and another reads the rest.
"""

import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import pynvml

from gpu_report.errors import UsageError
from gpu_report.record.gpu.devices import Opened, open_nvml
from gpu_report.record.gpu.reader import GpuReader, GpuReading


@dataclass(frozen=True)
class OpenFailed:
    """NVML could not be opened: the error, with NVML's code where it has one."""

    error: Exception
    code: int | None


@dataclass(frozen=True)
class AllRead:
    """Every GPU of a thread has been read for this request."""


class OpenThread:
    """Opens NVML for the wanted GPUs, once."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = tuple(wanted)
        self._answers: queue.SimpleQueue[Opened | OpenFailed] = queue.SimpleQueue()
        self._answer: Opened | OpenFailed | None = None
        self.asked_s = time.monotonic()
        threading.Thread(target=self._run, name="nvml-open", daemon=True).start()

    def answer(self, wait_s: float) -> Opened | OpenFailed | None:
        """Return what came of it, None when it is still not known after `wait_s`."""
        if self._answer is None:
            try:
                self._answer = self._answers.get(timeout=wait_s) if wait_s > 0 else self._answers.get_nowait()
            except queue.Empty:
                return None
        return self._answer

    def _run(self) -> None:
        try:
            self._answers.put(open_nvml(self._wanted))
        except UsageError as error:
            self._answers.put(OpenFailed(error, None))
        except Exception as error:  # noqa: BLE001 - whatever a broken driver does, the scheduler must hear of it
            self._answers.put(OpenFailed(error, getattr(error, "value", None)))


class ReadThread:
    """Reads some GPUs at each request; `busy` while a request is not answered."""

    def __init__(self, readers: Sequence[GpuReader]) -> None:
        self._readers = list(readers)
        self._current: GpuReader | None = None
        self._lock = threading.Lock()  # held for moments only, never during a call of the driver
        self._requests: queue.SimpleQueue[Literal["due", "all", "stop"]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[GpuReading | AllRead] = queue.SimpleQueue()
        self.busy = False
        self.asked_s = 0.0
        self._thread = threading.Thread(target=self._run, name="nvml", daemon=True)
        self._thread.start()

    @property
    def gpus(self) -> tuple[int, ...]:
        """Return the device indices that this thread reads."""
        return tuple(reader.gpu for reader in self._readers)

    def ask(self, request: Literal["due", "all"] = "due") -> None:
        """Request one reading of every GPU, of `all` even what is not due; only when not busy."""
        self.busy = True
        self.asked_s = time.monotonic()
        self._requests.put(request)

    def collect(self, until_s: float) -> list[GpuReading]:
        """Return the readings so far, waiting until a moment of the monotonic clock for the last one of a request."""
        readings: list[GpuReading] = []
        while self.busy:
            try:
                answer = self._answers.get(timeout=max(0.0, until_s - time.monotonic()))
            except queue.Empty:
                break
            if isinstance(answer, AllRead):
                self.busy = False
            else:
                readings.append(answer)
        return readings

    def give_up_others(self) -> list[GpuReader]:
        """Leave this thread the one GPU whose call does not return; return the readers of all its others."""
        with self._lock:
            stuck = self._current
            if stuck is None:
                return []
            others = [reader for reader in self._readers if reader is not stuck]
            self._readers = [stuck]
            return others

    def finish(self, wait_s: float) -> bool:
        """End the thread; False when a call does not return and the thread must be abandoned."""
        self._requests.put("stop")
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (request := self._requests.get()) != "stop":
            for reader in tuple(self._readers):
                if self._enter(reader):
                    self._answers.put(reader.read(everything=request == "all"))
            self._leave()
            self._answers.put(AllRead())

    def _enter(self, reader: GpuReader) -> bool:
        """Note which GPU is being read; False when it has been given to another thread meanwhile."""
        with self._lock:
            mine = reader in self._readers
            self._current = reader if mine else None
            return mine

    def _leave(self) -> None:
        with self._lock:
            self._current = None


def shut_down(readers: Sequence[GpuReader], wait_s: float) -> bool:
    """Give back what NVML holds, while no other thread is in a call; False when that does not return."""
    thread = threading.Thread(target=_shut_down, args=(tuple(readers),), name="nvml-close", daemon=True)
    thread.start()
    thread.join(wait_s)
    return not thread.is_alive()


def _shut_down(readers: Sequence[GpuReader]) -> None:
    try:
        for reader in readers:
            reader.free()
        pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return  # the process ends next, and the driver lets go of everything then
