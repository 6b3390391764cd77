"""A training that ran out of GPU memory on a card that was mostly free: it may have only a part, or asked for more."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpu_report.analyse.context import Context
from gpu_report.analyse.evidence import evidence
from gpu_report.analyse.rules import thresholds as th
from gpu_report.analyse.rules.training_end.final_gpu_memory import share_just_before
from gpu_report.model import Advice, Evidence, InsideRun, RefusedAllocation
from gpu_report.wording import gib, memory_words, setting_location_words

FRACTION = "memory_fraction"  # of settings and of lines that set it
SETS_IT = "`torch.cuda.set_per_process_memory_fraction`"


@dataclass(frozen=True)
class MemoryAllowance:
    """What was left of a card of `card_mib` when a process got no more: `free_mib`; `allowed_mib` None if unknown.

    `refused` is the allocation that failed, where torch said how large it was.
    """

    card_mib: float
    free_mib: float
    allowed_mib: float | None
    place: str
    refused: RefusedAllocation | None = None

    @property
    def asked_for_more(self) -> bool:
        """Tell whether one allocation was larger than all that was free: then nothing need limit the process."""
        return self.allowed_mib is None and self.refused is not None and self.refused.asked_mib > self.free_mib

    @property
    def words(self) -> str:
        """Return it as the end of the sentence that memory ran out."""
        if self.allowed_mib is not None:
            return (
                f": its process may have {memory_words(self.allowed_mib)} of {memory_words(self.card_mib)}{self.place}"
            )
        free = f"with {memory_words(self.free_mib)} of {memory_words(self.card_mib)} free"
        if self.refused is not None and self.asked_for_more:
            return f": it asked for {memory_words(self.refused.asked_mib)} at once, {free}"
        return f" {free}"

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """Return what the process may have, where PyTorch said so."""
        asked_mib = self.refused.asked_mib if self.refused is not None else None
        return evidence(
            ("memory that it asked for at once", gib(asked_mib), "GiB"),
            (f"memory that the process may have ({FRACTION})", gib(self.allowed_mib), "GiB"),
        )

    @property
    def advice(self) -> tuple[Advice, ...]:
        """Return to raise the limit, or to look for one; nothing where there need be none."""
        if self.allowed_mib is not None:
            return (Advice(f"Raise the limit of this process where the card is yours: {SETS_IT}{self.place}"),)
        if self.asked_for_more:
            return ()
        text = f"Look for what limits this process to a part of the card, such as {SETS_IT}"
        more = "" if self.refused is not None else ". One allocation that is larger than what is free fails, too"
        return (Advice(f"{text}{more}"),)


def memory_allowance(context: Context, process: InsideRun, end_s: float) -> MemoryAllowance | None:
    """Return what was left when CUDA was out of memory; None where that was little, or the card is not known.

    Without a limit, what fails to be allocated is larger than the rest: than ALLOWED_FREE of a card it hardly is. Torch
    says how large it was, and what is allowed.
    """
    shares = [(share_just_before(memory, end_s), memory) for memory in map(context.gpu_memory, context.used_series)]
    known = [(share, memory.capacity_mib) for share, memory in shares if share is not None and memory.capacity_mib]
    share, card_mib = max(known, default=(1.0, 0.0))
    allowed_mib, refused = _allowed_mib(process, card_mib), process.raised.refused
    if 1 - share < th.ALLOWED_FREE and (allowed_mib is None or share * card_mib < th.FULL_SHARE * allowed_mib):
        return None
    free_mib = (1 - share) * card_mib if refused is None or refused.free_mib is None else refused.free_mib
    place = setting_location_words(process.setting_locations, FRACTION)
    return MemoryAllowance(card_mib, free_mib, allowed_mib, place, refused) if card_mib else None


def _allowed_mib(process: InsideRun, card_mib: float) -> float | None:
    """Return what the process may have of a card, as it set it, else as torch said it."""
    fraction = _fraction(process.settings)
    if fraction is not None:
        return fraction * card_mib
    return process.raised.refused.allowed_mib if process.raised.refused is not None else None


def _fraction(settings: Mapping[str, object]) -> float | None:
    told = settings.get(FRACTION)
    return float(told) if isinstance(told, int | float) and 0 < told < 1 else None
