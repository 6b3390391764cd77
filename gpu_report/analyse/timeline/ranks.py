"""What the processes of a training reported: which ranks belong together, and how it came to its end."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpu_report.analyse.timeline.exception_kinds import exception_kind
from gpu_report.analyse.timeline.thresholds import ENDED_TOGETHER_S
from gpu_report.model import InsideEpoch, InsideRun, Phase, Run

GOOD = ("finished", "early stop")


@dataclass(frozen=True)
class RankGroup:
    """The processes of one training, rank 0 first; each reported at least one phase."""

    ranks: tuple[InsideRun, ...]

    @property
    def main(self) -> InsideRun:
        """Return rank 0, which tells most."""
        return self.ranks[0]

    @property
    def phase(self) -> Phase:
        """Return the phase that it came to last."""
        return self.main.phases[-1]

    @property
    def start_t_s(self) -> float:
        """Return when it was first heard of."""
        return self.main.phases[0].start_t_s

    @property
    def end_t_s(self) -> float:
        """Return when it was over; where nobody said so, when its process had gone or the recording ended."""
        crashed = self.crashed
        return end_of(crashed) if crashed else end_of(self.main)

    @property
    def last_message_t_s(self) -> float:
        """Return when any of its processes last reported something of its work."""
        return max(_last_message_t_s(rank) for rank in self.ranks)

    @property
    def is_good(self) -> bool:
        """Tell whether it came to the end that it was to come to."""
        return self.main.ended in GOOD

    @property
    def crashed(self) -> InsideRun | None:
        """Return the process that an exception ended first; the others then go down with it, mostly without a word.

        Ctrl-C reaches all ranks at once, and what one of them makes of another's end may come first.
        """
        reported = sorted((rank for rank in self.ranks if rank.ended == "exception"), key=end_of)
        if self.is_good or not reported:
            return None
        together = [rank for rank in reported if end_of(rank) <= end_of(reported[0]) + ENDED_TOGETHER_S]
        return next((rank for rank in together if exception_kind(rank) == "interrupted"), reported[0])

    @property
    def is_interrupted(self) -> bool:
        """Tell whether Ctrl-C ended it."""
        return self.crashed is not None and exception_kind(self.crashed) == "interrupted"

    @property
    def epoch(self) -> int | None:
        """Return the epoch that it came to, None where it came to none."""
        return max((phase.epoch for phase in self.main.phases if phase.epoch is not None), default=None)

    @property
    def waits_most(self) -> InsideRun:
        """Return the rank that waited longest for data, as all others waited for it, of those that are known whole."""
        count = len(self.main.epochs)
        whole = [rank for rank in self.ranks if len(rank.epochs) >= count]
        return max(whole, key=lambda rank: sum(epoch.data_wait_s for epoch in rank.epochs))

    def with_longest_waits(self) -> InsideRun:
        """Return rank 0 whose epochs have the waits for data of the rank that waited longest in each."""
        waits: dict[tuple[int, int], InsideEpoch] = {}
        for epoch in (epoch for rank in self.ranks for epoch in rank.epochs):
            key = epoch.epoch, epoch.attempt
            waits[key] = max(waits.get(key, epoch), epoch, key=lambda each: each.data_wait_s)
        return replace(
            self.main, epochs=tuple(_waiting(each, waits[each.epoch, each.attempt]) for each in self.main.epochs)
        )

    @property
    def pids(self) -> frozenset[int]:
        """Return the pids of its ranks."""
        return frozenset(rank.pid for rank in self.ranks)


def rank_groups(run: Run) -> list[RankGroup]:
    """Return the ranks of each training, in order; a rank belongs to the last training that began before it."""
    reported = [process for process in run.inside if process.task == "train" and process.phases]
    found: list[list[InsideRun]] = []
    last: dict[int | None, list[InsideRun]] = {}
    for process in sorted(reported, key=lambda process: (process.phases[0].start_t_s, process.rank)):
        if process.rank == 0 or process.run not in last:
            last[process.run] = []
            found.append(last[process.run])
        last[process.run].append(process)
    return [RankGroup(tuple(group)) for group in found]


def _waiting(epoch: InsideEpoch, like: InsideEpoch) -> InsideEpoch:
    """Return an epoch with the waits of another."""
    if like is epoch:
        return epoch
    return replace(
        epoch,
        data_wait_s=like.data_wait_s,
        first_wait_s=like.first_wait_s,
        longest_wait_s=like.longest_wait_s,
    )


def end_of(process: InsideRun) -> float:
    """Return when a process was over."""
    return process.phases[-1].end_t_s


def _last_message_t_s(process: InsideRun) -> float:
    """Return when a process last reported something: a phase, how far it was, the end of an epoch's training."""
    reported = [process.phases[-1].start_t_s, *(progress.t_s for progress in process.progress[-1:])]
    return max([*reported, *(epoch.end_t_s for epoch in process.epochs if epoch.end_t_s is not None)])
