"""Predictions, which may come by the thousand, one a video frame: what follows closely is one run."""

from __future__ import annotations

import time
from typing import Any

from . import facts
from .lines import LINES, now
from .runs import CURRENT, ReportedRun

PAUSE_S = 5.0  # a prediction that begins later than this after the one before is another run
REPORT_EVERY_S = 10.0


class Prediction(ReportedRun):
    """Calls of predict, each at most `PAUSE_S` after the one before."""

    def __init__(self, predictor: Any) -> None:
        super().__init__("predict", predictor)
        self.calls = 0
        self._last = now()
        self._due_s = 0.0
        LINES.write("settings", facts.read(facts.PREDICTION, predictor))
        self.phase("predict")

    def follows(self) -> bool:
        """Say whether a call that begins now belongs to this run."""
        return self.calls == 0 or time.monotonic() - self._last[1] <= PAUSE_S

    def call_ends(self) -> None:
        """Count a call; that it ended is written now and then only."""
        self.calls += 1
        self._last = now()
        if self._last[1] >= self._due_s:
            self._due_s = self._last[1] + REPORT_EVERY_S
            LINES.write("calls", {"calls": self.calls}, self._last)

    def close(self) -> None:
        """End the run at the last call's end."""
        CURRENT.end("finished", self._last, calls=self.calls)
