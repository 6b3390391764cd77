"""Where images lie, and what to do about storage across a network or behind a program."""

import dataclasses

import numpy as np
import pytest

from gpu_report.analyse.causes.image_storage import copy_images, image_storage
from gpu_report.analyse.causes.slower_storage import advice_on_remote, advice_on_storage, stood_words
from gpu_report.analyse.signals.host.process_waits import FileWait
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signal_table import NO_SIGNALS, SignalTable
from gpu_report.model import KernelEvent, Mount, NearbyKernelEvent, ProcessWait

ROOT = Mount("/", "ext4", "/dev/sda1", "sda", None, 900_000.0)
DRIVE = Mount("/content/drive", "fuse.drive", "drive")
RAID = Mount("/raid", "xfs", "/dev/md0", "md0", True, 9_000.0)
WINDOWS = Mount("/mnt/c", "9p", "C:\\")
NAS = Mount("/mnt/nas", "nfs4", "nas:/sets")
MOUNTS = (ROOT, DRIVE, RAID, WINDOWS, NAS)


def waited(file, filesystem, seconds=2.0):
    return FileWait(seconds, ProcessWait(22.0, 22.0 + seconds, 7, "worker", "D", "", "read", file, filesystem))


def given(folder=None, wait=None, host=NO_SIGNALS, mounts=MOUNTS, **more):
    waits = {"named_file_wait": wait, "worker_file_wait": wait}
    return IntervalSignals(0, 20.0, 40.0, host, NO_SIGNALS, data_folder=folder, mounts=mounts, **waits, **more)


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        (given("/content/drive/MyDrive/a"), "/content/drive (fuse.drive)"),
        (given("/raid/me/images"), "/raid (xfs on the rotating disk md0)"),
        (given("/data/images"), "/data/images (ext4 on sda)"),  # the root has no name that says where
        (given("/data/images", waited("/mnt/nas/a/7.jpg", "nfs4")), "/mnt/nas (nfs4)"),  # the folder may be but a name
        (given(None, waited("/x/7.jpg", "nfs4"), mounts=()), "/x (nfs4)"),
        (given(None, waited("/mnt/nas/a/7.jpg", "cifs")), "/mnt/nas/a (cifs)"),  # mounted since
    ],
)
def test_where_images_lie_is_where_workers_wait_else_what_the_settings_name(signals, words):
    assert image_storage(signals).words == words


@pytest.mark.parametrize("signals", [given(), given("/data", mounts=()), given(None, waited("/x/7.jpg", ""))])
def test_where_images_lie_is_not_known_without_a_filesystem(signals):
    assert image_storage(signals) is None
    assert (copy_images(signals), advice_on_remote(signals), stood_words(signals)) == ((), (), "")


def test_images_behind_a_program_are_to_be_copied_to_a_disk_with_room():
    first, second = copy_images(given("/content/drive/a", data_mib=2048.0))
    assert first.short == "Copy the images from /content/drive (fuse.drive) to a local disk"
    assert "WSL" not in first.text
    assert second.text.startswith("Copy the images (2.0 GiB) to / (ext4 on sda, 879 GiB free)")
    assert "WSL" in copy_images(given("/mnt/c/Users/a"))[0].text
    assert copy_images(given("/raid/a")) == ()  # what kind the other disk is nobody knows
    assert copy_images(given("/a", mounts=(ROOT,))) == ()
    ssd = Mount("/scratch", "xfs", "/dev/nvme0n1", "nvme0n1", False, 900_000.0)
    (copy,) = copy_images(given("/raid/a", mounts=(*MOUNTS, ssd)))
    assert copy.text.startswith("Copy the images to /scratch (xfs on nvme0n1")
    assert copy.short.startswith("Copy the images from /raid (xfs on the rotating disk ")
    assert copy.short.endswith(") to /scratch on nvme0n1")


def blocked(reads, before=20.0, typical_blocked=0.4):
    t_s = np.arange(60.0)
    then = t_s >= 20
    columns = {"trainer_read_mib_s": (before, reads), "workers_blocked": (typical_blocked, 7.0), "workers": (8.0, 8.0)}
    return SignalTable(t_s, {name: np.where(then, b, a) for name, (a, b) in columns.items()}, ~then)


