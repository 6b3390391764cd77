"""The system calls in which a process may wait for a file, by their numbers, and the file that a call is about."""

import os
from pathlib import Path
from typing import Final

from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_text
from gpu_report.record.host.mounts import plain
from gpu_report.record.proc_files import read_text

# By architecture (the kernel's unistd.h): calls whose first argument is an open file, and calls that name one by its
# path, which stands in the process's memory and is not read.
_OF_OPEN_FILES: Final = {
    "x86_64": "read 0 write 1 close 3 fstat 5 ioctl 16 pread 17 pwrite 18 readv 19 writev 20 sendfile 40 connect 42 "
    "sendto 44 recvfrom 45 sendmsg 46 recvmsg 47 flock 73 fsync 74 fdatasync 75 ftruncate 77 getdents 78 "
    "getdents64 217 fallocate 285 preadv 295 pwritev 296 syncfs 306 copy_file_range 326",
    "aarch64": "flock 32 ftruncate 46 fallocate 47 close 57 getdents64 61 read 63 write 64 readv 65 writev 66 pread 67 "
    "pwrite 68 preadv 69 pwritev 70 sendfile 71 fstat 80 fsync 82 fdatasync 83 ioctl 29 connect 203 sendto 206 "
    "recvfrom 207 sendmsg 211 recvmsg 212 syncfs 267 copy_file_range 285",
}
_OF_PATHS: Final = {
    "x86_64": "open 2 stat 4 lstat 6 rename 82 mkdir 83 unlink 87 openat 257 fstatat 262 unlinkat 263 statx 332",
    "aarch64": "mkdirat 34 unlinkat 35 renameat 38 openat 56 fstatat 79 statx 291",
}


def _by_number(calls: str) -> dict[int, str]:
    words = calls.split()
    return {int(number): name for name, number in zip(words[::2], words[1::2], strict=True)}


FILE_CALLS: Final = {machine: _by_number(calls) for machine, calls in _OF_OPEN_FILES.items()}
PATH_CALLS: Final = {machine: _by_number(calls) for machine, calls in _OF_PATHS.items()}
# What no data lies in: the kernel's own, devices, what has no name.
PSEUDO: Final = ("/proc/", "/sys/", "/dev/", "/memfd:", "anon_inode:")
SHARED_MEMORY: Final = "/dev/shm/"  # noqa: S108 - a name that is compared
UNNAMED: Final = ("pipe", "socket")  # `pipe:[4711]`


def call_of(proc: Path, pid: int, machine: str = os.uname().machine) -> tuple[str, int | None]:
    """Return the system call that a process's main thread is in, and the file descriptor that it is about.

    The name is empty where it is in none that waits for a file, and where we may not look.
    """
    words = read_text(proc / str(pid) / "syscall").split()
    if len(words) < 2 or not words[0].isdigit():
        return "", None
    number = int(words[0])
    name = FILE_CALLS.get(machine, {}).get(number)
    if name is not None:
        return name, int(words[1], 16)
    return PATH_CALLS.get(machine, {}).get(number, ""), None


def file_of(proc: Path, pid: int, descriptor: int) -> str:
    """Return the path of an open file as the kernel has it, empty for what is none that data lie in.

    The link is read and never followed: on a filesystem whose server is gone that would take us with it.
    """
    try:
        path = str((proc / str(pid) / "fd" / str(descriptor)).readlink())
    except OSError:
        return ""
    if path.startswith(tuple(f"{kind}:" for kind in UNNAMED)):
        return path.partition(":")[0]
    return "" if path.startswith(PSEUDO) and not path.startswith(SHARED_MEMORY) else path


class Filesystems:
    """The type of the filesystem that a path lies on, by the names of mount points alone."""

    MOST = 1000  # files; then they are looked up anew

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._known: dict[str, str] = {}

    def type_of(self, path: str, pid: int) -> str:
        """Return the type (nfs4, ext4, fuse.sshfs), empty where it is not known."""
        if path not in self._known:
            if len(self._known) >= self.MOST:
                self._known.clear()
            self._known[path] = self._type_of(path, pid)
        return self._known[path]

    def _type_of(self, path: str, pid: int) -> str:
        best, found = "", ""
        for line in read_text(self._proc / str(pid) / "mountinfo").splitlines():
            before, _, after = line.partition(" - ")
            fields = before.split(" ")
            point = plain(fields[4]) if len(fields) > 4 else ""
            above = point in {"/", path} or path.startswith(f"{point}/")
            if point and above and len(point) >= len(best):  # a later one hides an earlier one
                best, found = point, after.split(" ")[0]
        return found


def shown(path: str) -> str:
    """Return a path as it is written down: without secrets in it."""
    return hide_in_text(path)
