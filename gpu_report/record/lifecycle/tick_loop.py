"""One recording: a scheduler on absolute deadlines that writes a row of everything at each tick."""

import time
from collections.abc import Collection
from dataclasses import dataclass

from gpu_report.record import clocks
from gpu_report.record.clocks import Clocks
from gpu_report.record.cost import Cost
from gpu_report.record.gpu.sampler import GpuWatch
from gpu_report.record.guard import ExceptionGuard
from gpu_report.record.host import cgroup
from gpu_report.record.host.cpu_clock import CpuClock
from gpu_report.record.host.cpu_memory import HostSampler
from gpu_report.record.host.oom_counters import OomWatch
from gpu_report.record.host.other_programs import Machine, OtherPrograms
from gpu_report.record.host.process_waits import ProcessWaits
from gpu_report.record.host.psi_disk import PressureSampler
from gpu_report.record.host.trainer_processes import TrainerTree
from gpu_report.record.lifecycle.stop_request import RecordingEnd, StopRequest
from gpu_report.record.options import RecordOptions
from gpu_report.record.profile.packing import TracePacker
from gpu_report.record.profile.requests import ProfileRequests
from gpu_report.record.py_spy.drop_dumps import DropDumps
from gpu_report.record.py_spy.processes import Candidates
from gpu_report.record.run_folder_writer import Journal, Say
from gpu_report.record.yolo.watch import Followed, YoloWatch, pids_to_follow

GAP_INTERVALS = 2.0  # a tick later than so many intervals is a gap in the record
LAST_PROCESS_S = 2.0  # workers of a loader see within a second that their parent is gone
LOOK_S = 0.05  # between two looks: so much later at most ends a command that leaves nothing behind
PACK_LIMIT_S = 10.0  # at the end, for traces: one of 60 MB takes 1.5 s
SHORTEST_SHARE_S = 0.1  # a share of CPU time over less than this is a matter of the kernel's 10 ms ticks


@dataclass(frozen=True)
class SessionSources:
    """What a session reads from and writes to."""

    journal: Journal
    gpus: GpuWatch
    yolo: YoloWatch
    command_pid: int | None


