"""At each tick: whether it is time to have the training profile its next steps."""

import queue
import threading
from collections.abc import Mapping
from pathlib import Path

from gpu_report.record.clocks import Clocks
from gpu_report.record.profile_plan import DROP, ProfilePlan, ask
from gpu_report.record.py_spy.utilisation_fall import UtilisationFall

DROP_S = 10.0  # as long as a drop is that the analysis reports
MOST_DROPS = 3  # windows of drops: each holds the training up for seconds


class ProfileRequests:
    """Asks at the moment of the plan, and in drops. A tick costs microseconds; the writing is a thread's."""

    def __init__(self, folder: Path, plan: ProfilePlan, start: Clocks) -> None:
        self._folder, self._plan = folder, plan
        self._due_s = None if plan.after_s is None else start.mono_s + plan.after_s
        self._falls: dict[int, UtilisationFall] = {}
        self._drops: set[tuple[int, float]] = set()
        self._asked_in_drops = 0
        self._asked: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._write, name="profile-requests", daemon=True).start()

    def tick(self, at: Clocks, util_pct: Mapping[int, float | None]) -> None:
        """Take in the reading of each GPU (None: not known), and ask where it is time."""
        if self._due_s is not None and at.mono_s >= self._due_s:
            self._due_s = None
            self._asked.put("time")
        new = [gpu for gpu, pct in util_pct.items() if self._plan.at_drops and self._is_new_drop(gpu, at.mono_s, pct)]
        if new and self._asked_in_drops < MOST_DROPS:  # several GPUs may fall in one
            self._asked_in_drops += 1
            self._asked.put(DROP)

    def _is_new_drop(self, gpu: int, at_s: float, util_pct: float | None) -> bool:
        since_s = self._falls.setdefault(gpu, UtilisationFall()).take(at_s, util_pct)
        if since_s is None or at_s - since_s < DROP_S:
            return False
        is_new = (gpu, since_s) not in self._drops
        self._drops.add((gpu, since_s))
        return is_new

    def _write(self) -> None:
        while True:
            reason = self._asked.get()
            try:
                ask(self._folder, self._plan.steps, full=self._plan.full, reason=reason)
            except OSError:
                continue  # a full disk, a folder that is gone: there will be no window
