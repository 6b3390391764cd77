"""What the kernel prints of a kill for want of memory: how full the cgroup was, and what the killed process held.

Formats are those of mm/oom_kill.c and mm/memcontrol.c of Linux 4.x to 6.x. The kernel writes kB for KiB.
"""

import re
from dataclasses import fields, replace
from typing import Final

from gpu_report.model import OomReport

_KIB_PER_MIB: Final = 1024
_BYTES_PER_MIB: Final = 2**20
_NO_LIMIT_KIB: Final = 2**50  # a cgroup without a limit has the largest number of pages, 2^53 kB
_GROUP: Final = re.compile(r"memory: usage (?P<usage>\d{1,18})kB, limit (?P<limit>\d{1,18})kB, failcnt \d")
# Lines of the cgroup's memory.stat, in bytes; some kernels print all of them as one message.
_ANONYMOUS: Final = re.compile(r"^anon (?P<anon>\d{1,20})$", re.MULTILINE)
# A process's name has 15 letters at most: it cannot hold all of this.
_KILLED: Final = re.compile(
    r"total-vm:\d{1,18}kB, anon-rss:(?P<anon>\d{1,18})kB"
    r"(?:, file-rss:\d{1,18}kB)?(?:, shmem-rss:(?P<shared>\d{1,18})kB)?"
)


def report_in(message: str) -> OomReport | None:
    """Return what one message of a kill says of memory, None where it says nothing of it."""
    if (group := _GROUP.match(message)) and int(group["limit"]) < _NO_LIMIT_KIB:
        return OomReport(usage_mib=_mib(group["usage"]), limit_mib=_mib(group["limit"]))
    if anonymous := _ANONYMOUS.match(message):
        return OomReport(group_own_mib=int(anonymous["anon"]) / _BYTES_PER_MIB)
    if killed := _KILLED.search(message):
        shared = killed["shared"]
        return OomReport(killed_own_mib=_mib(killed["anon"]), killed_shared_mib=_mib(shared) if shared else None)
    return None


def joined(earlier: OomReport | None, later: OomReport | None) -> OomReport | None:
    """Return what two messages of one kill say together; of what both say, the first counts."""
    if earlier is None or later is None:
        return earlier or later
    missing = {f.name: getattr(later, f.name) for f in fields(earlier) if getattr(earlier, f.name) is None}
    return replace(earlier, **missing)


def _mib(kib: str) -> float:
    return int(kib) / _KIB_PER_MIB
