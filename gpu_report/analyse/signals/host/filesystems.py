"""Filesystems: the one that a folder lies on, and which lie across a network, by their type and what is mounted."""

from pathlib import PurePosixPath

from gpu_report.model import Mount

NETWORK = frozenset(
    {
        *("nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "lustre", "glusterfs", "beegfs", "gpfs", "afs", "orangefs"),
        *("wekafs", "9p", "virtiofs", "davfs", "ncpfs", "pvfs2", "panfs"),
    }
)
# A program's own filesystem is named by the program; what is none of these may be local (fuse-overlayfs).
PROGRAMS = ("sshfs", "s3fs", "mountpoint-s3", "gcsfuse", "goofys", "rclone", "juicefs", "glusterfs", "ceph", "blobfuse")


def is_network(kind: str, source: str = "") -> bool:
    """Tell whether a filesystem of this type, mounted from there, answers across a network."""
    named = (kind.removeprefix("fuse."), source) if kind.startswith("fuse") else ()
    return kind in NETWORK or any(name.startswith(PROGRAMS) for name in named)


def is_remote(kind: str, source: str = "") -> bool:
    """Tell whether a filesystem lies across a network or behind a program (FUSE): no reading of a disk counts it."""
    return is_network(kind, source) or kind.partition(".")[0] == "fuse"


def mount_of(folder: str, mounts: tuple[Mount, ...]) -> Mount | None:
    """Return the filesystem that a folder lies on: the one mounted nearest above it; None where none is known."""
    above = [mount for mount in mounts if PurePosixPath(folder).is_relative_to(mount.point)]
    return max(above, key=lambda mount: len(PurePosixPath(mount.point).parts), default=None)
