"""For which file processes of the training waited in an interval, and for how long, by the kernel."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpu_report.analyse.signals.host.filesystems import is_network, is_remote
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import LockHeld, ProcessWait

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
        return is_named(self.wait)

    @property
    def is_remote(self) -> bool:
        """Tell whether that filesystem lies across a network or behind a program (FUSE): no disk's pressure tells."""
        return is_remote(self.wait.filesystem)

    @property
    def is_network(self) -> bool:
        """Tell whether that filesystem lies across a network."""
        return is_network(self.wait.filesystem)


def longest_file_wait(
    waits: Sequence[ProcessWait], role: str, span: Span, *, only_named: bool = False
) -> FileWait | None:
    """Return the wait of one process of a role (`main`, `worker`) that took most of an interval, None without one.

    It may be one of a file that nobody could name, unless `only_named`.
    """
    kept: dict[tuple[int, str, str], list[ProcessWait]] = {}
    for wait in waits:
        is_file = is_named(wait) if only_named else bool(wait.file) or wait.state == UNINTERRUPTIBLE
        if is_file and wait.role == role and wait.start_t_s < span[1] and wait.end_t_s > span[0]:
            kept.setdefault((wait.pid, wait.call, wait.filesystem), []).append(wait)
    found = (FileWait(_within(group, span), max(group, key=lambda wait: wait.duration_s)) for group in kept.values())
    return max(found, key=lambda each: each.seconds, default=None)


@dataclass(frozen=True)
class LockKept:
    """How long of an interval C code held the GIL, and the share (0 to 1) of it that the main thread computed.

    `inferred` is a time whose line is that of others: it has from how many.
    """

    seconds: float
    cpu_share: float
    inferred: LockHeld | None = None


def is_named(wait: ProcessWait) -> bool:
    """Tell whether a wait is for a file on a filesystem, no pipe and no socket."""
    return bool(wait.file) and wait.file not in UNNAMED


def longest_lock(held: Iterable[Sequence[LockHeld]], span: Span) -> LockKept | None:
    """Return for how long of an interval C code of one process kept Python's lock, None where it never did.

    `held` are the stretches of each process that touch the interval.
    """
    kept = (_kept(process, span) for process in held)
    return max((each for each in kept if each.seconds), key=lambda each: each.seconds, default=None)


def _kept(held: Sequence[LockHeld], span: Span) -> LockKept:
    in_all = sum(each.duration_s for each in held)
    computed = sum(each.cpu_s for each in held) / in_all if in_all else 0.0
    inferred = max((each for each in held if each.seen), key=lambda each: each.alike, default=None)
    return LockKept(_within(held, span), computed, inferred)


def _within(stretches: Sequence[ProcessWait] | Sequence[LockHeld], span: Span) -> float:
    return interval_cover((each.start_t_s, each.end_t_s) for each in stretches).seconds_in(span)
