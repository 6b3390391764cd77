"""Causes that the kernel log names."""

from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.model import NearbyKernelEvent

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


def kernel_said(signals: IntervalSignals) -> Candidate | None:
    """Find a fault that the kernel log names within the interval or up to a minute before it."""
    found = [candidate for event in signals.kernel if (candidate := _from_event(signals.gpu, event)) is not None]
    return max(found, key=lambda candidate: candidate.confidence, default=None)


def _from_event(gpu: int, nearby: NearbyKernelEvent) -> Candidate | None:
    """Return what a kernel event speaks for; one of no consequence, of another GPU, or after the interval nothing."""
    event = nearby.event
    elsewhere = event.gpu is not None and event.gpu != gpu
    if elsewhere or nearby.offset_s > 0 or event.severity == "info" or event.kind not in KERNEL_CAUSES:
        return None
    name, confidence = KERNEL_CAUSES[event.kind]
    return Candidate(name, confidence, f"the kernel log says {_when(nearby.offset_s)}: {event.meaning}")


def _when(offset_s: float) -> str:
    return "within it" if offset_s == 0 else f"{abs(offset_s):.0f} s before it"
