"""Whose process a kernel event names: a training that came to the end of another epoch afterwards did not have it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpu_report.analyse.signals import thresholds as th
from gpu_report.model import InsideRun, KernelEvent, Run

NOT_OURS = "not the training, which continued"
# What these say of a process ends its work. One that hung, or emptied a cache, goes on, and may be one of the loader's.
ENDS_ITS_PROCESS = frozenset({"xid", "oom", "segfault"})


@dataclass(frozen=True)
class _TrainingProcess:
    """A process of a training: its pid, from when to when it reported, and when its last whole epoch had trained."""

    pid: int
    start_s: float
    end_s: float
    last_s: float


def mark_foreign_kernel_events(run: Run) -> Run:
    """Return a run whose kernel events say where they were another program's: no alarm, and nothing to do about.

    Pids alone do not tell: in a container the kernel counts others.
    """
    trainings = [_training_processes(process) for process in run.inside if process.task == "train" and process.phases]
    events = tuple(_as_foreign(event) if _is_foreign(event, trainings) else event for event in run.kernel.events)
    return replace(run, kernel=replace(run.kernel, events=events))


def _training_processes(process: InsideRun) -> _TrainingProcess:
    ends = (epoch.end_t_s for epoch in process.epochs if epoch.end_t_s is not None)
    last_s = max(ends, default=float("-inf"))
    return _TrainingProcess(process.pid, process.phases[0].start_t_s, process.phases[-1].end_t_s, last_s)


def _is_foreign(event: KernelEvent, trainings: Sequence[_TrainingProcess]) -> bool:
    """Tell whether the process of an event was none of these: each that was there by then went on."""
    # what is critical concerns the whole GPU, but for a kill for want of memory, which ends its victim alone
    concerns_all = event.severity == "critical" and event.kind != "oom"
    if event.kind not in ENDS_ITS_PROCESS or concerns_all or event.pid in {None, *(t.pid for t in trainings)}:
        return False
    # one that had ended shortly before may have had it: the log may be late, and so may its last word
    there = [t for t in trainings if t.start_s <= event.t_s <= t.end_s + th.OOM_BEFORE_S]
    return any(t.last_s > event.t_s for t in trainings) and all(t.last_s > event.t_s for t in there)


def _as_foreign(event: KernelEvent) -> KernelEvent:
    names_it = event.kind != "xid" and event.process is not None
    whose = NOT_OURS if names_it else f"{event.who('a process')}, {NOT_OURS}"
    return replace(
        event,
        severity="warning" if event.severity == "critical" else event.severity,
        meaning=f"{event.meaning}; it was {whose}",
        action="",
        of_another=True,
    )
