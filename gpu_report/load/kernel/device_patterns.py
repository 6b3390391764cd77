"""Kernel messages about devices that a training needs: AMD GPUs, PCIe, disks, file systems, network disks.

Spellings are those of Linux 4.x to 6.x; where they changed, both are here.
"""

from typing import Final

from gpu_report.load.kernel.match import LinePattern, rule

_PCIE_ACTION: Final = "Check how the card sits, its riser and power; then ask the hardware's support."
_DISK_ACTION: Final = "Look at the disk's health (smartctl -a, nvme smart-log) and copy the data elsewhere."
_AMD_ACTION: Final = "Update the kernel and amdgpu firmware; if it comes back, lower the clocks or test the card."

_AMD: Final = (
    r"(?:amdgpu {PCI}: (?:amdgpu: )?|(?=\[drm:amdgpu))\s*(?:\[drm(?::\w+)?(?: \[amdgpu\])?\]\s*)?(?:\*ERROR\*\s*)?"
)

AMD_RULES: Final[tuple[LinePattern, ...]] = (
    rule(
        _AMD + r"ring (?P<subject>\S+) timeout, but soft recovered",
        "amdgpu",
        "warning",
        "the AMD GPU's ring {subject} hung and was recovered; the program's work on it is lost",
        _AMD_ACTION,
    ),
    rule(
        _AMD + r"ring (?P<subject>[^\s,]+) timeout\b",
        "amdgpu",
        "critical",
        "the AMD GPU's ring {subject} hung: it did not finish its work in time",
        _AMD_ACTION,
    ),
    rule(
        _AMD + r"\s*Process(?: information: process)? (?P<process>.*?) pid (?P<pid>\d+) thread .* pid \d+",
        "amdgpu",
        "critical",
        "the process whose work hung the AMD GPU",
        _AMD_ACTION,
        role="detail",
    ),
    rule(
        _AMD + r"GPU reset(?:\(\d+\))? succeeded",
        "amdgpu",
        "info",
        "the AMD GPU was reset and works again",
        "",
        role="resolved",
    ),
    rule(_AMD + r"GPU reset begin", "amdgpu", "critical", "the AMD GPU is being reset", _AMD_ACTION),
    rule(_AMD + r"GPU reset end with ret = -\d+", "amdgpu", "critical", "the reset of the AMD GPU failed", "Reboot."),
)

_AER_REPORT: Final = r"\S+ \S+: AER: (?:Multiple )?"
_AER_BUS_ERROR: Final = r"\S+ {PCI}: (?:AER: )?PCIe Bus Error: severity="
_AER_FROM: Final = r" error(?: message)? received(?:(?: from|:)? (?:id=\w+|{PCI}))?"
_AER_REPAIRED: Final = "PCIe repaired errors on the link; at a high rate the link is poor"
_AER_FATAL: Final = "a fatal PCIe error: the device is lost until a reset"
_AER_FAILED: Final = "a PCIe transfer failed and could not be repaired"

PCIE_RULES: Final[tuple[LinePattern, ...]] = (
    rule(_AER_REPORT + r"Correct(?:ed|able)" + _AER_FROM, "aer", "info", _AER_REPAIRED, _PCIE_ACTION),
    rule(_AER_REPORT + r"Uncorrect(?:ed|able) \(Fatal\)" + _AER_FROM, "aer", "critical", _AER_FATAL, _PCIE_ACTION),
    rule(_AER_REPORT + r"Uncorrect(?:ed|able) \(Non-Fatal\)" + _AER_FROM, "aer", "warning", _AER_FAILED, _PCIE_ACTION),
    rule(_AER_BUS_ERROR + r"Correct(?:ed|able)", "aer", "info", _AER_REPAIRED, _PCIE_ACTION),
    rule(_AER_BUS_ERROR + r"Uncorrect(?:ed|able) \(Fatal\)", "aer", "critical", _AER_FATAL, _PCIE_ACTION),
    rule(_AER_BUS_ERROR + r"Uncorrect(?:ed|able)", "aer", "warning", _AER_FAILED, _PCIE_ACTION),
    rule(
        r"\S+ {PCI}:\s+(?:device \[\w{4}:\w{4}\] error status/mask=|\[ ?\d+\] \w+)",
        "aer",
        "info",
        "detail of a PCIe error",
        "",
        role="detail",
    ),
    rule(  # critical where it is a GPU's (load/kernel/__init__.py): virtual machines have such lines for each free slot
        r"(?=pcie)(?:(?:pcieport|pciehp) {PCI}(?::pcie\d+)?: )?(?:pciehp: )?"
        r"Slot\((?P<subject>[^)]*)\): (?:Link Down|Card not present)",
        "hotplug",
        "info",
        "no card answers in PCIe slot {subject}",
        _PCIE_ACTION,
    ),
)

