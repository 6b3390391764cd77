"""Whether the kernel killed a training for want of host memory: by its log, its counters, and how full memory was."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse.causes.confidence import NAMED, PRESENT, STRONG, SUPPORTED
from gpu_report.analyse.causes.thresholds import MEMORY_PRESSURE_PCT
from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.signals.host.kernel_events import kernel_events_near
from gpu_report.analyse.signals.thresholds import KERNEL_AFTER_S, OOM_BEFORE_S
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.model import Evidence, KernelEvent, NearbyKernelEvent, OomReport
from gpu_report.wording import MIB_PER_GIB

KILLED = "SIGKILL"
# What counted a kill, and how far that is to be trusted: the trainer's own cgroup, or the whole machine.
COUNTED = {
    "cgroup": (
        STRONG,
        "the counter of the trainer's cgroup says that the kernel killed a process of it for want of memory",
    ),
    "machine": (PRESENT, "the kernel killed a process on this machine for want of memory just then"),
}

SAME_LIMIT_MIB = 1.0  # the recorder and the kernel tell the same limit to a page or so; another cgroup has another


@dataclass(frozen=True)
class OomKill:
    """That the kernel killed for want of memory: why that is so, how sure it is (0 to 1), and its log."""

    why: str
    confidence: float
    kernel: tuple[NearbyKernelEvent, ...] = ()

    @property
    def victims(self) -> dict[int, KernelEvent]:
        """Return the processes that were killed, by their pids in the log."""
        return {near.event.pid: near.event for near in reversed(self.kernel) if near.event.pid is not None}

    @property
    def victim(self) -> KernelEvent | None:
        """Return the process whose kill it was, None where no log names any."""
        return self.kernel[0].event if self.kernel else None

    @property
    def report(self) -> OomReport | None:
        """Return what the kernel reported of that kill."""
        return self.victim.oom if self.victim else None

    @property
    def at_limit(self) -> bool:
        """Tell whether it was the limit of a container or service: the log tells it from the machine's end."""
        return any(near.event.at_limit for near in self.kernel)

    @property
    def ran_out(self) -> str:
        """Return which memory there was no more of, and how much there was where the kernel says so."""
        if not self.at_limit:
            return "host memory ran out"
        limit_mib = self.report and self.report.limit_mib
        how_much = f" ({limit_mib / MIB_PER_GIB:.1f} GiB)" if limit_mib else ""
        return f"its container's memory limit{how_much} was reached"


def oom_kill(context: Context, end_s: float, signal: str | None, pids: frozenset[int]) -> OomKill | None:
    """Return the kill that ended a training, None where nothing recorded speaks for one.

    A log that names one of its `pids` needs no more. In a container the log has other pids, and the counters have none:
    those are taken for it where SIGKILL ended the training just then, or where they count for its own cgroup alone.
    """
    logged = _logged(context, end_s)
    ours = [near for near in logged if near.event.pid in pids]
    if ours:
        return OomKill(f"the kernel log names it: {ours[0].event.meaning}", NAMED, tuple(ours))
    if logged and signal == KILLED:
        return OomKill(f"the kernel log says just then: {logged[0].event.meaning}", SUPPORTED, logged)
    counted = _counted(context, end_s) - (set() if signal == KILLED else {"machine"})
    best = max((COUNTED[where] for where in counted), default=None)
    return None if best is None else OomKill(best[1], best[0])


def was_ruled_out(context: Context) -> bool:
    """Tell whether it is known that the OOM killer killed nobody: its log was read, or its count stood still."""
    run = context.run
    return run.kernel.status == "read" or run.recording.oom_kills.get("machine") == 0


def host_memory(context: Context, end_s: float, when: str = " in the last minute") -> tuple[Evidence, ...]:
    """Return how full the host's memory, and what the trainer's cgroup may use of it, was in the last minute."""
    return evidence(
        (f"host memory in use{when}, at most", _share_pct(context, end_s), "%"),
        (f"memory limit in use{when} (cgroup, page cache included)", _cgroup_pct(context, end_s), "%"),
    )


def memory_was_full(context: Context, end_s: float) -> bool:
    """Tell whether the machine's memory, or the cgroup's, was used up in the last minute, as far as is known.

    A cgroup's holds its page cache, too, and is often full: it was used up where processes waited for memory.
    """
    machine, group = _share_pct(context, end_s) or 0.0, _cgroup_pct(context, end_s) or 0.0
    waited = max(_last(context, "cgroup_memory_pressure_pct", end_s), default=0.0) >= MEMORY_PRESSURE_PCT
    return machine >= th.MEMORY_FULL_PCT or (group >= th.MEMORY_FULL_PCT and waited)


def _share_pct(context: Context, end_s: float) -> float | None:
    total, available = context.run.recording.memory_mib, _last(context, "memory_available_mib", end_s)
    return 100 * (1 - min(available) / total) if total and available else None


def _cgroup_pct(context: Context, end_s: float) -> float | None:
    """Return how full the trainer's cgroup was, in %: as read every few seconds, and as the kernel said at a kill."""
    limit = context.run.recording.memory_limit_mib
    if not limit:
        return None
    reports = [near.event.oom for near in _logged(context, end_s) if near.event.oom]
    said = [r.usage_mib for r in reports if r.usage_mib and r.limit_mib and abs(r.limit_mib - limit) < SAME_LIMIT_MIB]
    used = [*_last(context, "cgroup_memory_used_mib", end_s), *said]
    return 100 * max(used) / limit if used else None


def _logged(context: Context, end_s: float) -> tuple[NearbyKernelEvent, ...]:
    """Return the victims that the kernel log names shortly before an end, or just after it."""
    kills = [event for event in context.run.kernel.events if event.kind == "oom" and event.pid is not None]
    near = [event for event in kills if end_s - OOM_BEFORE_S <= event.t_s <= end_s + KERNEL_AFTER_S]
    return kernel_events_near(near, end_s, end_s, None)


def _counted(context: Context, end_s: float) -> set[str]:
    """Return what counted a kill about then: the counters are read every few seconds, and at the end."""
    return {
        str(event.fields.get("where"))
        for event in context.run.events
        if event.kind == "oom_kill" and end_s - OOM_BEFORE_S <= event.t_s <= end_s + th.OOM_COUNTED_S
    } & COUNTED.keys()


def _last(context: Context, name: str, end_s: float) -> Sequence[float]:
    values: list[float] = column_values(context.run.host, name, [(end_s - th.LAST_MINUTE_S, end_s)]).tolist()
    return values
