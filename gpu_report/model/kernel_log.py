"""The kernel log: its messages, each with what it means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["critical", "warning", "info"]


@dataclass(frozen=True)
class OomReport:
    """What the kernel printed of a kill for want of memory, each in MiB and None where it did not say.

    `usage_mib` and `limit_mib` are of the cgroup that reached its limit; `group_own_mib` is what its processes held of
    their own (anonymous memory: without files and shared memory). `killed_own_mib` and `killed_shared_mib` are of the
    process that was killed.
    """

    usage_mib: float | None = None
    limit_mib: float | None = None
    group_own_mib: float | None = None
    killed_own_mib: float | None = None
    killed_shared_mib: float | None = None


@dataclass(frozen=True)
class KernelEvent:
    """One message of the kernel log, or several of the same fault folded into one (`count`, `last_t_s`).

    `kind` is xid, gpu-lost, oom, aer, nvme, ata, nfs, filesystem, block, thermal, lockup, hung-task, segfault,
    amdgpu, mce, hotplug, suspend, drop-caches, driver or other. `text` is the raw line, hostile until escaped. `gpu`
    is the device index where it could be told. For an Xid, `code`, `meaning`, `action` and `xid_kind` (whose fault it
    usually is: load.kernel.xid_catalogue.XidKind) come from our own table. `subject` is what a fault is of, as the
    kernel names it, such as a disk (sda). `oom` is the kernel's report of a kill for want of memory. `of_another` says
    that its process was none of the training, which went on; the analysis finds that out. `at_limit` that memory ran
    out at the limit of a container or service, not of the machine.
    """

    t_s: float
    kind: str
    severity: Severity
    text: str
    meaning: str
    action: str = ""
    gpu: int | None = None
    code: int | None = None
    pid: int | None = None
    process: str | None = None
    count: int = 1
    last_t_s: float | None = None
    source: str = ""
    oom: OomReport | None = None
    of_another: bool = False
    at_limit: bool = False
    xid_kind: str | None = None
    subject: str = ""

    def who(self, unnamed: str) -> str:
        """Return the process that it names, in words; `unnamed` where it tells only a pid."""
        return f"{self.process or unnamed} (pid {self.pid})"


@dataclass(frozen=True)
class KernelLog:
    """What is known of the kernel log. Unless `status` is read, an empty `events` says nothing at all."""

    status: Literal["read", "restricted", "unavailable"]
    source: str | None = None
    reason: str = ""
    advice: str = ""
    events: tuple[KernelEvent, ...] = ()
    xid_events: Literal["listening", "unavailable"] = "unavailable"
