"""What the kernel's OOM killer did meanwhile, by its counters: they need no kernel log, which few may read.

Two of them: the trainer's own cgroup (v2), which speaks of it alone, and the whole machine. A counter is kept after the
trainer has gone: that is when it matters.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from gpu_report.record.clocks import Clocks
from gpu_report.record.host import cgroup
from gpu_report.record.proc_files import read_text

LOOK_EVERY_S = 5.0  # a look takes 25 us, and the last one of a recording takes place in any case
CGROUP, MACHINE = "cgroup", "machine"

Emit = Callable[[str, Clocks, Mapping[str, object]], object]


class OomWatch:
    """Counts since its first look how many processes the kernel killed for want of memory."""

    def __init__(self, proc: Path = Path("/proc"), own_group: Path | None = None) -> None:
        """Begin with `own_group`, in which a command starts out that we start."""
        self._proc = proc
        self._group = own_group
        self._due_s = float("-inf")
        self._seen: dict[str, int] = {}
        self.kills: dict[str, int | None] = {MACHINE: None, CGROUP: None}

    def look(self, at: Clocks, group: Path | None, emit: Emit, *, last: bool = False) -> None:
        """Read the counters when that is due, `group` being the trainer's where it is known; tell what they grew by."""
        if at.mono_s < self._due_s and not last:
            return
        self._due_s = at.mono_s + LOOK_EVERY_S
        if group is not None and group != self._group:
            self._group = group
            self._seen.pop(CGROUP, None)  # the count of another group is no beginning for this one's
        self._count(MACHINE, _machine_kills(self._proc), at, emit)
        self._count(CGROUP, None if self._group is None else cgroup.oom_kills(self._group), at, emit)

    def _count(self, where: str, total: int | None, at: Clocks, emit: Emit) -> None:
        if total is None:
            return
        grown = total - self._seen.get(where, total)
        self._seen[where] = total
        self.kills[where] = (self.kills[where] or 0) + max(grown, 0)
        if grown > 0:
            emit("oom_kill", at, {"where": where, "count": grown})


def _machine_kills(proc: Path) -> int | None:
    """Return the kernel's count since it was started (Linux 4.13 on), those for a cgroup's limit among them."""
    for line in read_text(proc / "vmstat").splitlines():
        name, _, number = line.partition(" ")
        if name == "oom_kill" and number.isdigit():
            return int(number)
    return None
