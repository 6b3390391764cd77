"""Which rank all others wait for.

Ranks pass each batch together, so that all epochs last as long as those of the slowest rank. What differs is what a
rank does before it comes to the barrier. Input first: a loader that is late on one rank looks like slow work on all
others, while a GPU that waits for a rank reads as busy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from gpu_report.analyse.job import thresholds as th
from gpu_report.analyse.job.ranks import RankOfJob, RankTable
from gpu_report.model import JobNode

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Straggler:
    """The rank, or with `whole_node` the node, that the others wait for; `rank` is then the worst of it.

    An epoch (mean) trains for `train_s`, in which it waits `wait_s` for data, the others `others_wait_s`; `excess_s` is
    what it takes longer. For `work`, `busy_pct` and `others_busy_pct` are of its GPU and of the others'. It was last in
    `last_share` (0 to 1) of the `epochs`.
    """

    kind: Literal["input", "work"]
    rank: RankOfJob
    whole_node: bool
    epochs: int
    last_share: float
    train_s: float
    excess_s: float
    wait_s: float
    others_wait_s: float
    busy_pct: float | None = None
    others_busy_pct: float | None = None

    @property
    def node(self) -> JobNode:
        """Return its node."""
        return self.rank.node


def find_straggler(table: RankTable) -> tuple[Straggler | None, Floats]:
    """Return the straggler, None where no rank holds up the others; and how often each rank was the last (0 to 1)."""
    ranks, epochs = len(table.ranks), len(table.keys)
    last = np.zeros(ranks)
    if ranks < 2 or not epochs:
        return None, last
    lateness = _lateness(table)
    winners = lateness.argmax(axis=0)
    late = lateness.max(axis=0) >= th.LEAST_EXCESS * table.train_s.mean(axis=0)
    last = np.bincount(winners[late], minlength=ranks) / epochs
    if epochs < th.LEAST_EPOCHS:
        return None, last
    return _by_input(table) or _by_work(table), last


def _lateness(table: RankTable) -> Floats:
    """Return by how much longer than the median rank each one waited for data, in each epoch."""
    return table.data_wait_s - np.median(table.data_wait_s, axis=0)


def _by_input(table: RankTable) -> Straggler | None:
    """Return the node, and of it the rank, whose wait for data all others wait for."""
    names = [rank.node.name for rank in table.ranks]
    nodes = list(dict.fromkeys(names))
    of_node = np.array([[name == node for name in names] for node in nodes])
    if len(nodes) < 2:
        return None
    waits = np.array([table.data_wait_s[mine].max(axis=0) for mine in of_node])
    winners = waits.argmax(axis=0)
    place = int(np.bincount(winners).argmax())
    others = np.delete(waits, place, axis=0)
    excess = waits[place] - np.median(others, axis=0)
    train_s, share = float(table.train_s.mean()), float((winners == place).mean())
    if share < th.LAST_SHARE or float(excess.mean()) < th.LEAST_EXCESS * train_s:
        return None
    rank, whole = _within(table.data_wait_s, of_node[place], float(excess.mean()))
    return Straggler(
        kind="input",
        rank=table.ranks[rank],
        whole_node=whole,
        epochs=len(table.keys),
        last_share=share,
        train_s=train_s,
        excess_s=float(excess.mean()),
        wait_s=float(table.data_wait_s[rank].mean()),
        others_wait_s=float(np.median(others.mean(axis=1))),  # means, as in the table of ranks
    )


def _within(waits: Floats, mine: Bools, excess_s: float) -> tuple[int, bool]:
    """Return the rank of a node that waits longest, and whether its siblings do as well."""
    rows = np.flatnonzero(mine)
    means = waits[rows].mean(axis=1)
    worst = int(means.argmax())
    siblings = np.delete(means, worst)
    whole = bool(len(siblings)) and float(means[worst] - np.median(siblings)) < th.OWN_EXCESS * excess_s
    return int(rows[worst]), whole


def _by_work(table: RankTable) -> Straggler | None:
    """Return the rank whose GPU has pauses while all others read as busy, for they wait in a collective."""
    busy = table.busy_pct
    if not all(rank.last.on_gpu for rank in table.ranks) or not np.isfinite(busy).all():
        return None
    means = busy.mean(axis=1)
    row = int(means.argmin())
    others = float(np.median(np.delete(means, row)))
    share = float((busy.argmin(axis=0) == row).mean())
    gap = others - float(means[row])
    if share < th.LAST_SHARE or others < th.WAITERS_BUSY_PCT or gap < th.LATE_BUSY_GAP_PCT:
        return None
    train_s = float(table.train_s.mean())
    return Straggler(
        kind="work",
        rank=table.ranks[row],
        whole_node=False,
        epochs=len(table.keys),
        last_share=share,
        train_s=train_s,
        excess_s=gap / 100 * train_s,
        wait_s=float(table.data_wait_s[row].mean()),
        others_wait_s=float(np.median(np.delete(table.data_wait_s.mean(axis=1), row))),
        busy_pct=float(means[row]),
        others_busy_pct=others,
    )
