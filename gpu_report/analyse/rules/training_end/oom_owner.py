"""Whose host memory it was when the kernel killed for want of it, by the OOM killer's own report, and what to do."""

from dataclasses import dataclass
from typing import Literal

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import compared_with, evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.training_end.oom_kill import OomKill, host_memory
from gpu_report.analyse.timeseries.columns import column_values
from gpu_report.model import Advice, Evidence
from gpu_report.wording import MIB_PER_GIB, gib, memory_words


@dataclass(frozen=True)
class MemoryOwner:
    """Who held most of the host memory that ran out, and how much (MiB); `who` is empty where that is not known."""

    who: Literal["main process", "other processes", ""] = ""
    held_mib: float = 0.0

    @property
    def words(self) -> str:
        """Return it as the end of a sentence that says why a process was killed, empty where it is not known."""
        return f"; {self.held_mib / MIB_PER_GIB:.1f} GiB were held by its {self.who}" if self.who else ""


def memory_owner(context: Context, oom: OomKill, pids: frozenset[int], *, ended_it: bool) -> MemoryOwner:
    """Return who held most of the memory that ran out; `pids` are those of the training's main processes.

    `ended_it` says that the kill itself ended the training: its victim is the main process then, whatever pid a
    container's log gives it. Of a worker that was killed the report does not tell what the main process held.
    """
    report, victim = oom.report, oom.victim
    whole_mib = (report and report.limit_mib) or context.run.recording.memory_mib
    if report is None or victim is None or report.killed_own_mib is None or not whole_mib:
        return MemoryOwner()
    is_main = victim.pid in pids or (ended_it and len(oom.victims) == 1)
    rest_mib = (report.group_own_mib or 0.0) - report.killed_own_mib if is_main else 0.0
    found = MemoryOwner("main process" if is_main else "other processes", report.killed_own_mib)
    found = MemoryOwner("other processes", rest_mib) if rest_mib > found.held_mib else found
    return found if found.held_mib >= th.MOST_OF_MEMORY * whole_mib else MemoryOwner()


def memory_evidence(context: Context, oom: OomKill, end_s: float) -> tuple[Evidence, ...]:
    """Return how full host memory was at a kill, what it had grown by, and what the killed process held of it."""
    report, victim = oom.report, oom.victim
    if report is None or victim is None:
        return (*host_memory(context, end_s), *_growth(context, end_s))
    killed = f"{victim.who('the process')}, which was killed"
    others_mib = None
    if report.group_own_mib is not None and report.killed_own_mib is not None:
        others_mib = max(report.group_own_mib - report.killed_own_mib, 0.0)  # the two are not counted at one moment
    return (
        *host_memory(context, end_s),
        *evidence(
            ("memory of the cgroup at the kill", gib(report.usage_mib), "GiB"),
            compared_with("allowance", gib(report.limit_mib), "GiB"),
            (f"memory of {killed}: its own", gib(report.killed_own_mib), "GiB"),
            ("shared with others, such as batches in /dev/shm", gib(report.killed_shared_mib), "GiB"),
            ("memory of all other processes in the cgroup", gib(others_mib), "GiB"),
        ),
        *_growth(context, end_s),
    )


def _growth(context: Context, end_s: float) -> tuple[Evidence, ...]:
    """Return what host memory was in use as the training began to train, and just before its end."""
    training = context.training_at(end_s)
    if training is None or not training.train_spans:
        return ()
    start_s, used = training.train_spans[0][0], "memory_used_mib"
    before = column_values(context.run.host, used, [(start_s - th.BEFORE_THE_END_S, start_s)])
    after = column_values(context.run.host, used, [(end_s - th.BEFORE_THE_END_S, end_s)])
    if not len(before) or not len(after):
        return ()
    return evidence(
        ("host memory in use as it began to train", gib(float(before[-1])), "GiB"),
        ("host memory in use just before the end", gib(float(after[-1])), "GiB"),
    )


def risen_mib(context: Context, end_s: float) -> float | None:
    """Return what host memory rose by while a training trained, None where it did not rise all along.

    Workers that start take theirs at once: what rises as much in the second half is kept from batch to batch.
    """
    training = context.training_at(end_s)
    if training is None or not training.train_spans:
        return None
    start_s, name = training.train_spans[0][0], "memory_used_mib"
    used = column_values(context.run.host, name, [(start_s, end_s)])
    freed = column_values(context.run.host, name, [(end_s - th.RISES_FREED_S, end_s)])
    at = int(used.argmax()) if len(used) else 0
    if at < th.RISES_READINGS or at < len(used) - 1 - len(freed):
        return None
    rise, later = float(used[at] - used[0]), float(used[at] - used[at // 2])
    return rise if rise >= th.RISES_MIB and later >= th.RISES_LATER * rise else None


def kept_advice(rise_mib: float) -> Advice:
    """Return to look for what workers keep, where host memory rose until one was killed."""
    short = f"Find what each data-loader worker keeps: host memory rose {memory_words(rise_mib)} until one was killed"
    return Advice(f"{short}. Fewer `workers` or more memory only delay that", short=short)


def memory_advice(context: Context, end_s: float, oom: OomKill | None, owner: MemoryOwner) -> tuple[Advice, ...]:
    """Return what to do against a want of host memory that ended a training: by whose it was, where that is known."""
    training = context.training_at(end_s)
    cached = None if training is None else training.caches_in_memory
    more = _more(oom)
    if cached and owner.who != "other processes":
        text = "`cache=ram` keeps all images in host memory; `cache=disk` takes none of it"
        short = "Set `cache=disk` instead of `cache=ram`, which keeps all images in host memory"
        if training is None or "cache" not in training.args:  # reported by callbacks alone
            return (Advice(f"{text}. Or {more}", short=short),)
        return (Advice(f"{text}. Or {more}", "cache", "ram", "disk", short=short),)
    if owner.who == "main process":
        held = f"it held {owner.held_mib / MIB_PER_GIB:.1f} GiB"
        kept = "a cache, a list of results, a callback that leaks"
        short = f"Find what the main process keeps from batch to batch: {held}"
        return (Advice(f"{short} ({kept}). Or {more}, if that stops growing", short=short),)
    if owner.who == "other processes":
        now = "" if training is None or training.workers is None else f" (now {training.workers})"
        short = f"Train with fewer data-loader workers{now}: each holds batches in memory"
        return (Advice(f"{short}. Or {more}", short=short),)
    less = "fewer workers" if cached is False else "fewer workers, no cache=ram"
    return (Advice(f"Use less host memory ({less}), or {more}", short=f"Use less host memory ({less})"),)


def _more(oom: OomKill | None) -> str:
    if oom is None or not oom.at_limit:
        return "give the machine or the container more"
    limit_mib = oom.report and oom.report.limit_mib
    return "raise the limit of its container or service" + (
        f" (now {limit_mib / MIB_PER_GIB:.1f} GiB)" if limit_mib else ""
    )