@pytest.mark.parametrize(
    ("signals", "words"),
    [
        (given("/mnt/nas/a", host=blocked(0.0)), "the server of /mnt/nas (nfs4) did not answer"),
        (given("/mnt/nas/a", host=blocked(9.0)), ""),  # slower
        (given("/mnt/nas/a", host=blocked(0.0, before=0.0)), ""),  # the kernel counts nothing there
        (given(None, waited("/mnt/nas/a/7.jpg", "nfs4", 18.0)), "the server of /mnt/nas (nfs4) did not answer"),
        (given(None, waited("/content/drive/7.jpg", "fuse.drive", 18.0)),
         "the program of /content/drive (fuse.drive) did not answer"),
        (given(None, waited("/mnt/c/7.jpg", "9p", 18.0)), "the host of /mnt/c (9p) did not answer"),
        (given("/raid/a", host=blocked(0.0)), ""),
        (given("/mnt/nas/a", host=blocked(0.0), is_steady=True), ""),
    ],
)  # fmt: skip
def test_storage_that_gives_nothing_did_not_answer(signals, words):
    assert stood_words(signals) == words


def test_what_to_do_about_a_network_drive_depends_on_whether_it_held_workers_up_before():
    new, always = given("/mnt/nas/a", host=blocked(9.0)), given("/mnt/nas/a", host=blocked(9.0, 9.0, 6.0))
    assert advice_on_remote(new)[0].short.endswith("or find what slowed their network drive")
    copy = copy_images(new)
    assert advice_on_remote(always) == copy
    assert advice_on_remote(dataclasses.replace(new, is_steady=True)) == copy
    assert advice_on_remote(dataclasses.replace(new, in_first_epoch=True)) == copy
    stood = advice_on_remote(given("/mnt/nas/a", host=blocked(0.0)))
    assert [each.short for each in stood] == ["Find why the server of /mnt/nas (nfs4) did not answer"]


def fell(kind, named, *, severity="critical", ranks=1, folder="/data/images", mounts=MOUNTS):
    """Return what to do where reads fell from 60 to 30 MiB/s, and the kernel named a disk."""
    rows = np.arange(40.0)
    read = np.where(rows >= 20, 30.0, 60.0)
    host = SignalTable(rows, {"disk_read_mib_s": read + 0.5, "trainer_read_mib_s": read}, rows < 20)
    event = KernelEvent(19.0, kind, severity, "raw", "the disk failed", subject=named)
    near = (NearbyKernelEvent(event, -1.0),)
    signals = IntervalSignals(0, 20.0, 40.0, host, host, data_folder=folder, mounts=mounts, kernel=near, ranks=ranks)
    return advice_on_storage(signals)


@pytest.mark.parametrize(("kind", "named"), [("block", "sda"), ("block", "sda1")])
def test_images_leave_a_disk_that_fails_by_the_kernel_log(kind, named):
    advice = fell(kind, named)
    assert advice.short.startswith("Copy the images from /data/images (ext4 on sda) to another disk")
    assert "burst credits" not in advice.text


@pytest.mark.parametrize(
    ("kind", "named", "severity"),
    [("block", "sdab", "critical"), ("block", "sdb", "critical"), ("block", "sda", "info"), ("ata", "ata5", "warning")],
)
def test_another_disk_or_a_notice_says_nothing_of_it(kind, named, severity):
    assert fell(kind, named, severity=severity).short.startswith(
        "Find why reads from /data/images (ext4 on sda) became slower"
    )


def test_the_controller_of_an_nvme_disk_is_that_disk():
    nvme = (Mount("/fast", "xfs", "/dev/nvme0n1p2", "nvme0n1", False, 9_000.0),)
    assert fell("nvme", "nvme0", folder="/fast/a", mounts=nvme).short.startswith("Copy the images from /fast")
    assert fell("nvme", "nvme1", folder="/fast/a", mounts=nvme).short.startswith("Find why reads from /fast")


@pytest.mark.parametrize(("ranks", "whose"), [(1, "the training's reads"), (4, "all ranks' reads")])
def test_reads_that_are_summed_over_ranks_are_said_to_be(ranks, whose):
    assert f"{whose} fell from 60 to 30 MiB/s" in fell("block", "sdz", ranks=ranks).text
