"""The thread that runs py-spy: a dump that hangs, a disk that hangs and a refusal hold up nothing else."""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from gpu_report import schema
from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.py_spy.dump_file import DumpFile
from gpu_report.record.py_spy.dump_json import Frames, main_thread_frames
from gpu_report.record.py_spy.processes import Candidates, Target, Targets
from gpu_report.record.py_spy.program import DumpFailed, PySpy, find_program

# Of py-spy's time: so much at once, and then so much of each second (0.1 % of a core, as all that is repeated here).
BUDGET_S = 10.0
BUDGET_SHARE = 0.001
# Of what is left of it, for drops that have lasted so long: shorter ones, such as a validation, may come every minute.
LONG_DROP_S = 10.0
RESERVED_SHARE = 0.5
FAILURES_AT_MOST = 3  # in a row, of a process that is then left alone

Event = Callable[[str, Clocks, Mapping[str, object]], object]


class DumpThread:
    """Dumps the stacks of the processes that it is given, where py-spy is installed."""

    def __init__(self, folder: Path, event: Event) -> None:
        """Write into a run folder; what fails is an event, once. The thread begins with the first `ask`."""
        self._event = event
        self._targets = Targets(folder / schema.STACKS_DIR)
        self._file = DumpFile(folder)
        self._asked: queue.SimpleQueue[Candidates | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._py_spy: PySpy | None = None
        self._failures: dict[int, int] = {}
        self._began_s = time.monotonic()
        self._spent_s = 0.0
        self._said: set[str] = set()
        self._is_ended = False
        self.is_busy = False

    def may(self, drop_s: float) -> bool:
        """Tell whether a dump may be asked for in a drop that has lasted so long."""
        may_spend_s = BUDGET_S + BUDGET_SHARE * (time.monotonic() - self._began_s)
        if drop_s < LONG_DROP_S:
            may_spend_s *= 1 - RESERVED_SHARE
        return not self.is_busy and not self._is_ended and self._spent_s < may_spend_s

    def ask(self, candidates: Candidates) -> None:
        """Have processes dumped now."""
        self.is_busy = True
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="py-spy", daemon=True)
            self._thread.start()
        self._asked.put(candidates)

    def finish(self, limit_s: float) -> None:
        """End it, and a dump under way; one that hangs in the kernel is left behind."""
        self._is_ended = True
        if self._thread is None:
            return
        self._asked.put(None)
        if self._py_spy is not None:
            self._py_spy.kill()
        self._thread.join(limit_s)

    def _run(self) -> None:
        program = find_program()
        if program is None:
            self._is_ended = True  # it is not installed: `gpu-report doctor` says so
            return
        self._py_spy = PySpy(program)
        while (candidates := self._asked.get()) is not None and not self._is_ended:
            began_s = time.monotonic()
            try:
                self._dump_all(self._py_spy, candidates)
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not end a recording, nor be silent
                self._say("dump_failed", {"pid": None, "reason": f"{type(error).__name__}: {error}"})
            self._spent_s += time.monotonic() - began_s
            self.is_busy = False
        self._file.close()

    def _dump_all(self, py_spy: PySpy, candidates: Candidates) -> None:
        for target in self._targets.choose(candidates):
            if self._is_ended:
                return
            if self._failures.get(target.pid, 0) < FAILURES_AT_MOST:
                self._dump(py_spy, target)

    def _dump(self, py_spy: PySpy, target: Target) -> None:
        at = clocks.now()
        try:
            frames = _frames(py_spy, target.pid)
        except DumpFailed as failed:
            self._failures[target.pid] = self._failures.get(target.pid, 0) + 1
            if not self._is_ended and Path("/proc", str(target.pid)).exists():  # a worker may end meanwhile
                self._say("dump_failed", {"pid": target.pid, "reason": str(failed)})
            return
        self._failures.pop(target.pid, None)
        self._file.write(at, target, frames)
        if self._file.lost:
            name = f"{schema.STACKS_DIR}/{schema.DUMPS_JSONL}"
            self._say("rows_lost", {"file": name, "rows": self._file.lost, "reason": self._file.lost_reason})

    def _say(self, kind: str, fields: Mapping[str, object]) -> None:
        """Write an event of a kind once: what fails here once fails again."""
        if kind not in self._said:
            self._said.add(kind)
            self._event(kind, clocks.now(), fields)


def _frames(py_spy: PySpy, pid: int) -> Frames:
    """Return where a process is; DumpFailed. Of a training on the CPU 4 % of dumps failed, for it ran meanwhile."""
    try:
        return main_thread_frames(py_spy.dump(pid), pid)
    except DumpFailed:
        return main_thread_frames(py_spy.dump(pid), pid)
