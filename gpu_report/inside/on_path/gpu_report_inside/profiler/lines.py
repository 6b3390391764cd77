"""In which lines of Python the training stood while the profiler ran, to the microsecond.

A trace says which operator waited for the GPU, and not which line called it. With both clocks known, a note that falls
into such a wait says so. Notes are taken far more often than outside a window, in which a step is slower anyway.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from ..lines import report
from ..notes import QUICKLY, Dictionary, distances, packed
from ..threads import OURS, frames_of_threads

PERIOD_S = (
    0.005  # a line that takes a tenth of a step of 100 ms is met 16 times in eight; with 2 ms steps took 10 % longer
)
MOST = 12_000  # notes: of the longest window, whatever becomes of it


class WindowNotes:
    """Notes of where the thread that makes the window stands, from `start` until they are `told`."""

    def __init__(self) -> None:
        self._known = Dictionary()
        self._at: list[tuple[int, int]] = []
        self._ident = threading.get_ident()
        self._begun_s = 0.0
        self._over = False

    def start(self) -> None:
        """Begin to note, in a thread of our own."""
        self._begun_s = time.monotonic()
        threading.Thread(target=self._run, name=f"{OURS}-profile-lines", daemon=True).start()

    def stop(self) -> None:
        """Take no more notes."""
        self._over = True

    def told(self) -> dict[str, Any]:
        """Return what was noted: times in µs since `lines_mono_s`, each as the distance from the one before."""
        self._over = True
        at = list(self._at)  # the thread may still be taking its last note
        content = {
            **self._known.new(),
            "at_us": distances([moment for moment, _ in at]),
            "stood": [number for _, number in at],
        }
        return {"lines_mono_s": round(self._begun_s, 6), "lines": packed(content, QUICKLY)}

    def _run(self) -> None:
        try:
            while not self._over and len(self._at) < MOST:
                time.sleep(PERIOD_S)
                moment_us = round(1e6 * (time.monotonic() - self._begun_s))  # with the interpreter's lock, and so now
                self._at.append((moment_us, self._known.stack(frames_of_threads().get(self._ident))))
        except BaseException as error:  # noqa: BLE001 - also while the interpreter shuts down: nobody may hear of it
            report("profile lines", error)
