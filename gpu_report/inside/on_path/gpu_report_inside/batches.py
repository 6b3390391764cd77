"""What is noted at each batch of a training epoch: one clock read at its beginning and one at its end."""

from __future__ import annotations

import time

# How far the epoch is, is written so often at first, which is where most causes are looked for ...
PROGRESS_EVERY_S = 3.0
PROGRESS_SHARE = 1 / 1800  # ... and in a long training ever more seldom: every 48 s after a day, 7,500 lines in all
TOTALS_EVERY_S = 10.0  # likewise the epoch's totals, for epochs that never end


class Batches:
    """How long the trainer waited for its loader in one epoch. All in seconds of the monotonic clock.

    A wait is the time from the end of a batch (or the beginning of the epoch) with the user's callbacks of it, to the
    beginning of the next one.
    `starts` and `ends` are notes since the last `totals`; `due` is when these are wanted next, -inf for after the first
    batch. The two lists stay the same ones for ever: the callbacks know them.
    """

    __slots__ = ("count", "due", "ends", "first", "longest", "mark", "starts", "wait")

    def __init__(self) -> None:
        self.starts: list[float] = []
        self.ends: list[float] = []
        self.begin()

    def begin(self) -> None:
        """Begin an epoch."""
        self.starts.clear()
        self.ends.clear()
        self.mark = time.monotonic()
        self.count = 0
        self.wait = self.longest = self.first = 0.0
        self.due = float("-inf")

    def end(self) -> None:
        """End an epoch's training: a batch that was begun is done, for `time=` leaves the loop before its callback."""
        if len(self.starts) > len(self.ends):
            self.ends.append(time.monotonic())

    def totals(self) -> dict[str, float]:
        """Return the epoch's totals so far."""
        self._fold()
        return {
            "batches": self.count,
            "data_wait_s": round(self.wait, 6),
            "first_wait_s": round(self.first, 6),
            "longest_wait_s": round(self.longest, 6),
        }

    def _fold(self) -> None:
        """Add the notes up; a batch that was begun and never ended (out of memory) was waited for, too."""
        for number, start in enumerate(self.starts):
            waited = start - self.mark
            self.wait += waited
            self.longest = max(self.longest, waited)
            if self.count == 0:
                self.first = waited
            if number < len(self.ends):
                self.mark = self.ends[number]
                self.count += 1
        self.starts.clear()
        self.ends.clear()