_DISK: Final = r"(?!(?:fd|sr|scd)\d+\b)"  # an empty floppy or optical drive is no disk that failed
_SECTOR: Final = (
    r"(?:blk_update_request: |print_req_error: )?(?:critical )?(?:I/O|medium|target) error, dev "
    + _DISK
    + r"(?P<subject>\S+?),"
)
_FILE_SYSTEM: Final = r"(?:EXT[234]-fs|BTRFS|F2FS-fs|XFS|FAT-fs|NILFS2?|GFS2|JFS|UDF-fs)(?: error| info| warning)?"

DISK_RULES: Final[tuple[LinePattern, ...]] = (
    rule(
        r"nvme (?P<subject>nvme\d+): (?:controller is down|Disabling device after reset failure|Device not ready)",
        "nvme",
        "critical",
        "the disk {subject} stopped working",
        _DISK_ACTION,
    ),
    rule(
        r"nvme (?P<subject>nvme\d+): I/O (?:tag )?\d+ .*timeout",
        "nvme",
        "warning",
        "the disk {subject} did not answer a request in time: whoever reads from it waits",
        _DISK_ACTION,
    ),
    rule(_SECTOR + r"(?=.*\(READ\))", "block", "critical", "the disk {subject} could not read a sector", _DISK_ACTION),
    rule(
        _SECTOR + r"(?=.*\(WRITE\))", "block", "critical", "the disk {subject} could not write a sector", _DISK_ACTION
    ),
    rule(_SECTOR, "block", "critical", "the disk {subject} could not read or write a sector", _DISK_ACTION),
    rule(
        r"Buffer I/O error on (?:dev(?:ice)? )" + _DISK + r"(?P<subject>[^\s,]+)",
        "block",
        "critical",
        "the disk {subject} could not read or write a block",
        _DISK_ACTION,
    ),
    rule(
        r"(?P<subject>ata\d+)(?:\.\d\d)?: (?:exception Emask|failed command: |hard resetting link|link is slow)",
        "ata",
        "warning",
        "the disk at {subject} failed a request and is retried: whoever reads from it waits",
        _DISK_ACTION,
    ),
    rule(
        _FILE_SYSTEM + r" \((?:device )?(?P<subject>[\w./-]+)\)(?: [^\s:]+)?: "
        r"(?:Remounting filesystem read-only|Filesystem has been set read-only|forced readonly)",
        "filesystem",
        "critical",
        "the file system on {subject} had an error and is read-only now: nothing can be saved to it",
        _DISK_ACTION,
    ),
    rule(
        r"(?:EXT4-fs error \(device (?P<subject>[\w.-]+)\)|XFS \((?P<xfs>[\w.-]+)\): .{0,80}(?:orruption|hutdown))",
        "filesystem",
        "critical",
        "the file system on {subject}{xfs} has an error",
        _DISK_ACTION,
    ),
    rule(
        r"(?:nfs|lockd): server (?P<subject>\S+) not responding",
        "nfs",
        "warning",
        "the network file server {subject} does not answer: whoever reads from it waits",
        "Look at the server and the network; keep the training data on a local disk, or use `cache`.",
    ),
    rule(
        r"(?:nfs|lockd): server (?P<subject>\S+) OK",
        "nfs",
        "info",
        "the network file server {subject} answers again",
        "",
        role="resolved",
    ),
)

DEVICE_RULES: Final[tuple[LinePattern, ...]] = (*AMD_RULES, *PCIE_RULES, *DISK_RULES)
