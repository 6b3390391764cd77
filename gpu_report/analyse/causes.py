"""What stood beside a drop and may have caused it. `unexplained` is an honest answer."""

from collections.abc import Sequence

from gpu_report.model import Cause, NearbyKernelEvent

# Which cause a kind of kernel event points to, and how far one such line alone is to be trusted (0 to 1): a GPU
# fault stops the GPU by itself, a disk error stops only what reads that disk.
KERNEL_CAUSES = {
    "gpu-lost": ("gpu-fault", 0.95),
    "xid": ("gpu-fault", 0.8),
    "amdgpu": ("gpu-fault", 0.8),
    "aer": ("gpu-fault", 0.4),
    "hotplug": ("gpu-fault", 0.7),
    "oom": ("memory-pressure", 0.7),
    "nfs": ("input-storage", 0.7),
    "nvme": ("input-storage", 0.6),
    "ata": ("input-storage", 0.6),
    "block": ("input-storage", 0.6),
    "filesystem": ("input-storage", 0.6),
    "thermal": ("thermal", 0.4),
    "hung-task": ("trainer-blocked", 0.5),
    "lockup": ("trainer-blocked", 0.6),
}

EXPECTED = Cause("validation", 0.9, "the epoch ended here: validation and checkpoint, as long as its siblings'")
UNEXPLAINED = Cause("unexplained", 0.0, "nothing that was recorded stands beside it")


def cause_of(gpu: int, nearby: Sequence[NearbyKernelEvent], *, expected: bool, kernel_was_read: bool) -> Cause:
    """Return the cause of a drop: a kernel event beside it, else the end of its epoch, else unexplained.

    An event of no consequence (severity info), of another GPU, or after the drop explains nothing.
    `kernel_was_read` is False when nobody looked.
    """
    found = [cause for event in nearby if (cause := _from_event(gpu, event)) is not None]
    ranked = sorted(found, key=lambda cause: -cause.confidence)
    if ranked and (not expected or ranked[0].confidence >= EXPECTED.confidence):
        rival = next((c.name for c in ranked if c.name != ranked[0].name), "validation" if expected else None)
        return Cause(ranked[0].name, ranked[0].confidence, ranked[0].explanation, rival)
    if expected:
        return EXPECTED
    if kernel_was_read:
        return UNEXPLAINED
    return Cause("unexplained", 0.0, "nothing that was recorded stands beside it; the kernel log was not read")


def _from_event(gpu: int, nearby: NearbyKernelEvent) -> Cause | None:
    event = nearby.event
    elsewhere = event.gpu is not None and event.gpu != gpu
    if elsewhere or nearby.offset_s > 0 or event.severity == "info" or event.kind not in KERNEL_CAUSES:
        return None
    name, confidence = KERNEL_CAUSES[event.kind]
    return Cause(name, confidence, f"the kernel log says {_when(nearby.offset_s)}: {event.meaning}")


def _when(offset_s: float) -> str:
    return "within it" if offset_s == 0 else f"{abs(offset_s):.0f} s before it"
