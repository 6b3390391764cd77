"""A slow file system: passes a folder through FUSE and waits before each read and each write.

    python slow_disk.py FOLDER MOUNT_POINT READ_S WRITE_S        (root; runs until it is killed or unmounted)

Requests are answered by threads, as by a server that is far away: many wait at the same time. The kernel asks for up to
128 KiB a request. Only what a training needs is there; the layout is that of the kernel's `uapi/linux/fuse.h`, 7.31.
"""

import ctypes
import errno
import os
import struct
import sys
import threading
import time

HEADER = struct.Struct("<IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding
THREADS = 24
ROOT = 1
FOREVER_S = 3600  # how long names and attributes are kept by the kernel: only reads and writes are slow


class SlowDisk:
    """The folder behind the mount point; nodes are numbered as they are met."""

    def __init__(self, folder: str, device: int, read_s: float, write_s: float) -> None:
        self.folder, self.device, self.read_s, self.write_s = folder, device, read_s, write_s
        self.paths = {ROOT: ""}
        self.nodes = {"": ROOT}
        self.lock = threading.Lock()
        self.answers = {
            1: self.lookup, 3: self.attributes, 4: self.set_attributes, 9: self.make_folder, 10: self.unlink,
            11: self.unlink_folder, 12: self.rename_1, 14: self.open, 15: self.read, 16: self.write, 17: self.room,
            18: self.release, 20: self.nothing, 25: self.nothing, 26: self.start, 27: self.open_folder,
            28: self.read_folder, 29: self.nothing, 34: self.nothing, 35: self.create, 45: self.rename_2,
        }  # fmt: skip

    def serve(self) -> None:
        while True:
            try:
                request = os.read(self.device, 1 << 20)
            except OSError as error:
                if error.errno in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                    continue
                return
            self.answer(request)

    def answer(self, request: bytes) -> None:
        _, opcode, unique, node, *_ = HEADER.unpack_from(request)
        if opcode in (2, 36, 42):  # forget, interrupt: nobody waits for an answer
            return
        try:
            function = self.answers.get(opcode)
            if function is None:
                raise OSError(errno.ENOSYS, "not here")
            payload, error = function(node, request[HEADER.size :]), 0
        except OSError as failed:
            payload, error = b"", -(failed.errno or errno.EIO)
        try:
            os.write(self.device, struct.pack("<IiQ", 16 + len(payload), error, unique) + payload)
        except OSError:
            return

    def path(self, node: int) -> str:
        return os.path.join(self.folder, self.paths[node])

    def child(self, node: int, name: bytes) -> str:
        return os.path.join(self.paths[node], os.fsdecode(name.rstrip(b"\0")))

    def entry(self, path: str) -> bytes:
        told = os.lstat(os.path.join(self.folder, path))
        with self.lock:
            node = self.nodes.setdefault(path, len(self.paths) + 1)
            self.paths[node] = path
        return struct.pack("<QQQQII", node, 0, FOREVER_S, FOREVER_S, 0, 0) + self.attr(node, told)

    @staticmethod
    def attr(node: int, told: os.stat_result) -> bytes:
        times = (int(told.st_atime), int(told.st_mtime), int(told.st_ctime), 0, 0, 0)
        sizes = (node, told.st_size, told.st_blocks)
        return struct.pack("<6Q10I", *sizes, *times[:3], *times[3:], told.st_mode, 1, 0, 0, 0, 4096, 0)

    def start(self, node: int, body: bytes) -> bytes:
        parallel = 1 << 18  # FUSE_PARALLEL_DIROPS
        big_writes = 1 << 5
        return struct.pack("<4I2H2I2H8I", 7, 31, 1 << 17, parallel | big_writes, 64, 48, 1 << 17, 1, 32, 0, *[0] * 8)[
            :64
        ]

    def lookup(self, node: int, body: bytes) -> bytes:
        return self.entry(self.child(node, body))

    def attributes(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", FOREVER_S, 0, 0) + self.attr(node, os.lstat(self.path(node)))

    def set_attributes(self, node: int, body: bytes) -> bytes:
        valid, _, _, size = struct.unpack_from("<IIQQ", body)
        if valid & 8:
            os.truncate(self.path(node), size)
        return self.attributes(node, body)

    def make_folder(self, node: int, body: bytes) -> bytes:
        path = self.child(node, body[8:])
        os.mkdir(os.path.join(self.folder, path))
        return self.entry(path)

    def unlink(self, node: int, body: bytes) -> bytes:
        os.unlink(os.path.join(self.folder, self.child(node, body)))
        return b""

    def unlink_folder(self, node: int, body: bytes) -> bytes:
        os.rmdir(os.path.join(self.folder, self.child(node, body)))
        return b""

    def rename_1(self, node: int, body: bytes) -> bytes:
        return self.renamed(node, struct.unpack_from("<Q", body)[0], body[8:])

    def rename_2(self, node: int, body: bytes) -> bytes:
        return self.renamed(node, struct.unpack_from("<Q", body)[0], body[16:])

    def renamed(self, node: int, to_node: int, names: bytes) -> bytes:
        old, new = names.split(b"\0")[:2]
        before, after = self.child(node, old), self.child(to_node, new)
        os.rename(os.path.join(self.folder, before), os.path.join(self.folder, after))
        with self.lock:
            moved = self.nodes.pop(before, None)
            if moved:
                self.nodes[after] = moved
                self.paths[moved] = after
        return b""

    def open(self, node: int, body: bytes) -> bytes:
        flags = struct.unpack_from("<I", body)[0] & ~(os.O_EXCL | os.O_CREAT)
        return struct.pack("<QII", os.open(self.path(node), flags), 0, 0)

    def create(self, node: int, body: bytes) -> bytes:
        flags, mode = struct.unpack_from("<II", body)
        path = self.child(node, body[16:])
        file = os.open(os.path.join(self.folder, path), flags | os.O_CREAT, mode & 0o777)
        return self.entry(path) + struct.pack("<QII", file, 0, 0)

    def read(self, node: int, body: bytes) -> bytes:
        file, offset, size = struct.unpack_from("<QQI", body)
        time.sleep(self.read_s)
        return os.pread(file, size, offset)

    def write(self, node: int, body: bytes) -> bytes:
        file, offset, size = struct.unpack_from("<QQI", body)
        time.sleep(self.write_s)
        return struct.pack("<II", os.pwrite(file, body[40 : 40 + size], offset), 0)

    def release(self, node: int, body: bytes) -> bytes:
        os.close(struct.unpack_from("<Q", body)[0])
        return b""

    def open_folder(self, node: int, body: bytes) -> bytes:
        return struct.pack("<QII", node, 0, 0)

    def read_folder(self, node: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        names = [".", "..", *sorted(os.listdir(self.path(node)))]
        out = b""
        for number, name in enumerate(names[offset:], offset + 1):
            raw = os.fsencode(name)
            one = struct.pack("<QQII", number + 1, number, len(raw), 0) + raw
            one += b"\0" * (-len(one) % 8)
            if len(out) + len(one) > size:
                break
            out += one
        return out

    def room(self, node: int, body: bytes) -> bytes:
        told = os.statvfs(self.folder)
        counts = (told.f_blocks, told.f_bfree, told.f_bavail, told.f_files, told.f_ffree)
        return struct.pack("<5Q4I6I", *counts, told.f_bsize, 255, told.f_frsize, *[0] * 7)

    def nothing(self, node: int, body: bytes) -> bytes:
        return b""


def main() -> None:
    folder, mount_point, read_s, write_s = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    os.makedirs(mount_point, exist_ok=True)
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other".encode()
    if ctypes.CDLL(None, use_errno=True).mount(b"slow", mount_point.encode(), b"fuse", 0, options):
        sys.exit(f"not mounted: {os.strerror(ctypes.get_errno())}")
    disk = SlowDisk(os.path.abspath(folder), device, float(read_s), float(write_s))
    threads = [threading.Thread(target=disk.serve, daemon=True) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
