"""What to do about storage that answers a loader more slowly than before, or that is needed more, or but at first."""

from collections.abc import Sequence

import pandas as pd

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.causes.cpu_users import new_cpu_users
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.timeseries.columns import column_mean
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Advice
from gpu_report.wording import amount

SLOWER_STORAGE = Advice(
    "Find what changed for the storage: another program that uses that disk, or memory that no longer holds the images",
    short="Find what changed for the storage of the images",
)


def advice_on_storage(signals: IntervalSignals) -> Advice:
    """Return what to do about storage that is needed more, or answers less: whoever reads it, the memory, or both.

    Nothing of this machine's disks says who uses a network drive. Which of several disks others read from is not
    recorded; that they read far more than before is.
    """
    wait = signals.worker_file_wait
    if wait is not None and wait.is_network:
        short = "Copy the images to a local disk, or find what slowed their network drive"
        why = "a backup, other machines or the network itself"
        return Advice(f"{short} ({wait.wait.filesystem}): {why}", short=short)
    disk, own = signals.within("disk_read_mib_s"), signals.within("trainer_read_mib_s")
    disk_before, before = signals.typical("disk_read_mib_s"), signals.typical("trainer_read_mib_s")
    if disk is None or own is None or disk_before is None or before is None:
        return SLOWER_STORAGE
    others, others_before = disk - own, disk_before - before
    if others >= th.OTHERS_READ_SHARE * own and _rose(others, others_before):
        theirs, ours = amount(others, "MiB/s"), amount(own, "MiB/s")
        short, read = "Keep other programs off the disk of the images", f"others read {theirs}, the training {ours}"
        came = " and ".join(f"{use.most.who} (pid {use.most.pid})" for use in new_cpu_users(signals, th.READER_CPU_PCT))
        who = f"{came} used the CPU then, and hardly before" if came else "`sudo iotop -o` shows who reads"
        return Advice(f"{short}: {read}. {who}; `df` shows what lies on that disk", short=short)
    if _rose(own, before):
        grew = f"reads grew from {before:.0f} to {own:.0f} MiB/s"
        short = "Leave memory for the images, which are read from disk again"
        why = "The page cache no longer holds them; `free -h` shows what it has"
        return Advice(f"{short}: {grew}. {why}", short=short)
    return SLOWER_STORAGE


def until_cached(
    host: pd.DataFrame, waiting: Sequence[Span], later: Sequence[Span], which: str = "later"
) -> tuple[Advice, ...]:
    """Return that storage was waited for only until memory held the images, by what was read in `later` spans.

    Empty where they were read from storage as before, or nobody knows: then a faster disk may help.
    """
    for name in ("trainer_read_mib_s", "disk_read_mib_s"):
        then, now = (column_mean(host, name, spans) for spans in (waiting, later))
        if then is not None and now is not None:
            short = f"A faster disk helps only until memory holds the images, as it did {which}"
            why = f"reads fell from {then:.0f} to {now:.0f} MiB/s"
            return (Advice(f"{short}: {why}", short=short),) if _rose(then, now) else ()
    return ()


def _rose(now_mib_s: float, before_mib_s: float) -> bool:
    return now_mib_s >= th.READS_ROSE_FACTOR * max(before_mib_s, th.READ_MIB_S)
