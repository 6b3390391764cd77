"""What NVIDIA's Xid numbers mean, in our own words, how bad each is and what to do.

Facts from NVIDIA's public Xid documents and nverror.h of driver 595; the wording is ours. Numbers above 140 are
thinly documented and change between driver releases, which is why the raw line is always shown beside this.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from gpu_report.model import Severity

CATALOGUE_DATE: Final = "2026-11-21"

# link: PCIe or NVLink; notice: says something, asks for nothing; unknown: not in this table
XidKind = Literal["hardware", "memory", "link", "application", "driver", "notice", "unknown"]


@dataclass(frozen=True)
class Xid:
    """What one Xid number says: its meaning, how bad it is, what to do, and whose fault it usually is.

    Severity: critical needs a reset, a reboot or hardware; warning ended a program or is to be watched.
    """

    meaning: str
    severity: Severity
    action: str
    kind: XidKind


_RESTART = "Restart the training."
_RESET = "Stop everything on this GPU and reset it (nvidia-smi --gpu-reset), or reboot the machine."
_IGNORE = "Nothing to do."
_SUPPORT = "Update the driver; if it comes back, ask the hardware's support."
_DOUBLE_BIT = "With an Xid 63 or 64 beside it, move the work elsewhere and reset the GPU; without one, reset the GPU."
_LOOK_UP = "Look the number up in NVIDIA's current Xid list, and judge by the raw line."
_NVLINK5 = "Fatal: reset the GPU. Not fatal: watch it. NVIDIA's NVLink 5 table decodes the numbers in the line."
_BAD_ACCESS = (
    "Restart the training. If it happens again, run the program under compute-sanitizer; "
    "if it follows one GPU, test that GPU (dcgmi diag)."
)

_ROWS: Final[tuple[tuple[tuple[int, ...], Xid], ...]] = (
    ((8,), Xid("the GPU made no progress and its watchdog gave up", "warning", _RESTART, "application")),
    (
        (11, 25),
        Xid("the GPU was handed an invalid or damaged command stream", "warning", _RESTART, "application"),
    ),
    (
        (13,),
        Xid(
            "a GPU engine stopped on an exception (out of bounds, illegal instruction): usually a bug of the program",
            "warning",
            _BAD_ACCESS,
            "application",
        ),
    ),
    ((14,), Xid("an error injected for testing", "info", _IGNORE, "notice")),
    ((16,), Xid("a display callback came too late", "info", _IGNORE, "notice")),
    (
        (31,),
        Xid(
            "a GPU program touched memory that is not mapped: usually a bug of the program",
            "warning",
            _BAD_ACCESS,
            "application",
        ),
    ),
    (
        (32,),
        Xid(
            "commands reached the GPU damaged: a poor PCIe link is likely",
            "warning",
            "Restart the training; look for PCIe (AER) lines nearby and check how the card sits.",
            "link",
        ),
    ),
    ((37, 38), Xid("a notice of the driver's firmware", "info", _IGNORE, "notice")),
    (
        (*range(39, 42), *range(70, 73), *range(75, 78), 85, *range(126, 136)),
        Xid("a copy engine stopped on an exception", "warning", _RESTART, "application"),
    ),
    (
        (43,),
        Xid(
            "the driver reset the program's channel; the GPU itself is healthy",
            "warning",
            "Look for an Xid 13 or 31 just before it: that is the cause. Fix the program and restart it.",
            "application",
        ),
    ),
    ((44,), Xid("a fault while switching contexts", "info", _IGNORE, "driver")),
    (
        (45,),
        Xid(
            "the program's channels were torn down: it was stopped (Ctrl-C, kill), or an earlier Xid took it along",
            "info",
            "Look for an earlier Xid; without one the program was simply ended from outside.",
            "application",
        ),
    ),
    ((46,), Xid("the GPU stopped processing", "critical", _RESET, "hardware")),
    ((48,), Xid("a double-bit memory error (ECC) that could not be corrected", "critical", _DOUBLE_BIT, "memory")),
    (
        (54,),
        Xid("the auxiliary power cable is not connected", "critical", "Check the card's power cables.", "hardware"),
    ),
    ((61,), Xid("the GPU's internal controller hit a breakpoint or warning", "critical", _SUPPORT, "hardware")),
    ((62,), Xid("the GPU's internal controller halted", "critical", _RESET, "hardware")),
    (
        (63,),
        Xid(
            "a bad memory row or page was retired and recorded",
            "info",
            "Reset the GPU when convenient, so that it takes effect.",
            "memory",
        ),
    ),
    (
        (64,),
        Xid(
            "a bad memory row or page could not be retired",
            "critical",
            f"{_RESET} Have the card replaced if it comes back.",
            "memory",
        ),
    ),
    ((66, 67), Xid("an illegal access by the driver", "info", _IGNORE, "driver")),
    (
        (68, 83, 84, 88, 89, 96, 97, 98),
        Xid(
            "the video decoder stopped on an exception",
            "warning",
            "Restart the training; it matters only where videos are decoded on the GPU.",
            "application",
        ),
    ),
    (
        (69,),
        Xid("the graphics engine was given a command it does not know", "warning", _RESTART, "application"),
    ),
    (
        (74,),
        Xid(
            "an NVLink connection failed",
            "critical",
            "Reset the GPUs on both ends or reboot; the GPU at the other end may be the culprit.",
            "link",
        ),
    ),
    ((78,), Xid("a virtual GPU could not start", "warning", "Update the vGPU software.", "driver")),
    (
        (79,),
        Xid(
            "the GPU fell off the bus: its PCIe link is gone (power, heat, seating, or broken hardware)",
            "critical",
            "Reboot. If it happens again: check power, cooling and seating, then ask the hardware's support.",
            "hardware",
        ),
    ),
    ((80,), Xid("damaged data was sent to the GPU", "warning", _RESTART, "link")),
    (
        (82, *range(99, 106)),
        Xid("the JPEG decoder stopped on an exception", "warning", _RESTART, "application"),
    ),
    ((86, 139), Xid("the optical-flow engine stopped on an exception", "warning", _RESTART, "application")),
    (
        (92,),
        Xid(
            "many single-bit memory errors, all corrected",
            "info",
            "Watch it; run diagnostics (dcgmi diag) when convenient.",
            "memory",
        ),
    ),
    ((93,), Xid("the card's configuration memory (InfoROM) is wearing out", "info", _IGNORE, "hardware")),
    (
        (94,),
        Xid(
            "a memory error that hit only one program; that program was ended",
            "warning",
            "Restart the training; reset the GPU when convenient.",
            "memory",
        ),
    ),
    (
        (95,),
        Xid("a memory error that may have spread to every program on the GPU", "critical", _RESET, "memory"),
    ),
    ((109,), Xid("switching contexts did not finish in time", "critical", _RESET, "driver")),
    (
        (110,),
        Xid(
            "a security fault",
            "critical",
            "Power the machine off and on; if it comes back, ask the hardware's support.",
            "hardware",
        ),
    ),
    (
        (119,),
        Xid(
            "the GPU's system processor (GSP) did not answer the driver in time; the process named may be a victim",
            "critical",
            "Reset the GPU; if it stays, power the machine off and on. Report it with nvidia-bug-report.sh.",
            "driver",
        ),
    ),
    ((120,), Xid("the firmware of the GPU's system processor (GSP) failed", "critical", _RESET, "driver")),
    (
        (121,),
        Xid(
            "corrected errors on the link between CPU and GPU (C2C)",
            "info",
            "Nothing to do unless it is frequent.",
            "link",
        ),
    ),
    (
        (122, 123, 124),
        Xid("the card's flash could not be read, written or erased", "warning", _SUPPORT, "hardware"),
    ),
    ((125,), Xid("the file system of the card's InfoROM is damaged", "warning", _SUPPORT, "hardware")),
    ((136,), Xid("a link could not be trained", "critical", _RESET, "link")),
    (
        (137,),
        Xid(
            "a program reached over NVLink for memory it may not touch",
            "warning",
            "Check the program's peer-to-peer accesses.",
            "application",
        ),
    ),
    ((140,), Xid("a memory error (ECC) that was not corrected", "critical", _RESET, "memory")),
    ((141,), Xid("a notice of the driver's fast path", "info", _IGNORE, "notice")),
    ((143,), Xid("the GPU could not be initialised", "critical", _RESET, "hardware")),
    ((144, 146, 147, 148, 150), Xid("an NVLink 5 unit reported an error", "warning", _NVLINK5, "link")),
    ((145,), Xid("NVLink 5: the unit RLW reported an error", "warning", _NVLINK5, "link")),
    ((149,), Xid("NVLink 5: a link event (NETIR)", "warning", _NVLINK5, "link")),
    ((151,), Xid("encryption keys could not be renewed", "critical", "Restart the virtual machine.", "driver")),
    ((152, 153), Xid("the deep-learning accelerator (DLA) reported an error", "warning", _RESTART, "application")),
    (
        (154,),
        Xid("what the driver advises for this GPU has changed", "warning", "Do what the raw line names.", "notice"),
    ),
    ((155,), Xid("software took an NVLink down", "warning", _RESET, "link")),
    ((156,), Xid("a faulty part of the GPU was taken out of use", "warning", _RESET, "hardware")),
    ((157,), Xid("a faulty part of the GPU could not be taken out of use", "critical", _RESET, "hardware")),
    ((158,), Xid("a part of the GPU did not answer, fatally", "critical", _RESET, "hardware")),
    ((159,), Xid("an error on the link to the CPU's coherent interconnect (CHI)", "warning", _SUPPORT, "link")),
    ((160,), Xid("a memory channel was taken out of use", "warning", _RESET, "memory")),
    ((161,), Xid("a memory channel could not be taken out of use", "warning", _RESET, "memory")),
    ((162, 163, 164, 165), Xid("a notice about smoothing the power draw", "info", _IGNORE, "notice")),
    ((166, 170), Xid("an NVLink error under confidential computing", "warning", _SUPPORT, "link")),
    ((167,), Xid("PCIe did not answer, fatally", "critical", "Reboot the machine.", "link")),
    ((168,), Xid("the GPU runs with less memory than it has", "warning", _SUPPORT, "memory")),
    ((169,), Xid("the GPU's security processor (SEC2) halted", "critical", _RESET, "hardware")),
    ((171,), Xid("detail of an Xid 48: the error was in device memory", "critical", _DOUBLE_BIT, "memory")),
    ((172,), Xid("detail of an Xid 48: the error was in on-chip memory", "critical", _DOUBLE_BIT, "memory")),
    ((173,), Xid("a fatal error on the link between CPU and GPU (C2C)", "warning", _LOOK_UP, "link")),
    ((174,), Xid("the driver ended a process without a word to it", "warning", _LOOK_UP, "driver")),
    ((175,), Xid("an error of the memory subsystem", "warning", _LOOK_UP, "memory")),
    ((176,), Xid("a PCIe fault that was corrected", "warning", _LOOK_UP, "link")),
)

XIDS: Final[Mapping[int, Xid]] = MappingProxyType({code: xid for codes, xid in _ROWS for code in codes})


def describe(code: int) -> Xid:
    """Return what is known of Xid `code`; an unknown number is a warning that points at the raw line."""
    known = XIDS.get(code)
    if known is not None:
        return known
    return Xid(
        f"Xid {code} is not in our table (as of {CATALOGUE_DATE}): the raw line has the driver's own words",
        "warning",
        _LOOK_UP,
        "unknown",
    )
