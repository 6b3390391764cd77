"""Causes that the kernel log names."""

from gpu_report.analyse.causes.candidate import Candidate
from gpu_report.analyse.causes.confidence import CERTAIN, FAINT, HINTED, LIKELY, POSSIBLE, WEAK
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.model import NearbyKernelEvent

# Which cause a kind of kernel event points to, and how far one such line alone is to be trusted (0 to 1): a GPU
# fault stops the GPU by itself, a disk error stops only what reads that disk.
KERNEL_CAUSES = {
    "gpu-lost": ("gpu-fault", CERTAIN),
    "xid": ("gpu-fault", LIKELY),
    "amdgpu": ("gpu-fault", LIKELY),
    "aer": ("gpu-fault", FAINT),
    "hotplug": ("gpu-fault", POSSIBLE),
    "oom": ("memory-pressure", POSSIBLE),
    "nfs": ("input-storage", POSSIBLE),
    "nvme": ("input-storage", HINTED),
    "ata": ("input-storage", HINTED),
    "block": ("input-storage", HINTED),
    "filesystem": ("input-storage", HINTED),
    "thermal": ("thermal", FAINT),
    "hung-task": ("trainer-blocked", WEAK),
    "lockup": ("trainer-blocked", HINTED),
}


def kernel_log_fault(signals: IntervalSignals) -> Candidate | None:
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
