"""Who emptied the kernel's page cache while a loader waited for storage: the kernel log names the process."""

from collections.abc import Sequence

from gpu_report.model import Advice, Cause, KernelEvent, NearbyKernelEvent

KIND = "drop-caches"
EMPTIED = "emptied the page cache"


def emptied(kernel: Sequence[NearbyKernelEvent]) -> str:
    """Return who emptied the page cache within a stretch, and how often, in words; empty where nobody did."""
    event = _event(kernel)
    return "" if event is None else f"{_who(event)} {EMPTIED}{_often(event)}"


def keep_it_filled(cause: Cause, kernel: Sequence[NearbyKernelEvent]) -> tuple[Advice, ...]:
    """Return what to do about who emptied the cache, where that is a fall's cause: a faster disk would not mend it."""
    event = _event(kernel)
    if event is None or EMPTIED not in cause.explanation:
        return ()
    text = (
        f"Find out what {_who(event)} is, and keep it from emptying the page cache (/proc/sys/vm/drop_caches), which "
        f"it did{_often(event)}: however fast the disk is, each image is read from it again then"
    )
    return (Advice(text),)


def _event(kernel: Sequence[NearbyKernelEvent]) -> KernelEvent | None:
    """Return the event of the process that emptied the cache most often within a stretch."""
    within = [near.event for near in kernel if near.event.kind == KIND and near.offset_s == 0]
    return max(within, key=lambda event: event.count, default=None)


def _who(event: KernelEvent) -> str:
    return event.who("a process").replace("`", "'")  # which would make code of it, to be copied


def _often(event: KernelEvent) -> str:
    return f" {event.count} times" if event.count > 1 else ""
