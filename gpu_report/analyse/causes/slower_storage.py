"""What to do about storage that answers a loader more slowly than before, or that is needed more, or but at first."""

import re
from collections.abc import Sequence

import pandas as pd

from gpu_report.analyse.causes import own_memory
from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.cpu_users import new_cpu_users
from gpu_report.analyse.causes.image_storage import ImageStorage, copy_images, image_storage
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.thresholds import MOSTLY_SHARE
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Advice
from gpu_report.wording import amount, upper_first

DISK_FAULTS = frozenset({"block", "nvme"})  # kinds of kernel messages that name a disk as it is mounted
TENTHS_MIB_S = 9.95  # what is read is said to a tenth under this
HOSTED = frozenset({"9p", "virtiofs"})  # folders that the host of a virtual machine lends it
SLOWER_STORAGE = Advice(
    "Find what changed for the storage: another program that uses that disk, or memory that no longer holds the images",
    short="Find what changed for the storage of the images",
)


def advice_on_remote(signals: IntervalSignals) -> tuple[Advice, ...]:
    """Return what to do about images across a network or behind a program; of a disk of here which is faster.

    Nothing of this machine says who else uses a network drive.
    """
    storage = image_storage(signals)
    if storage is None or not storage.is_remote:
        return copy_images(signals) if signals.is_steady else ()
    if _stood(signals, storage):
        short = f"Find why {_who_answers(storage)} did not answer"
        return (
            Advice(f"{short}: look at its load and the network. A copy on a local disk needs neither", short=short),
        )
    if signals.is_steady or signals.in_first_epoch or storage.type in HOSTED or not _slowed(signals, storage):
        return copy_images(signals)
    short = "Copy the images to a local disk, or find what slowed their network drive"
    return (Advice(f"{short} ({storage.type}): a backup, other machines or the network itself", short=short),)


def faster_disk(signals: IntervalSignals | None) -> tuple[Advice, ...]:
    """Return to put the images on a faster disk, and how fast, where a disk of this machine is waited for all the time.

    Without waiting for data a training would read as much in less time.
    """
    storage = None if signals is None else image_storage(signals)
    if signals is None or storage is None or not storage.device:
        return ()
    short = f"Put the images on a faster disk than {storage.words}"
    read, waited = signals.within("trainer_read_mib_s"), signals.waited_share
    if read is None or read < th.READ_MIB_S or not waited or waited >= 1:
        return (Advice(short, short=short),)
    gives, takes = read_words(read), read_words(read / (1 - waited))
    return (Advice(f"{short}. It gives {gives}, and the GPU could take about {takes}", short=short),)


def read_words(mib_s: float) -> str:
    """Return how much is read a second, in two digits or more: 6.8 MiB/s, 83 MiB/s."""
    return amount(mib_s if mib_s < TENTHS_MIB_S else round(mib_s), "MiB/s")


def stood_words(signals: IntervalSignals) -> str:
    """Return that what holds the images did not answer, and gave nothing; empty where that is not seen."""
    storage = image_storage(signals)
    stood = storage is not None and _stood(signals, storage)
    return f"{_who_answers(storage)} did not answer" if stood and storage is not None else ""


def _who_answers(storage: ImageStorage) -> str:
    who = "host" if storage.type in HOSTED else "server" if storage.is_network else "program"
    return f"the {who} of {storage.words}"


def _slowed(signals: IntervalSignals, storage: ImageStorage) -> bool:
    """Tell whether a network drive held workers up that it did not hold up before, as far as that is known."""
    before, there = signals.typical("workers_blocked"), signals.typical("workers")
    return storage.is_network and (before is None or not there or before < th.STUCK_SHARE * there)


def _stood(signals: IntervalSignals, storage: ImageStorage) -> bool:
    """Tell whether remote storage gave nothing: no byte came, as they did before, or one read lasted for most of it."""
    if signals.is_steady or not storage.is_remote:
        return False
    now, before = signals.within("trainer_read_mib_s"), signals.typical("trainer_read_mib_s")
    if now is not None and before is not None and before >= th.READ_MIB_S:
        return now < th.NOTHING_READ_SHARE * before
    wait = signals.worker_file_wait
    return wait is not None and wait.wait.duration_s >= MOSTLY_SHARE * (signals.end_t_s - signals.start_t_s)


