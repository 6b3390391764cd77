"""Xid errors through NVML's event set: they need no kernel log, and no rights beyond those of any reading."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import pynvml

from gpu_report.gpu_words import gpu_words
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.gpu.devices import NvmlDevice, boards
from gpu_report.record.rate_cap import RateCap

WAIT_MS = 250  # how long one wait lasts: the end of a recording waits this long for the thread at most
BACK_OFF_S = 10.0  # a lost GPU makes every wait fail at once, which would spin

Emit = Callable[[str, Clocks, Mapping[str, object]], object]


class XidThread:
    """Listens for Xid events of the given GPUs until told to stop."""

    def __init__(self, devices: Sequence[NvmlDevice], emit: Emit) -> None:
        self._boards = boards(devices)
        self._emit = emit
        self._stop = threading.Event()
        self._refused = ""
        self._failing = False
        self._cap = RateCap()
        self._thread = threading.Thread(target=self._run, name="xid", daemon=True)
        self._thread.start()

    def finish(self, wait_s: float) -> bool:
        """Stop listening; False when a wait does not return."""
        self._stop.set()
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            events = self._register()
        except Exception as error:  # noqa: BLE001 - without events a recording goes on, and says so
            self._status("unavailable", str(error))
            return
        while events is not None and not self._stop.is_set():
            self._wait(events)
        if self._cap.dropped:
            self._emit("kernel_lines_dropped", clocks.now(), {"count": self._cap.dropped})

    def _register(self) -> object | None:
        """Register every GPU that can be; None when none could."""
        events = pynvml.nvmlEventSetCreate()
        refused: list[str] = []
        for index, handle in self._boards:
            try:
                pynvml.nvmlDeviceRegisterEvents(handle, pynvml.nvmlEventTypeXidCriticalError, events)
            except pynvml.NVMLError as error:
                refused.append(f"{gpu_words(index)}: {error}")
        listening = len(refused) < len(self._boards)
        self._refused = "; ".join(refused)
        self._status("listening" if listening else "unavailable", self._refused)
        return events if listening else None

    def _wait(self, events: object) -> None:
        until_s = time.monotonic() + WAIT_MS / 1000
        try:
            data = pynvml.nvmlEventSetWait_v2(events, WAIT_MS)
        except Exception as error:  # noqa: BLE001 - a binding of another version may raise anything
            timeout = getattr(error, "value", None) == pynvml.NVML_ERROR_TIMEOUT
            self._note("" if timeout else str(error))
            self._stop.wait(until_s - time.monotonic() if timeout else BACK_OFF_S)  # a driver may not wait at all
            return
        self._note("")
        at = clocks.now()
        if dropped := self._cap.new_window(at.mono_s):
            self._emit("kernel_lines_dropped", at, {"count": dropped})
        if self._cap.admit():
            self._emit("xid", at, {"gpu": self._index_of(data.device), "code": int(data.eventData)})
        else:
            self._stop.wait(until_s - time.monotonic())  # a storm of them is counted, not raced with

    def _note(self, failure: str) -> None:
        """Say once when waits begin to fail (a lost GPU makes all of them fail), and once when they work again."""
        if bool(failure) != self._failing:
            self._failing = bool(failure)
            self._status("unavailable" if failure else "listening", failure or self._refused)

    def _index_of(self, handle: object) -> int | None:
        try:
            return int(pynvml.nvmlDeviceGetIndex(handle))
        except pynvml.NVMLError:
            return None  # the GPU may be gone by now; the code is still worth having

    def _status(self, status: str, reason: str) -> None:
        self._emit("xid_events", clocks.now(), {"status": status, "reason": reason})
