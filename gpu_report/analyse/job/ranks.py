"""All ranks of a job, epoch by epoch: how long each trained, waited for data, and how busy its GPU was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gpu_report.model import InsideEpoch, JobNode, NodeRun, RankRow, RankTraining

Floats = npt.NDArray[np.float64]
Key = tuple[int, int, int]  # start of the ranks, epoch, attempt
FIRST = 0


@dataclass(frozen=True)
class RankOfJob:
    """A rank with its node; a restarted one has several processes (`trained`)."""

    rank: int
    node: JobNode
    run: NodeRun
    trained: tuple[RankTraining, ...]

    @property
    def last(self) -> RankTraining:
        """Return its last process."""
        return self.trained[-1]

    def epochs(self) -> dict[Key, InsideEpoch]:
        """Return its epochs that came to their end."""
        return {
            (each.start, epoch.epoch, epoch.attempt): epoch
            for each in self.trained
            for epoch in each.epochs
            if epoch.end_t_s is not None
        }


@dataclass(frozen=True, eq=False)
class RankTable:
    """What all ranks did in the epochs that all of them trained, without the first of each start where others remain.

    Rows are ranks, columns epochs. `train_s` and `data_wait_s` are seconds, `busy_pct` is of the rank's GPU (NaN: not
    known).
    """

    ranks: tuple[RankOfJob, ...]
    keys: tuple[Key, ...]
    train_s: Floats
    data_wait_s: Floats
    busy_pct: Floats


def ranks_of(nodes: Sequence[tuple[JobNode, NodeRun]]) -> tuple[RankOfJob, ...]:
    """Return the ranks of all nodes, in order."""
    found = []
    for node, run in nodes:
        for rank in sorted({each.rank for each in run.ranks}):
            mine = tuple(each for each in run.ranks if each.rank == rank)
            found.append(RankOfJob(rank, node, run, mine))
    return tuple(sorted(found, key=lambda each: each.rank))


def rank_table(ranks: tuple[RankOfJob, ...]) -> RankTable:
    """Return the table of the ranks that trained at all."""
    epochs = [each.epochs() for each in ranks]
    shared = sorted(set.intersection(*map(set, epochs))) if epochs else []
    first = {start: min(key for key in shared if key[0] == start) for start in {key[FIRST] for key in shared}}
    later = [key for key in shared if key != first[key[FIRST]]]
    keys = tuple(later or shared)
    if not keys:
        nothing = np.empty((len(ranks), 0))
        return RankTable(ranks, (), nothing, nothing, nothing)
    spans = [np.array([_span(mine[key]) for key in keys]) for mine in epochs]
    return RankTable(
        ranks,
        keys,
        train_s=np.array([span[:, 1] - span[:, 0] for span in spans]),
        data_wait_s=np.array([[mine[key].data_wait_s for key in keys] for mine in epochs]),
        busy_pct=np.array([_busy_in(rank, span) for rank, span in zip(ranks, spans, strict=True)]),
    )


def _span(epoch: InsideEpoch) -> tuple[float, float]:
    return epoch.start_t_s, epoch.end_t_s or epoch.start_t_s


def _busy_in(rank: RankOfJob, spans_s: Floats) -> Floats:
    """Return the mean utilisation of a rank's GPU in each span; of one that is shorter than a reading it is NaN."""
    gpu = next((gpu for gpu in rank.run.gpus if gpu.index == rank.last.gpu), None)
    if gpu is None:
        return np.full(len(spans_s), np.nan)
    known = np.isfinite(gpu.util_pct)
    sums = np.concatenate([[0.0], np.cumsum(np.where(known, gpu.util_pct, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    first, last = np.ceil(spans_s[:, 0] / rank.run.step_s), np.floor(spans_s[:, 1] / rank.run.step_s)
    begin, end = (np.clip(edge, 0, len(known)).astype(np.int64) for edge in (first, np.maximum(first, last)))
    number = counts[end] - counts[begin]
    means: Floats = np.divide(sums[end] - sums[begin], number, out=np.full(len(number), np.nan), where=number > 0)
    return means


def rows_of(table: RankTable, last: Floats) -> tuple[RankRow, ...]:
    """Return the ranks in numbers; `last` is in which share of the epochs each was the one that all waited for."""
    is_compared = len(table.ranks) > 1 and bool(table.keys)
    return tuple(
        RankRow(
            rank=rank.rank,
            node=rank.node.name,
            gpu=rank.last.gpu,
            epochs=len(table.keys),
            train_s=_mean(table.train_s[row]),
            data_wait_s=_mean(table.data_wait_s[row]),
            busy_pct=_mean(table.busy_pct[row]),
            last_share=float(last[row]) if is_compared else None,
        )
        for row, rank in enumerate(table.ranks)
    )


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
