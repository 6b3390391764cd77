"""The verdict's words on GPU memory that went bad: no training is slower for it, and somebody has to act."""

from collections.abc import Iterator, Mapping, Sequence

from gpu_report.gpu_words import gpus_words
from gpu_report.model import Gpu, Sentence

# What the driver said last (schema.GPU_HEALTH), and what it means.
TO_DO: Mapping[str, str] = {
    "retired_pages_pending": "a bad memory page is retired at the next reboot: do that before the next training",
    "row_remap_pending": "a bad memory row is remapped at the next reset: do that before the next training",
    "row_remap_failed": "a bad memory row could not be remapped: have the card replaced",
}


def gpu_health(gpus: Sequence[Gpu]) -> Iterator[Sentence]:
    """Yield what somebody has to do about the memory of GPUs."""
    for name, text in TO_DO.items():
        mine = sorted(gpu.index for gpu in gpus if {**(gpu.health_start or {}), **(gpu.health_end or {})}.get(name))
        if mine:
            yield Sentence("GPU health", f"On {gpus_words(mine)} {text}.")
