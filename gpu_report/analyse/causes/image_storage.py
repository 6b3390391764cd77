"""Where the images of a training lie, in words, and where on this machine they would lie faster."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.signals.host.filesystems import is_network, is_remote, mount_of
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.model import Advice, Mount
from gpu_report.wording import MIB_PER_GIB

MEMORY, ROOT = "tmpfs", "/"
SHM = "/dev/shm"  # noqa: S108 - only named here
PLAN_9 = "9p"


@dataclass(frozen=True)
class ImageStorage:
    """The filesystem that images were read from: its folder, type, and the mount where that is known."""

    folder: str
    type: str
    mount: Mount | None = None

    @property
    def is_remote(self) -> bool:
        """Tell whether it lies across a network or behind a program: the kernel counts none of its reads and waits."""
        return is_remote(self.type)

    @property
    def is_network(self) -> bool:
        """Tell whether it lies across a network."""
        return is_network(self.type, self.mount.source if self.mount is not None else "")

    @property
    def words(self) -> str:
        """Return it in words: `/mnt/c (9p)`, `/raid (xfs on md0)`."""
        on = f" on {'the rotating disk ' if self.is_rotating else ''}{self.device}" if self.device else ""
        return f"{self.folder} ({self.type}{on})"

    @property
    def device(self) -> str:
        """Return the disk of this machine that it lies on, empty where none is known."""
        return "" if self.is_remote or self.mount is None else self.mount.device or ""

    @property
    def is_rotating(self) -> bool:
        """Tell whether it is known to lie on a rotating disk."""
        return self.mount is not None and self.mount.rotational is True


def image_storage(signals: IntervalSignals) -> ImageStorage | None:
    """Return where the images lie: where the kernel saw workers wait for a file, else where the settings name them."""
    wait = signals.named_file_wait
    if wait is not None and wait.wait.filesystem:
        return _of(str(PurePosixPath(wait.wait.file).parent), wait.wait.filesystem, signals.mounts)
    return None if signals.data_folder is None else _of(signals.data_folder, "", signals.mounts)


def _of(folder: str, kind: str, mounts: Sequence[Mount]) -> ImageStorage | None:
    mount = mount_of(folder, tuple(mounts))
    mount = None if mount is not None and kind and mount.type != kind else mount
    kind = kind or (mount.type if mount is not None else "")
    at = folder if mount is None or mount.point == ROOT else mount.point
    return ImageStorage(at, kind, mount) if kind else None


def copy_images(signals: IntervalSignals) -> tuple[Advice, ...]:
    """Return to copy images from where each file crosses a network or a program to this machine; else nothing.

    From a rotating disk that is worth it where a faster one is known.
    """
    storage = image_storage(signals)
    if storage is None or not (storage.is_remote or storage.is_rotating):
        return ()
    place = None if storage.mount is None else faster_place(storage.mount, tuple(signals.mounts), signals.data_mib)
    if place is not None and not storage.is_remote:
        to_disk = f"{place.point} on {place.device}" if place.device else place.point
        return (copy_to(place, signals.data_mib, short=f"Copy the images from {storage.words} to {to_disk}"),)
    if not storage.is_remote:
        return ()
    to = () if place is None else (copy_to(place, signals.data_mib),)
    short = f"Copy the images from {storage.words} to a local disk"
    why = "each file there goes through a program or across a network"
    why = "under WSL that is a drive of Windows; a folder such as `~/` lies in Linux" if _is_windows(storage) else why
    return (Advice(f"{short}: {why}", short=short), *to)


def _is_windows(storage: ImageStorage) -> bool:
    """Tell whether it is a drive of Windows, as WSL mounts it: 9p, in a folder of one letter."""
    at = PurePosixPath(storage.folder)
    return storage.type == PLAN_9 and len(at.name) == 1 and str(at.parent) == "/mnt"


def faster_place(slow: Mount, mounts: tuple[Mount, ...], size_mib: float | None) -> Mount | None:
    """Return the filesystem here that answers faster and has room: an SSD, else memory; None where there is none.

    A virtual disk does not tell what it is; it is nearer than a network in any case.
    """
    need = th.PLACE_ROOM * size_mib if size_mib is not None else th.PLACE_LEAST_MIB
    roomy = [m for m in mounts if m != slow and m.free_mib is not None and m.free_mib >= need]
    far = is_remote(slow.type, slow.source)
    kinds = (
        [m for m in roomy if m.rotational is False],
        [m for m in roomy if m.type == MEMORY and m.point == SHM and (m.free_mib or 0.0) >= th.PLACE_MEMORY * need],
        [m for m in roomy if m.device is not None and m.rotational is None and far],
    )
    best = next((kind for kind in kinds if kind), [])
    return max(best, key=lambda mount: mount.free_mib or 0.0, default=None)


def copy_to(place: Mount, size_mib: float | None, short: str = "") -> Advice:
    """Return to copy the images to another filesystem of this machine."""
    where = "memory" if place.type == MEMORY else f"{place.type} on {place.device}"
    what = "the images" if size_mib is None else f"the images ({size_mib / MIB_PER_GIB:.1f} GiB)"
    free = "" if place.free_mib is None else f", {place.free_mib / MIB_PER_GIB:.0f} GiB free"
    text = f"Copy {what} to {place.point} ({where}{free}) and name that folder in the data set's YAML file"
    return Advice(text, short=short)
