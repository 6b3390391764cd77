"""The filesystems that data may lie on, with the disk beneath each: a training may read from a slow one unawares.

Read once, from /proc and /sys; a network filesystem is never touched, for one whose server is gone does not answer.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_text
from gpu_report.record.proc_files import read_text

MIB = 2**20
# More is a machine that mounts one for each container. A table cut short would name the wrong filesystem of a folder.
MOST_MOUNTS = 256
# Where no data set lies: the kernel's own, and what container engines and snaps mount by the hundred.
NEARBY = re.compile(
    r"/(proc|sys|dev(?!/shm)|boot|snap|run/(user|docker|containerd|credentials|netns)"
    r"|var/lib/(docker|containerd|kubelet|containers|snapd))(/|$)"
)
MEMORY = "tmpfs"
# A hypervisor shows any disk as rotational: it says nothing about the one beneath.
VIRTUAL = ("/virtio", "/vbd-")
VIRTUAL_VENDORS = ("QEMU", "VMware", "Msft", "Google", "VBOX", "Xen", "Nutanix", "Amazon")
_OCTAL = re.compile(r"\\([0-7]{3})")


@dataclass(frozen=True)
class Filesystem:
    """One filesystem: `device` is the disk's name in /sys/block, `rotational` None where the disk does not tell."""

    point: str
    type: str
    source: str
    device: str | None
    rotational: bool | None
    free_mib: float | None


def mounts(proc: Path = Path("/proc"), sys: Path = Path("/sys")) -> list[dict[str, object]] | None:
    """Return run.json's `mounts`, of one folder the one that is seen; None where they are not known, or too many."""
    found: dict[str, Filesystem] = {}
    try:
        for line in read_text(proc / "self/mountinfo").splitlines():
            mount = _mount(line, sys)
            if mount is not None:
                found[mount.point] = mount  # a later one hides an earlier one
    except (OSError, ValueError):  # /sys may be forbidden: that keeps no command from starting
        return None
    return [asdict(mount) for mount in found.values()] if 0 < len(found) <= MOST_MOUNTS else None


def _mount(line: str, sys: Path) -> Filesystem | None:
    """Return one line of mountinfo (proc(5)): ids, major:minor, root, point, options ... - type, source, options."""
    before, _, after = line.partition(" - ")
    fields, rest = before.split(" "), after.split(" ")
    if len(fields) < 6 or len(rest) < 2:
        return None
    point = plain(fields[4])
    if NEARBY.match(point):
        return None
    kind, source = rest[0], plain(rest[1])
    block = _block(fields[2], source, sys)
    local = kind == MEMORY or (block is not None and not kind.startswith("fuse"))
    return Filesystem(
        point=point,
        type=kind,
        source=hide_in_text(source),
        device=None if block is None else _disk(block).name,
        rotational=None if block is None else _rotational(block),
        free_mib=_free_mib(point) if local else None,
    )


def plain(text: str) -> str:
    """Return a field without its octal escapes (space, tab, newline, backslash)."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), text)


def _block(number: str, source: str, sys: Path) -> Path | None:
    """Return the folder of a mount's block device in /sys; btrfs has a number of its own and names the device."""
    places: Mapping[str, Path] = {"number": sys / "dev/block" / number}
    if source.startswith("/dev/"):
        places = {**places, "name": sys / "class/block" / Path(os.path.realpath(source)).name}
    return next((place.resolve() for place in places.values() if place.exists()), None)


def _disk(block: Path) -> Path:
    """Return the folder of the whole disk: a partition lies within its disk's."""
    return block.parent if (block / "partition").exists() else block


def _rotational(block: Path) -> bool | None:
    disk = _disk(block)
    virtual = any(mark in str(disk) for mark in VIRTUAL)
    vendor = read_text(disk / "device/vendor").strip()
    rotational = read_text(disk / "queue/rotational").strip()
    if virtual or vendor.startswith(VIRTUAL_VENDORS) or rotational not in {"0", "1"}:
        return None
    return rotational == "1"


def _free_mib(point: str) -> float | None:
    try:
        space = os.statvfs(point)
    except OSError:
        return None
    return round(space.f_bavail * space.f_frsize / MIB)
