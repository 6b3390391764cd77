"""A training whose own memory grows, so that its images no longer fit into the page cache beside it."""

from gpu_report.analyse.causes import thresholds as th
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.model import Advice
from gpu_report.wording import MIB_PER_GIB

SHORT = "Find what grows in the training's memory, which leaves no room for the images"
WHY = "Lists of Python objects in a data set grow in each worker; arrays do not. Until then keep the images on an SSD"


def images_evicted(signals: IntervalSignals) -> Advice | None:
    """Return to look for what grows, where the training's own memory took most of what was free, and reads rose.

    None where that was not read, or where others took the memory.
    """
    own, own_before = signals.within("trainer_memory_mib"), signals.typical("trainer_memory_mib")
    free, free_before = signals.within("memory_available_mib"), signals.typical("memory_available_mib")
    read, read_before = signals.within("trainer_read_mib_s"), signals.typical("trainer_read_mib_s")
    if own is None or own_before is None or free is None or free_before is None or read is None or read_before is None:
        return None
    fell, rose = free_before - free, read >= th.OWN_READS_ROSE * max(read_before, th.READ_MIB_S)
    if not rose or fell < th.ROOM_FELL_SHARE * free_before or own - own_before < th.OWN_GREW_SHARE * fell:
        return None
    grew, left = (_from_to(*each) for each in ((own_before, own), (free_before, free)))
    reads = f"reads from the disk from {read_before:.0f} to {read:.0f} MiB/s"
    return Advice(f"{SHORT}: it grew from {grew}, {reads}; available memory fell from {left}. {WHY}", short=SHORT)


def _from_to(before_mib: float, after_mib: float) -> str:
    return f"{before_mib / MIB_PER_GIB:.0f} to {after_mib / MIB_PER_GIB:.0f} GiB"
