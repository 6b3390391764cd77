"""Kernel messages that matter to a training beside NVIDIA's: memory, CPU, crashes, and those of device_patterns.

Severity says what a message means for the run. It is never taken from the kernel's level: a real Xid has level 4.
Spellings are those of Linux 4.x to 6.x; where they changed, both are here.
"""

from dataclasses import replace
from typing import Final

from gpu_report.load.kernel.device_patterns import DEVICE_RULES
from gpu_report.load.kernel.match import LinePattern, Match, rule

_OOM_ACTION: Final = "Use less host memory, or give the machine more."
_LIMIT_ACTION: Final = "Use less host memory, or raise the limit of the container or service."
_ASKED: Final = " as {process} asked for more"
_LIMIT: Final = "the memory limit of a container or service was reached"
# An opening that no victim's line follows: whom the kernel killed is not in the log.
_OPENED: Final = ": the kernel looked for a process to kill, and its log does not say which"
# A name comes first on its line and is short; text behind `: ` is a message, and may be a stranger's (`Product: ...`).
_PROCESS: Final = r"(?P<process>(?:(?!: )[^\n]){1,64}?)"
_CPU_ACTION: Final = "Check the machine's cooling."
_HARDWARE_ERROR: Final = r"(?:mce: )?(?:\{\d+\})?\[Hardware Error\]: "
_MCE_ACTION: Final = "Read the machine's event log (ipmitool sel list); then ask the hardware's support."

OOM_RULES: Final[tuple[LinePattern, ...]] = (
    rule(
        _PROCESS + r" invoked oom-killer: ",
        "oom",
        "critical",
        "memory ran out" + _ASKED + _OPENED,
        _OOM_ACTION,
        role="opens",
    ),
    rule(
        r"oom-kill:constraint=CONSTRAINT_MEMCG,.*,task=(?P<process>.*),pid=(?P<pid>\d+),uid=\d+",
        "oom",
        "critical",
        _LIMIT + ": the kernel chose to kill {process} (pid {pid})",
        _LIMIT_ACTION,
        role="opens",
        at_limit=True,
    ),
    rule(
        r"oom-kill:constraint=(?P<constraint>\w+),.*,task=(?P<process>.*),pid=(?P<pid>\d+),uid=\d+",
        "oom",
        "critical",
        "host memory ran out ({constraint}): the kernel chose to kill {process} (pid {pid})",
        _OOM_ACTION,
        role="opens",
    ),
    rule(
        r"Memory cgroup out of memory: Kill(?:ed)? process (?P<pid>\d+) \((?P<process>.*?)\)",
        "oom",
        "critical",
        _LIMIT + ": the kernel killed {process} (pid {pid})",
        _LIMIT_ACTION,
        role="victim",
        at_limit=True,
    ),
    rule(
        r"(?:Out of memory(?: \([^)]*\))?: )?Kill(?:ed)? process (?P<pid>\d+)(?:,)? (?:UID \d+, )?\((?P<process>.*?)\)",
        "oom",
        "critical",
        "host memory ran out: the kernel killed {process} (pid {pid})",
        _OOM_ACTION,
        role="victim",
    ),
    rule(
        r"oom_reaper: reaped process (?P<pid>\d+) \((?P<process>.*?)\)",
        "oom",
        "critical",
        "the kernel freed the memory of {process} (pid {pid}), which it had killed",
        _OOM_ACTION,
        role="detail",
    ),
)

