"""A training that ran out of GPU memory on a card that was mostly free: something allows its process only a part."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.training_end.final_gpu_memory import share_just_before
from gpu_report.model import Advice, Evidence, InsideRun
from gpu_report.wording import gib, memory_words, setting_location_words

FRACTION = "memory_fraction"  # of settings and of lines that set it
SETS_IT = "`torch.cuda.set_per_process_memory_fraction`"


@dataclass(frozen=True)
class MemoryAllowance:
    """What was left of a card of `card_mib` when a process got no more: `free_mib`; `allowed_mib` None if unknown."""

    card_mib: float
    free_mib: float
    allowed_mib: float | None
    place: str

    @property
    def words(self) -> str:
        """Return it as the end of the sentence that memory ran out."""
        if self.allowed_mib is None:
            return f" with {memory_words(self.free_mib)} of {memory_words(self.card_mib)} free"
        return f": its process may have {memory_words(self.allowed_mib)} of {memory_words(self.card_mib)}{self.place}"

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return what the process may have, where PyTorch said so."""
        return evidence((f"memory that the process may have ({FRACTION})", gib(self.allowed_mib), "GiB"))

    @property
    def advice(self) -> Advice:
        """Return to raise the limit, or to look for one."""
        if self.allowed_mib is not None:
            return Advice(f"Raise the limit of this process where the card is yours: {SETS_IT}{self.place}")
        text = f"Look for what limits this process to a part of the card, such as {SETS_IT}"
        return Advice(f"{text}. One allocation that is larger than what is free fails, too")


def memory_allowance(context: Context, process: InsideRun, end_s: float) -> MemoryAllowance | None:
    """Return what was left when CUDA was out of memory; None where that was little, or the card is not known.

    Without a limit, what fails to be allocated is larger than the rest: than ALLOWED_FREE of a card it hardly is.
    """
    shares = [(share_just_before(memory, end_s), memory) for memory in map(context.gpu_memory, context.used_series)]
    known = [(share, memory.capacity_mib) for share, memory in shares if share is not None and memory.capacity_mib]
    share, card_mib = max(known, default=(1.0, 0.0))
    fraction = _fraction(process.settings)
    if 1 - share < th.ALLOWED_FREE and (fraction is None or share < th.FULL_SHARE * fraction):
        return None
    place = setting_location_words(process.setting_locations, FRACTION)
    allowed_mib = None if fraction is None else fraction * card_mib
    return MemoryAllowance(card_mib, (1 - share) * card_mib, allowed_mib, place) if card_mib else None


def _fraction(settings: Mapping[str, object]) -> float | None:
    told = settings.get(FRACTION)
    return float(told) if isinstance(told, int | float) and 0 < told < 1 else None
