"""What is counted at each batch of a training epoch: two clock reads and a few additions."""

from __future__ import annotations

import time

REPORT_EVERY_S = 10.0  # running totals are written so often, for epochs that never end


class Batches:
    """How long the trainer waited for its loader in one epoch. All in seconds of the monotonic clock.

    A wait is the time from the end of a batch (or the beginning of the epoch) to the beginning of the next one.
    `due` is when `report` wants to be called next, -inf for after the first batch.
    """

    __slots__ = ("count", "due", "first", "longest", "mark", "wait")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin an epoch."""
        self.mark = time.monotonic()
        self.count = 0
        self.wait = self.longest = self.first = 0.0
        self.due = float("-inf")

    def totals(self) -> dict[str, float]:
        """Return the epoch's totals so far."""
        return {
            "batches": self.count,
            "data_wait_s": round(self.wait, 6),
            "first_wait_s": round(self.first, 6),
            "longest_wait_s": round(self.longest, 6),
        }
