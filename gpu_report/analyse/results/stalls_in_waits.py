"""Waits between batches that were no waits for data: a trainer that stalls there looks like one from inside.

What callbacks count as a wait for data is the time from the end of one batch to the begin of the next.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpu_report.analyse.results import thresholds as th
from gpu_report.analyse.rules.thresholds import ABUTS_S
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeseries.intervals import IntervalIndex, Span
from gpu_report.analyse.timeseries.sums import sums_by_key
from gpu_report.catalogue import CAUSES, RULES, UNEXPLAINED
from gpu_report.model import Finding, InsideEpoch, Run

# Causes that leave a wait what it was told to be: those of the loader, and where nothing is known.
LEAVES_IT = frozenset({UNEXPLAINED, *(cause.id for cause in CAUSES.values() if cause.is_input)})


@dataclass(frozen=True)
class Stall:
    """Seconds that a training stalled between batches, and the cause that a finding gives for most of them."""

    seconds: float
    cause: str


class StallsInWaits:
    """The drops that have another cause than the loader, to be asked for what they took of an epoch's waits."""

    def __init__(self, throughput: Throughput | None, findings: Sequence[Finding]) -> None:
        """Take all findings; without the times of batches none is compared with a wait."""
        every = (one for finding in findings for one in finding.each)
        mine = [f for f in every if RULES[f.rule].drop and not f.expected and f.cause and f.cause.name not in LEAVES_IT]
        self._throughput = throughput
        self._drops = IntervalIndex(mine if throughput else [], lambda f: f.span)

    def within(self, epoch: InsideEpoch) -> Stall | None:
        """Return what of the waits in an epoch's training was none for data, None where all were."""
        held = sums_by_key((cause, seconds) for _, seconds, cause in self.stops(epoch))
        return Stall(sum(held.values()), max(held, key=lambda name: held[name])) if held else None

    def stops(self, epoch: InsideEpoch) -> Iterator[tuple[Span, float, str]]:
        """Yield where a trainer stalled between two batches of an epoch, the seconds of that, and the cause.

        A drop whose time was mostly one wait is that wait. What several GPUs felt at once counts once.
        """
        until_s, end_s = epoch.start_t_s, epoch.end_t_s
        for drop in self._drops(until_s, end_s) if end_s is not None else ():
            span = max(drop.start_t_s, until_s), min(drop.end_t_s, end_s or 0.0)
            waited_s = self._waited_s(span, epoch.longest_wait_s) if span[0] < span[1] else 0.0
            if drop.cause and waited_s > 0 and waited_s >= th.STALLED_SHARE * (span[1] - span[0]):
                yield span, waited_s, drop.cause.name
                until_s = span[1]

    def _waited_s(self, span: Span, longest_s: float) -> float:
        """Return the seconds waited at once in a stretch of an epoch, at most its length and what readings may be late.

        What was reported around it holds the ordinary waits of other batches, too: for up to 48 s after a day. One wait
        is no longer than the epoch's longest.
        """
        return (
            min(self._throughput.data_wait_s(span), span[1] - span[0] + ABUTS_S, longest_s) if self._throughput else 0.0
        )


def throughput_without_stalls(
    throughput: Throughput | None, run: Run, findings: Sequence[Finding]
) -> Throughput | None:
    """Return a run's throughput whose waits are those for data alone, as in its table of epochs."""
    if throughput is None:
        return None
    still = StallsInWaits(throughput, findings)
    epochs = [epoch for process in run.inside if process.rank == 0 for epoch in process.epochs]
    return throughput.without([(span, seconds) for epoch in epochs for span, seconds, _ in still.stops(epoch)])
