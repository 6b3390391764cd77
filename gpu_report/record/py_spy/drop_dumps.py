"""At each tick: whether a GPU's utilisation has fallen, so that it is worth asking where its training stands."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from gpu_report.record.clocks import Clocks
from gpu_report.record.py_spy.dump_thread import DumpThread, Event
from gpu_report.record.py_spy.processes import Candidates
from gpu_report.record.py_spy.utilisation_fall import DumpTimes

FINISH_S = 1.5  # how long the end of a recording waits for a dump that it has killed


class DropDumps:
    """Has the stacks of a training dumped while its GPU has nothing to do; a tick costs microseconds."""

    def __init__(self, folder: Path, event: Event) -> None:
        """Write into a run folder, and failures as events."""
        self._thread = DumpThread(folder, event)
        self._times: dict[int, DumpTimes] = {}

    def tick(
        self,
        at: Clocks,
        util_pct: Mapping[int, float | None],
        candidates_of: Callable[[Collection[int]], Candidates],
    ) -> None:
        """Take in the reading of each GPU (None: not known); of those where it is time, ask for their processes."""
        due: dict[int, float] = {}
        for gpu, reading in util_pct.items():
            times = self._times.setdefault(gpu, DumpTimes())
            lasts_s = times.due_in(at.mono_s, reading)
            if lasts_s is not None:
                due[gpu] = lasts_s
        if not due or not self._thread.may(max(due.values())):
            return
        candidates = candidates_of(due)
        if candidates.mains:
            self._thread.ask(candidates)
            for gpu in due:
                self._times[gpu].done(at.mono_s)

    def finish(self) -> None:
        """End a dump under way, and close what was written."""
        self._thread.finish(FINISH_S)