class Session:
    """Everything that is sampled, from the first tick to the last."""

    def __init__(self, options: RecordOptions, surroundings: SessionSources, say: Say) -> None:
        self._options = options
        self._journal = surroundings.journal
        self._gpus = surroundings.gpus
        self._yolo = surroundings.yolo
        self._command_pid = surroundings.command_pid
        self._say = say
        self._host = HostSampler()
        self._pressure = PressureSampler()
        self._cpu_clock = CpuClock()
        self._trainer = TrainerTree()
        self._waits = ProcessWaits(self._journal.wait)
        self._others = OtherPrograms(self._journal.other_program)
        self._oom = OomWatch(own_group=None if self._command_pid is None else cgroup.group_of("self"))
        self._dumps = DropDumps(self._journal.folder, self._journal.event) if options.stacks else None
        self._traces = TracePacker(self._journal.folder, self._journal.event)
        self._requests: ProfileRequests | None = None
        if options.profile is not None:
            self._requests = ProfileRequests(self._journal.folder, options.profile, clocks.now())
        self._before: Clocks | None = None
        self._guard = ExceptionGuard(say)
        self._gpus.owners.learn(self._command_pid, None)
        self.cost = Cost(options.interval_s)

    def run(self, ending: StopRequest) -> RecordingEnd:
        """Tick until the duration is over or the end is reported; the last tick is made either way."""
        began_s = time.monotonic()
        ends_s = float("inf") if self._options.duration_s is None else began_s + self._options.duration_s
        number = 0
        while True:
            deadline_s = began_s + number * self._options.interval_s
            end = ending.wait_until(min(deadline_s, ends_s))
            if end is None and time.monotonic() >= ends_s and number > 0:
                end = RecordingEnd("duration")
            if end is not None:
                self._yolo.search_now()
                self.tick(min(deadline_s, time.monotonic()), last=True)
                if self._dumps is not None:
                    self._dumps.finish()
                self._traces.finish(PACK_LIMIT_S)
                return end
            self.tick(deadline_s)
            number = self._next(number, began_s)

    def tick(self, deadline_s: float, *, last: bool = False) -> None:
        """Take one sample of everything; an exception of ours is said once and costs this tick only.

        The `last` tick also reads what is else read seldom (the energy counter, whose difference is the run's energy).
        """
        began = clocks.now()
        sample_gpus = self._sample_gpus_last if last else self._sample_gpus
        watch_oom = self._watch_oom_last if last else self._watch_oom
        look = self._look_at_waits_last if last else self._look_at_waits
        samplers = (self._check_clocks, self._sample_host, look, watch_oom, sample_gpus, self._watch_yolo)
        afterwards = (self._look_at_others, self._dump_stacks, self._ask_for_profiles)
        for sampler in (*samplers, *(() if last else afterwards)):
            self._guard.call(sampler, began)
        self._journal.settle(began)
        self._before = began
        self.cost.tick(began.mono_s - deadline_s, time.monotonic() - began.mono_s)

    @property
    def oom_kills(self) -> dict[str, int | None]:
        """Return run.json's `oom_kills`: how many the kernel killed for memory, None where nobody could count."""
        return self._oom.kills

    def left_behind(self) -> dict[str, list[int]] | None:
        """Return the fields of a `left_behind` event: processes that outlive the command, None where all end in time.

        What a command started ends a moment after it: so long is waited for the last of them, and no longer.
        """
        until_s = time.monotonic() + LAST_PROCESS_S
        while (running := self._trainer.still_running()) and time.monotonic() < until_s:
            time.sleep(LOOK_S)
        on_gpu = {gpu: running.intersection(pids) for gpu, pids in self._gpus.pids.items()}
        first = frozenset().union(*on_gpu.values())  # the ranks: their workers end with them
        pids = [*sorted(first), *sorted(running - first)]
        return {"pids": pids, "gpus": sorted(gpu for gpu, pids in on_gpu.items() if pids)} if running else None

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
        if self._before is not None and at.mono_s - self._before.mono_s < SHORTEST_SHARE_S < self._options.interval_s:
            return  # the last tick right after a regular one
        trainer = self._trainer.sample(at.mono_s, self._command_pid, self._on_gpus)
        clock = self._cpu_clock.sample(at.mono_s, self._trainer.busy_cores)
        machine = {**self._host.sample(), **self._pressure.sample(at.mono_s), **clock}
        self._journal.host(at, {**machine, **trainer})

    def _look_at_waits(self, at: Clocks) -> None:
        self._waits.look(at, self._trainer.looks, self._trainer.mains)

    def _look_at_waits_last(self, at: Clocks) -> None:
        self._waits.look(at, self._trainer.looks, self._trainer.mains, last=True)

    def _look_at_others(self, at: Clocks) -> None:
        """Note who else uses the CPU; that of the training is what it started, and whoever it is on a GPU for it."""
        mains = self._trainer.mains - self._gpus.others
        roots = mains if self._command_pid is None else mains | {self._command_pid}
        machine = Machine(self._host.cores, self._host.busy_pct, self._trainer.cpu_pct)
        self._others.look(at, machine, roots if mains else (), mains | self._trainer.workers)

    def _watch_oom(self, at: Clocks) -> None:
        self._oom.look(at, self._trainer.cgroup, self._journal.event)

    def _watch_oom_last(self, at: Clocks) -> None:
        self._oom.look(at, self._trainer.cgroup, self._journal.event, last=True)

    def _sample_gpus(self, at: Clocks) -> None:
        self._gpus.tick(at, self._journal, self._say)

    def _sample_gpus_last(self, at: Clocks) -> None:
        self._gpus.tick(at, self._journal, self._say, last=True)

    def _watch_yolo(self, at: Clocks) -> None:
        if self._yolo.tick(at, self._may_train, self._journal.event):
            self._journal.describe({"yolo": self._yolo.as_json()})
            self._gpus.owners.learn(self._command_pid, self._yolo.path)
        for trace in self._yolo.take_traces():
            self._traces.pack(trace)

    def _dump_stacks(self, at: Clocks) -> None:
        if self._dumps is not None:
            self._dumps.tick(at, self._gpus.util_pct, self._candidates)

    def _ask_for_profiles(self, at: Clocks) -> None:
        if self._requests is not None:
            self._requests.tick(at, self._gpus.util_pct)

    def _candidates(self, gpus: Collection[int]) -> Candidates:
        """Return the processes of the training, for GPUs of which one has nothing to do."""
        on_gpus = {pid for gpu in gpus for pid in self._gpus.pids.get(gpu, ())}
        ours = self._trainer.mains - self._gpus.others
        return Candidates(ours, self._trainer.workers, frozenset(on_gpus - self._gpus.others))

    def _may_train(self) -> Followed:
        return pids_to_follow(self._command_pid, self._on_gpus(), self._gpus.others)

    def _on_gpus(self) -> set[int]:
        return {pid for pids in self._gpus.pids.values() for pid in pids}
