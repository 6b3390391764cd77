"""Waits between batches that were no waits for data: a trainer that stands still there looks like one from inside.

What callbacks count as a wait for data is the time from the end of one batch to the begin of the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.bounds import INPUT
from gpu_report.analyse.context import Context
from gpu_report.analyse.spans import Span, Touching
from gpu_report.model import Finding

DROPS = frozenset({"drop", "sustained-low"})
# Causes that leave a wait what it was told to be: those of the loader, and where nothing is known.
LEAVES_IT = INPUT | {"unexplained"}


@dataclass(frozen=True)
class Held:
    """Seconds that a training stood still between batches, and the cause that a finding gives for most of them."""

    seconds: float
    cause: str


class StandingStill:
    """The drops that have another cause than the loader, to be asked for what they took of an epoch's waits."""

    def __init__(self, context: Context, findings: Sequence[Finding]) -> None:
        """Take all findings; without the times of batches none is held against a wait."""
        mine = [f for f in findings if f.rule in DROPS and not f.expected and f.cause and f.cause.name not in LEAVES_IT]
        self._pace = context.pace
        self._drops = Touching(mine if context.pace else [], lambda f: (f.start_t_s, f.end_t_s))

    def within(self, trained: Span) -> Held | None:
        """Return what of the waits in an epoch's training was none for data, None where all were.

        A drop whose time was mostly a wait is that wait. What several GPUs felt at once counts once.
        """
        held: dict[str, float] = {}
        until_s = trained[0]
        for drop in self._drops(*trained):
            span = max(drop.start_t_s, until_s), min(drop.end_t_s, trained[1])
            waited_s = self._waited_s(span) if span[0] < span[1] else 0.0
            if drop.cause and waited_s > 0 and waited_s >= th.STOOD_STILL_SHARE * (span[1] - span[0]):
                held[drop.cause.name] = held.get(drop.cause.name, 0.0) + waited_s
                until_s = span[1]
        return Held(sum(held.values()), max(held, key=lambda name: held[name])) if held else None

    def _waited_s(self, span: Span) -> float:
        """Return the seconds waited in a stretch of one epoch, at most its length and what readings may be late."""
        return min(self._pace.waited_s(span), span[1] - span[0] + th.ABUTS_S) if self._pace else 0.0
