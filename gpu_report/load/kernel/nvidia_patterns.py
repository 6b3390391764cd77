"""The NVIDIA driver's lines of the kernel log: Xid in all its spellings, lost GPUs, NVSwitch errors."""

import re
from dataclasses import replace
from typing import Final

from gpu_report.load.kernel.match import PCI, LinePattern, Match, first_match, parse_pci, parse_pid, rule
from gpu_report.load.kernel.xid_catalogue import describe
from gpu_report.model import Severity

# Driver 595, kernel_rc.c, and its older spellings (without `PCI:`, name or pid; with a MIG instance).
_XID: Final = re.compile(
    rf"NVRM: Xid \((?:PCI:)?(?P<pci>{PCI})(?: GPU-I:(?P<instance>\d+))?(?: GPU-CI:\d+)?\): (?P<code>\d{{1,6}})(?!\d)"
    r"(?:, pid=(?P<pid>'?<unknown>'?|\d+))?(?:, name=(?P<name>[^,]*))?(?:,\s*(?P<text>.*))?",
)
_SXID: Final = re.compile(rf"nvidia-nvswitch\d+: SXid \(PCI:(?P<pci>{PCI})\): (?P<code>\d{{1,6}})(?!\d)(?P<text>.*)")
_INTRODUCTION: Final = re.compile(rf"NVRM: GPU at PCI:(?P<pci>{PCI}): (?P<uuid>GPU-[0-9a-fA-F-]+)")
# One printk of several lines; only with its last line does it say that the GPU is lost.
_LOST_LONG: Final = re.compile(
    rf"NVRM: The NVIDIA GPU (?P<pci>{PCI})\s+(?:NVRM: )?\(PCI ID: [^)]*\) installed in this system has\s+"
    r"(?:NVRM: )?fallen off the bus"
)
_LOST_SHORT: Final = re.compile(rf"NVRM: GPU (?:at PCI:)?(?P<pci>{PCI}): GPU has fallen off the bus")

_CAUSED_BY: Final = re.compile(r"caused by previous Xid (\d{1,6})")
_RECOVERY: Final = re.compile(r"GPU recovery action changed from \S+ \([^)]*\) to \S+ \(([^)]*)\)")
_GSP_TIMEOUT: Final = re.compile(r"Timeout after (\d+)\s*s of waiting for RPC response.*?function \d+ \((\w+)\)")
_FATAL: Final = re.compile(r"(?<!non-)(?<!non )(?<!non)\bfatal\b", re.IGNORECASE)
_NVLINK5_CODES: Final = frozenset({*range(144, 151)})
_LOST_CODE: Final = 79

_RECOVERIES: Final[tuple[tuple[str, Severity, str], ...]] = (
    ("none", "info", "Nothing to do."),
    ("reset", "critical", "Stop everything on this GPU and reset it (nvidia-smi --gpu-reset)."),
    ("reboot", "critical", "Reboot the machine."),
    ("drain p2p", "warning", "End the programs that share memory between GPUs."),
)

_OTHER_RULES: Final[tuple[LinePattern, ...]] = (
    rule(
        r"NVRM: Rate limiting GSP RPC error prints for GPU at PCI:{PCI}",
        "driver",
        "critical",
        "the driver gets so many errors from the GPU's system processor (GSP) that it prints only some",
        "Reset the GPU (nvidia-smi --gpu-reset), or reboot the machine.",
    ),
    rule(
        r"NVRM: API mismatch",
        "driver",
        "warning",
        "the loaded kernel module and the installed driver library are of different versions",
        "Reboot, or unload and load the nvidia modules.",
    ),
    rule(
        r"NVRM: (?:GPU {PCI}: )?(?:Rm|rm)InitAdapter failed",
        "driver",
        "critical",
        "the driver could not start the GPU",
        "Reboot; if it comes back, update the driver.",
    ),
    rule(
        r"NVRM: GPU Board Serial Number",
        "driver",
        "info",
        "names the GPU of the lines around it",
        "",
        role="introduction",
    ),
    rule(r"NVRM: |nvidia[-\w]*: ", "driver", "info", "a notice of the NVIDIA driver"),
)


def match_nvidia(message: str) -> Match | None:
    """Return what a line of the NVIDIA driver says, or None for another's line."""
    for pattern, read in ((_XID, _xid), (_SXID, _sxid), (_INTRODUCTION, _introduction)):
        if found := pattern.match(message):
            return read(found)
    if found := _LOST_LONG.match(message) or _LOST_SHORT.match(message):
        known = describe(_LOST_CODE)
        return Match("gpu-lost", known.severity, known.meaning, known.action, parse_pci(found["pci"]), code=_LOST_CODE)
    return first_match(_OTHER_RULES, message)


def xid_match(code: int, text: str) -> Match:
    """Return what Xid `code` says; `text`, the driver's own words, refines it where they are known to."""
    known = describe(code)
    match = Match("xid", known.severity, known.meaning, known.action, code=code)
    if code == 154:
        match = _with_recovery(match, text)
    elif code == 119 and (found := _GSP_TIMEOUT.search(text)):
        match = replace(match, meaning=f"{known.meaning} ({found[2]} was not answered within {found[1]} s)")
    elif code in _NVLINK5_CODES and _FATAL.search(text):
        match = replace(match, severity="critical")
    if previous := _CAUSED_BY.search(text):
        match = replace(match, meaning=f"{match.meaning}; the driver says that Xid {previous[1]} caused it")
    return match


def _xid(found: re.Match[str]) -> Match:
    match = xid_match(int(found["code"]), found["text"] or "")
    name = (found["name"] or "").strip("' ")
    return replace(
        match,
        pci=parse_pci(found["pci"]),
        pid=parse_pid(found["pid"] or ""),
        process=name if name not in ("", "<unknown>") else None,
        subject=found["instance"] or "",
    )


def _with_recovery(match: Match, text: str) -> Match:
    found = _RECOVERY.search(text)
    if found is None:
        return match
    advised = found[1]
    for word, severity, action in _RECOVERIES:
        if word in advised.lower():
            return replace(match, severity=severity, action=action, meaning=f"{match.meaning}: now '{advised}'")
    return replace(match, meaning=f"{match.meaning}: now '{advised}'")


def _sxid(found: re.Match[str]) -> Match:
    severity: Severity = "critical" if _FATAL.search(found["text"]) else "warning"
    return Match(
        "driver",
        severity,
        f"the NVSwitch between the GPUs reported error {found['code']} (SXid)",
        "Look for an Xid 74 or 145 to 150 of a GPU beside it; a fatal one needs a reset of the machine's GPUs.",
        subject=f"{found['pci']} SXid {found['code']}",
    )


def _introduction(found: re.Match[str]) -> Match:
    return Match(
        "driver",
        "info",
        "names the GPU of the lines around it",
        pci=parse_pci(found["pci"]),
        uuid=found["uuid"],
        role="introduction",
    )