HOST_RULES: Final[tuple[LinePattern, ...]] = (
    rule(
        r"(?:mce: )?CPU\d+: (?P<subject>Core|Package) temperature (?:is )?above threshold",
        "thermal",
        "warning",
        "the CPU is too hot and runs slower ({subject}): data loading slows down",
        _CPU_ACTION,
    ),
    rule(
        r"(?:mce: )?CPU\d+: (?P<subject>Core|Package) temperature(?:/speed)? (?:is )?normal",
        "thermal",
        "info",
        "the CPU's temperature is normal again ({subject})",
        "",
        role="resolved",
    ),
    rule(
        r"INFO: task (?P<process>.*):(?P<pid>\d+) blocked for more than (?P<seconds>\d+) seconds",
        "hung-task",
        "warning",
        "{process} (pid {pid}) had been stuck in the kernel for {seconds} s by then, most often waiting for a disk",
        "Look for disk or network-disk lines before it.",
    ),
    rule(
        r"(?:NMI )?watchdog: BUG: soft lockup - CPU#\d+ stuck for (?P<seconds>\d+)s! \[(?P<process>.*):(?P<pid>\d+)\]",
        "lockup",
        "warning",
        "a CPU did nothing but {process} (pid {pid}) for {seconds} s",
        "Update the kernel and drivers; in a virtual machine the host may be overloaded.",
    ),
    rule(
        r"(?:NMI )?watchdog: Watchdog detected hard LOCKUP on cpu",
        "lockup",
        "critical",
        "a CPU stopped answering",
        "Update the kernel and firmware; then ask the hardware's support.",
    ),
    rule(
        r"(?:rcu: )?INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stalls?",
        "lockup",
        "warning",
        "a CPU was stuck in the kernel (RCU stall)",
        "Update the kernel and drivers; in a virtual machine the host may be overloaded.",
    ),
    rule(
        _PROCESS + r"\[(?P<pid>\d+)\]: segfault at ",
        "segfault",
        "info",
        "{process} (pid {pid}) crashed: it touched memory that is not its own",
        "If it is the training or one of its workers, its own output says more.",
        critical_in_run=True,
    ),
    rule(
        r"traps: " + _PROCESS + r"\[(?P<pid>\d+)\] (?:general protection|trap |invalid opcode)",
        "segfault",
        "info",
        "{process} (pid {pid}) crashed on an illegal instruction or access",
        "If it is the training or one of its workers, its own output says more.",
        critical_in_run=True,
    ),
    rule(r"Code: (?:[0-9a-f]{2} |Bad RIP|Unable to)", "segfault", "info", "the code that crashed", role="aside"),
    rule(
        r"EDAC \w+: \d+ UE ",
        "mce",
        "critical",
        "host memory had an error that could not be corrected",
        "Find the memory module (edac-util, ipmitool sel list) and replace it.",
    ),
    rule(
        r"EDAC \w+: \d+ CE ",
        "mce",
        "info",
        "host memory had an error that was corrected",
        "If it goes on, find the memory module (edac-util) and replace it.",
    ),
    rule(
        _HARDWARE_ERROR + r".{0,80}(?:[Uu]ncorrected|[Ff]atal|\bUE\b)",
        "mce",
        "critical",
        "the machine reported a hardware error that could not be corrected",
        _MCE_ACTION,
    ),
    rule(
        # the status' third bit (UC) is the second of its first hexadecimal digit
        _HARDWARE_ERROR + r"CPU \d+: Machine Check(?: Exception)?: \w+ Bank \d+: [2367abefABEF][0-9a-fA-F]{15}\b",
        "mce",
        "critical",
        "the CPU reported an error that could not be corrected",
        _MCE_ACTION,
    ),
    rule(
        _HARDWARE_ERROR + r"(?:CPU \d+: Machine Check(?: Exception)?: \w+ Bank \d+: [0-9a-fA-F]{16}\b"
        r"|Machine check events logged|.{0,80}(?:\b[Cc]orrected|\bCE\b))",
        "mce",
        "info",
        "the machine reported a hardware error that was corrected",
        "If it goes on, read the machine's event log (ipmitool sel list).",
    ),
    rule(
        _HARDWARE_ERROR,
        "mce",
        "warning",
        "the machine reported a hardware error",
        "Read the machine's event log (ipmitool sel list).",
    ),
    rule(
        # 1 empties the page cache, 2 the caches of names and attributes, 3 both
        _PROCESS + r" \((?P<pid>\d+)\): drop_caches: [13]\b",
        "drop-caches",
        "info",
        "{process} (pid {pid}) emptied the page cache: files that had been read are read from the disk again",
        "Find out what that process is, and why it writes to /proc/sys/vm/drop_caches.",
    ),
    rule(r"PM: suspend entry", "suspend", "info", "the machine went to sleep: nothing ran until it woke up"),
    rule(r"PM: suspend exit", "suspend", "info", "the machine woke up", "", role="resolved"),
)


def at_a_limit(match: Match) -> Match:
    """Return what a kill says, by its report: a cgroup's limit that was reached is not all memory of the machine."""
    if match.role != "opens" or match.pid is not None or match.oom is None or match.oom.limit_mib is None:
        return match
    asked = _ASKED.format(process=match.process or "a process")
    return replace(match, meaning=_LIMIT + asked + _OPENED, action=_LIMIT_ACTION, at_limit=True)


RULES: Final[tuple[LinePattern, ...]] = (*OOM_RULES, *DEVICE_RULES, *HOST_RULES)
