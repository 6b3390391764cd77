"""For which file processes of the training waited in an interval, and for how long, by the kernel."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse.signals.filesystems import is_network
from gpu_report.analyse.timeseries.intervals import Span, length_s, union
from gpu_report.model import LockHeld, ProcessStacks, ProcessWait

UNINTERRUPTIBLE = "D"
UNNAMED = frozenset({"pipe", "socket"})  # files that have no name


@dataclass(frozen=True)
class FileWait:
    """A process's wait for one filesystem in an interval: how long in all, and the wait that took most of it."""

    seconds: float
    wait: ProcessWait

    @property
    def is_named(self) -> bool:
        """Tell whether the file is one on a filesystem."""
        return bool(self.wait.file) and self.wait.file not in UNNAMED

    @property
    def is_network(self) -> bool:
        """Tell whether that filesystem lies across a network."""
        return is_network(self.wait.filesystem)


def longest_file_wait(waits: Sequence[ProcessWait], role: str, span: Span) -> FileWait | None:
    """Return the wait of one process of a role (`main`, `worker`) that took most of an interval, None without one."""
    kept: dict[tuple[int, str, str], list[ProcessWait]] = {}
    for wait in waits:
        is_file = bool(wait.file) or wait.state == UNINTERRUPTIBLE
        if is_file and wait.role == role and wait.start_t_s < span[1] and wait.end_t_s > span[0]:
            kept.setdefault((wait.pid, wait.call, wait.filesystem), []).append(wait)
    found = (FileWait(_within(group, span), max(group, key=lambda wait: wait.duration_s)) for group in kept.values())
    return max(found, key=lambda each: each.seconds, default=None)


def lock_held_s(stacks: Sequence[ProcessStacks], span: Span) -> float | None:
    """Return for how long of an interval C code of a main process kept Python's lock, None where it never did."""
    held = (_within(process.lock_held, span) for process in stacks if not process.is_worker)
    return max(held, default=0.0) or None


def _within(stretches: Sequence[ProcessWait] | Sequence[LockHeld], span: Span) -> float:
    inside = [(max(each.start_t_s, span[0]), min(each.end_t_s, span[1])) for each in stretches]
    return length_s(union([each for each in inside if each[1] > each[0]]))
