"""For which file processes of the training waited in an interval, and for how long, by the kernel."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from posixpath import commonpath

import numpy as np

from gpu_report.analyse.signals.host.filesystems import is_network, is_remote
from gpu_report.analyse.timeseries.gpu_series import HOLD_INTERVALS, Floats
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.median import median_of
from gpu_report.model import LockHeld, ProcessWait

UNINTERRUPTIBLE = "D"
MOSTLY_UNSEEN = 0.5  # of a wait
UNNAMED = frozenset({"pipe", "socket"})  # files that have no name


@dataclass(frozen=True)
class FileWait:
    """A process's wait for one filesystem in an interval: how long in all, and the wait that took most of it.

    `folder` is the one that all files lie in that it waited for, empty where it was one file.
    """

    seconds: float
    wait: ProcessWait
    folder: str = ""

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
    found = (_file_wait(group, span) for group in kept.values())
    return max(found, key=lambda each: each.seconds, default=None)


def _file_wait(waits: Sequence[ProcessWait], span: Span) -> FileWait:
    named = {wait.file for wait in waits if wait.file.startswith("/")}
    folder = commonpath(named) if len(named) > 1 else ""
    return FileWait(_within(waits, span), max(waits, key=lambda wait: wait.duration_s), folder)


def seen_waits(waits: Sequence[ProcessWait], looks_s: Floats) -> list[ProcessWait]:
    """Return waits without those that nobody saw for most of their time: the recorder stood still meanwhile.

    `looks_s` are the rows of the host. Before and after such a gap a process may be found in two waits that look alike.
    """
    if len(looks_s) < 2:
        return list(waits)
    steps_s = np.diff(looks_s)
    at = np.flatnonzero(steps_s > HOLD_INTERVALS * median_of(steps_s))
    gaps = interval_cover(zip(looks_s[at].tolist(), looks_s[at + 1].tolist(), strict=True))
    return [wait for wait in waits if gaps.seconds_in(wait.span) <= MOSTLY_UNSEEN * wait.duration_s]


@dataclass(frozen=True)
class GilHold:
    """How long of an interval C code held the GIL, and the share (0 to 1) of it that the main thread computed.

    `inferred` is a time whose line is that of others: it has from how many.
    """

    seconds: float
    cpu_share: float
    inferred: LockHeld | None = None


def is_named(wait: ProcessWait) -> bool:
    """Tell whether a wait is for a file on a filesystem, no pipe and no socket."""
    return bool(wait.file) and wait.file not in UNNAMED


def longest_gil_hold(held: Iterable[Sequence[LockHeld]], span: Span) -> GilHold | None:
    """Return for how long of an interval C code of one process kept Python's lock, None where it never did.

    `held` are the stretches of each process that touch the interval.
    """
    kept = (_kept(process, span) for process in held)
    return max((each for each in kept if each.seconds), key=lambda each: each.seconds, default=None)


def _kept(held: Sequence[LockHeld], span: Span) -> GilHold:
    in_all = sum(each.duration_s for each in held)
    computed = sum(each.cpu_s for each in held) / in_all if in_all else 0.0
    inferred = max((each for each in held if each.seen), key=lambda each: each.alike, default=None)
    return GilHold(_within(held, span), computed, inferred)


def _within(stretches: Sequence[ProcessWait] | Sequence[LockHeld], span: Span) -> float:
    return interval_cover((each.start_t_s, each.end_t_s) for each in stretches).seconds_in(span)
