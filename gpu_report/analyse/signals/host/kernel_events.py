"""Which kernel events lie in a stretch of time or near it, and which of them tells who emptied the page cache."""

from collections.abc import Sequence

from gpu_report.analyse.signals import thresholds as th
from gpu_report.model import KernelEvent, NearbyKernelEvent


def kernel_events_near(
    events: Sequence[KernelEvent], start_s: float, end_s: float, gpu: int | None
) -> tuple[NearbyKernelEvent, ...]:
    """Return the kernel events in a window and shortly before it, nearest first, the same GPU's before another's.

    What befell another program before or after it has no part in it.
    """
    near = [
        NearbyKernelEvent(event, _offset(event, start_s, end_s))
        for event in events
        if event.t_s <= end_s + th.KERNEL_AFTER_S and (event.last_t_s or event.t_s) >= start_s - th.KERNEL_BEFORE_S
    ]
    near = [each for each in near if each.offset_s == 0 or not each.event.of_another]
    near.sort(key=lambda n: (abs(n.offset_s), n.event.gpu not in {gpu, None}, n.event.t_s))
    return tuple(near[: th.KERNEL_LINES_SHOWN])


def cache_dropped(kernel: Sequence[NearbyKernelEvent]) -> KernelEvent | None:
    """Return the event of the process that emptied the page cache most often within a stretch, None without one."""
    within = [near.event for near in kernel if near.event.kind == "drop-caches" and near.offset_s == 0]
    return max(within, key=lambda event: event.count, default=None)


def _offset(event: KernelEvent, start_s: float, end_s: float) -> float:
    last = event.last_t_s if event.last_t_s is not None else event.t_s
    if event.t_s <= end_s and last >= start_s:
        return 0.0
    return last - start_s if last < start_s else event.t_s - end_s
