"""Filesystems as a made-up /proc and /sys show them."""

import os

import pytest

from gpu_report.record.host import mounts
from gpu_report.record.host.mounts import MOST_MOUNTS

LINE = "36 35 {number} / {point} rw,noatime shared:1 - {kind} {source} rw,errors=continue\n"


class Machine:
    def __init__(self, folder):
        self.proc, self.sys = folder / "proc", folder / "sys"
        (self.proc / "self").mkdir(parents=True)
        (self.sys / "class/block").mkdir(parents=True)
        (self.sys / "dev/block").mkdir(parents=True)
        self.lines = ""

    def disk(self, path, number, *, rotational, vendor="", partition=""):
        """Add a disk at a path of /sys/devices, or a partition of it, which has the number."""
        folder = self.sys / "devices" / path
        (folder / "queue").mkdir(parents=True, exist_ok=True)
        (folder / "device").mkdir(exist_ok=True)
        (folder / "queue/rotational").write_text(f"{int(rotational)}\n")
        (folder / "device/vendor").write_text(f"{vendor}\n")
        if partition:
            folder /= partition
            folder.mkdir()
            (folder / "partition").write_text("1\n")
        (self.sys / "dev/block" / number).symlink_to(folder)
        (self.sys / "class/block" / folder.name).symlink_to(folder)

    def mount(self, point, kind, source, number="0:42"):
        self.lines += LINE.format(point=point, kind=kind, source=source, number=number)

    def mounts(self):
        (self.proc / "self/mountinfo").write_text(self.lines)
        found = mounts.mounts(self.proc, self.sys)
        return found if found is None else {mount["point"]: mount for mount in found}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    asked = []

    def statvfs(path):
        asked.append(path)
        return os.statvfs_result((4096, 4096, 0, 512, 512, 0, 0, 0, 0, 255))

    monkeypatch.setattr(mounts.os, "statvfs", statvfs)
    machine = Machine(tmp_path)
    machine.asked = asked
    return machine


def test_a_partition_has_the_kind_of_its_disk(machine):
    machine.disk("pci0000:00/ata1/block/sda", "8:1", rotational=True, vendor="ATA", partition="sda1")
    machine.disk("pci0000:00/nvme/nvme0/nvme0n1", "259:0", rotational=False)
    machine.mount("/", "ext4", "/dev/nvme0n1", "259:0")
    machine.mount("/data", "ext4", "/dev/sda1", "8:1")
    found = machine.mounts()
    told = ("type", "source", "device", "rotational", "free_mib")
    assert [found["/"][name] for name in told] == ["ext4", "/dev/nvme0n1", "nvme0n1", False, 2]
    assert [found["/data"][name] for name in told] == ["ext4", "/dev/sda1", "sda", True, 2]


def test_a_disk_without_a_number_of_its_own_is_found_by_its_name(machine):
    machine.disk("pci0000:00/ata1/block/sda", "8:0", rotational=True)
    machine.mount("/data", "btrfs", "/dev/sda", "0:31")
    assert machine.mounts()["/data"]["rotational"] is True


@pytest.mark.parametrize(
    ("path", "vendor"), [("pci0000:00/virtio1/block/vda", ""), ("pci0000:00/host0/block/sda", "QEMU")]
)
def test_a_virtual_disk_tells_nothing_of_the_one_beneath(machine, path, vendor):
    machine.disk(path, "254:0", rotational=True, vendor=vendor)
    machine.mount("/", "ext4", "/dev/root", "254:0")
    assert machine.mounts()["/"]["rotational"] is None
    assert machine.mounts()["/"]["device"] == path.rpartition("/")[2]


def test_a_network_filesystem_is_named_and_never_touched(machine):
    machine.mount("/mnt/my\\040data", "nfs4", "server:/export")
    machine.mount("/mnt/secret", "fuse.sshfs", "ftp://me:hunter2@server/x")
    machine.mount("/dev/shm", "tmpfs", "tmpfs")
    found = machine.mounts()
    assert (found["/mnt/my data"]["type"], found["/mnt/my data"]["source"]) == ("nfs4", "server:/export")
    assert found["/mnt/my data"]["free_mib"] is None
    assert "hunter2" not in str(found)
    assert machine.asked == ["/dev/shm"]


def test_what_holds_no_data_set_is_left_out_and_the_last_mount_of_a_folder_counts(machine):
    for point in ("/proc", "/sys/fs/cgroup", "/dev/pts", "/var/lib/docker/overlay2/x/merged", "/run/user/0", "/snap/x"):
        machine.mount(point, "tmpfs", "tmpfs")
    machine.mount("/data", "ext4", "/dev/sdx")
    machine.mount("/data", "nfs", "server:/export")
    machine.lines += "a torn line\n36 35 0:1 / /x rw - ext4\n"
    assert {point: mount["type"] for point, mount in machine.mounts().items()} == {"/data": "nfs"}


def test_too_many_are_not_known_rather_than_cut_short(machine):
    for number in range(MOST_MOUNTS + 1):
        machine.mount(f"/mnt/{number}", "ext4", "/dev/sdx")
    assert machine.mounts() is None


def test_a_machine_that_tells_nothing(tmp_path):
    assert mounts.mounts(tmp_path, tmp_path) is None


def test_this_machine_has_a_root():
    found = mounts.mounts()
    assert found is None or "/" in {mount["point"] for mount in found}


def test_a_folder_that_may_not_be_looked_into_leaves_the_list_unknown(tmp_path, monkeypatch):
    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("gpu_report.record.host.mounts._block", forbidden)
    assert mounts.mounts() is None