def advice_on_storage(signals: IntervalSignals) -> Advice:
    """Return what to do about storage that is needed more, or answers less: whoever reads it, the memory, or itself.

    Which of several disks others read from is not recorded; that they read far more than before is.
    """
    disk, own = signals.within("disk_read_mib_s"), signals.within("trainer_read_mib_s")
    disk_before, before = signals.typical("disk_read_mib_s"), signals.typical("trainer_read_mib_s")
    if pushed_out := own_memory.images_evicted(signals):
        return pushed_out
    if disk is None or own is None or disk_before is None or before is None:
        return SLOWER_STORAGE
    others, others_before = disk - own, disk_before - before
    if others >= th.OTHERS_READ_SHARE * own and _rose(others, others_before):
        return _keep_others_off(signals, others, own)
    grew = f"{before:.0f} to {own:.0f} MiB/s"
    if _rose(own, before):
        short = "Leave memory for the images, which are read from disk again"
        why = "The page cache no longer holds them; `free -h` shows what it has"
        return Advice(f"{short}: reads grew from {grew}. {why}", short=short)
    if before >= th.READ_MIB_S and own < th.READS_FELL_SHARE * before and others < th.OTHERS_READ_SHARE * own:
        return _gives_less(signals, grew)
    return SLOWER_STORAGE


def _gives_less(signals: IntervalSignals, fell: str) -> Advice:
    """Return what to do about a disk that became slower: to leave it where the kernel says that it fails."""
    storage = image_storage(signals)
    whose = "all ranks'" if signals.ranks > 1 else "the training's"
    read = f"{whose} reads fell from {fell}"
    if storage is not None and _fails(signals, storage):
        short = f"Copy the images from {storage.words} to another disk: by the kernel log this one fails"
        return Advice(f"{short}. {upper_first(read)}", short=short)
    short = f"Find why reads from {'the disk of the images' if storage is None else storage.words} became slower"
    why = "a cloud volume out of burst credits, a throttled or a failing disk. A faster disk or volume helps"
    return Advice(f"{short}: {read} while it waited for more. It may be {why}", short=short)


def _fails(signals: IntervalSignals, storage: ImageStorage) -> bool:
    """Tell whether the kernel named errors of the disk on which images lie."""
    faults = [near.event for near in signals.kernel if near.event.kind in DISK_FAULTS]
    return any(_is_of(event.subject, storage.device) for event in faults if event.severity != "info")


def _is_of(named: str, disk: str) -> bool:
    """Tell whether what the kernel names is a disk, a partition of it (sda1), or its controller (nvme0 of nvme0n1)."""
    partition, controller = rf"{re.escape(disk)}(?:p?\d+)?", rf"{re.escape(named)}n\d+"
    return bool(disk and named) and bool(re.fullmatch(partition, named) or re.fullmatch(controller, disk))


def until_cached(
    host: pd.DataFrame, waiting: Sequence[Span], later: Sequence[Span], which: str = "later"
) -> tuple[Advice, ...]:
    """Return that storage was waited for only until memory held the images, by what was read in `later` spans.

    Empty where they were read from storage as before, or nobody knows: then a faster disk may help. Of images twice as
    large as memory half are read each time, in no more time than at first: that is no such fall.
    """
    for name in ("trainer_read_mib_s", "disk_read_mib_s"):
        then, now = (column_mean(host, name, spans) for spans in (waiting, later))
        if then is not None and now is not None:
            short = f"A faster disk helps only until memory holds the images, as it did {which}"
            why = f"reads fell from {then:.0f} to {now:.0f} MiB/s"
            return (Advice(f"{short}: {why}", short=short),) if _rose(then, now) else ()
    return ()


def _keep_others_off(signals: IntervalSignals, others: float, own: float) -> Advice:
    theirs, ours = amount(others, "MiB/s"), amount(own, "MiB/s")
    short, read = "Keep other programs off the disk of the images", f"others read {theirs}, the training {ours}"
    came = " and ".join(f"{use.most.who} (pid {use.most.pid})" for use in new_cpu_users(signals, th.READER_CPU_PCT))
    who = f"{came} used the CPU then, and hardly before" if came else "`sudo iotop -o` shows who reads"
    return Advice(f"{short}: {read}. {who}; `df` shows what lies on that disk", short=short)


def _rose(now_mib_s: float, before_mib_s: float) -> bool:
    return now_mib_s >= th.READS_ROSE_FACTOR * max(before_mib_s, th.READ_MIB_S)
