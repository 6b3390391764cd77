"""One recording: a scheduler on absolute deadlines that writes a row of everything at each tick."""

import time
from dataclasses import dataclass

from gpu_report.record import clocks, signals
from gpu_report.record.clocks import Clocks
from gpu_report.record.command import Command
from gpu_report.record.cost import Cost
from gpu_report.record.gpu_watch import GpuWatch
from gpu_report.record.guard import Guard
from gpu_report.record.host import HostSampler
from gpu_report.record.journal import Journal, Say
from gpu_report.record.options import RecordOptions
from gpu_report.record.pressure import PressureSampler
from gpu_report.record.signals import Signal
from gpu_report.record.trainer import TrainerTree
from gpu_report.record.yolo_watch import YoloWatch, pids_to_follow

GAP_INTERVALS = 2.0  # a tick later than so many intervals is a gap in the record


@dataclass(frozen=True)
class End:
    """Why a recording ended: duration, signal or command."""

    ended_by: str
    signal_name: str | None = None


@dataclass(frozen=True)
class Surroundings:
    """What a session reads from and writes to."""

    journal: Journal
    gpus: GpuWatch
    yolo: YoloWatch
    command: Command | None


class Session:
    """Everything that is sampled, from the first tick to the last."""

    def __init__(self, options: RecordOptions, surroundings: Surroundings, say: Say) -> None:
        self._options = options
        self._journal = surroundings.journal
        self._gpus = surroundings.gpus
        self._yolo = surroundings.yolo
        self._command = surroundings.command
        self._say = say
        self._host = HostSampler()
        self._pressure = PressureSampler()
        self._trainer = TrainerTree()
        self._before: Clocks | None = None
        self._guard = Guard(say)
        self._gpus.owners.learn(self._command_pid, None)
        self.cost = Cost(options.interval_s)

    def run(self) -> End:
        """Tick until the duration is over, the command ends, or a signal comes."""
        interval_s = self._options.interval_s
        began_s = time.monotonic()
        ends_s = None if self._options.duration_s is None else began_s + self._options.duration_s
        number = 0
        while True:
            deadline_s = began_s + number * interval_s
            end = self._sleep(deadline_s if ends_s is None else min(deadline_s, ends_s))
            if end is not None:
                return end
            if ends_s is not None and time.monotonic() >= ends_s and number > 0:
                self.tick(deadline_s, last=True)
                return End("duration")
            self.tick(deadline_s)
            number = self._next(number, began_s)

    def tick(self, deadline_s: float, *, last: bool = False) -> None:
        """Take one sample of everything; an exception of ours is said once and costs this tick only.

        The `last` tick also reads what is else read seldom (the energy counter, whose difference is the run's energy).
        """
        began = clocks.now()
        sample_gpus = self._sample_gpus_last if last else self._sample_gpus
        for sampler in (self._check_clocks, self._sample_host, sample_gpus, self._watch_yolo):
            self._guard.call(sampler, began)
        self._journal.settle(began)
        self._before = began
        self.cost.tick(began.mono_s - deadline_s, time.monotonic() - began.mono_s)

    @property
    def errors(self) -> int:
        """Return how many errors were met while recording."""
        return self._journal.errors + self._guard.errors

    def _next(self, number: int, began_s: float) -> int:
        """Return the next point of the grid that is not over yet: late ticks are skipped, never made up for."""
        due = int((time.monotonic() - began_s) / self._options.interval_s) + 1
        following = max(number + 1, due)
        self.cost.skipped(following - number - 1)
        return following

    def _sleep(self, until_s: float) -> End | None:
        while (arrived := signals.wait_until(until_s)) is not None:
            end = self._handle(arrived)
            if end is not None:
                return end
        return None

    def _handle(self, arrived: Signal) -> End | None:
        if self._command is not None:
            self._command.handle(arrived)
            return End("command") if self._command.poll() else None
        return End("signal", arrived.name) if arrived.number in signals.STOPPING else None

    def _check_clocks(self, at: Clocks) -> None:
        before = self._before
        if before is None:
            return
        slept_s, step_s = clocks.suspended_s(before, at), clocks.step_s(before, at)
        late_s = at.mono_s - before.mono_s - self._options.interval_s
        if slept_s:
            self._journal.event("suspend", at, {"seconds": round(slept_s, 3)})
        if step_s:
            self._journal.event("clock_step", at, {"seconds": round(step_s, 3)})
        if late_s > GAP_INTERVALS * self._options.interval_s:
            reason = "the recorder did not get to run: it was stopped, or the machine or its disk was stuck"
            self._journal.event("gap", at, {"seconds": round(at.mono_s - before.mono_s, 3), "reason": reason})

    def _sample_host(self, at: Clocks) -> None:
        trainer = self._trainer.sample(at.mono_s, self._command_pid, self._on_gpus)
        self._journal.host(at, {**self._host.sample(), **self._pressure.sample(at.mono_s), **trainer})

    def _sample_gpus(self, at: Clocks) -> None:
        self._gpus.tick(at, self._journal, self._say)

    def _sample_gpus_last(self, at: Clocks) -> None:
        self._gpus.tick(at, self._journal, self._say, last=True)

    def _watch_yolo(self, at: Clocks) -> None:
        pid = self._command_pid
        if self._yolo.tick(at, lambda: pids_to_follow(pid, self._on_gpus()), self._journal.event):
            self._journal.describe({"yolo": self._yolo.as_json()})
            self._gpus.owners.learn(self._command_pid, self._yolo.path)

    @property
    def _command_pid(self) -> int | None:
        return None if self._command is None else self._command.pid

    def _on_gpus(self) -> set[int]:
        return {pid for pids in self._gpus.pids.values() for pid in pids}
