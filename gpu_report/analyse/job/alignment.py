"""The nodes' clocks on one: by the wall, and by the barriers of the training that all ranks pass together.

At the end of an epoch's training all ranks have exchanged their last gradients, and before the next one begins all have
heard from rank 0 whether to stop. The medians of both are compared from node to node: two gloo ranks pass them within a
millisecond. CUDA ranks beyond the first do not wait for their GPU: tens of milliseconds.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from gpu_report.analyse.job import thresholds as th
from gpu_report.model import NodeClock, NodeRun

Barrier = tuple[str, int, int, int]  # what it is (start, end), and of which start of the ranks, epoch and attempt
RESIDUAL_PERCENTILE = 95  # of how far barriers lie from a clock: a rank that came late once is no clock
FEWEST = 2  # barriers that say how well they fit


def barriers(node: NodeRun) -> dict[Barrier, float]:
    """Return when a node passed each barrier, in UTC seconds by its own wall clock: when its middle rank did."""
    passed: dict[Barrier, list[float]] = {}
    for rank in node.ranks:
        first = rank.epochs[0] if rank.epochs else None
        for epoch in rank.epochs:
            key = rank.start, epoch.epoch, epoch.attempt
            if epoch.end_t_s is not None:
                passed.setdefault(("end", *key), []).append(epoch.end_t_s)
            if epoch is not first:  # the first one begins when its process is ready
                passed.setdefault(("start", *key), []).append(epoch.start_t_s)
    return {key: node.start_wall_s + sorted(times)[len(times) // 2] for key, times in passed.items()}


def clocks(nodes: Sequence[NodeRun]) -> list[NodeClock]:
    """Return each node's clock against that of the first one."""
    passed = [barriers(node) for node in nodes]
    return [_clock(passed[0], mine, node) for mine, node in zip(passed, nodes, strict=True)]


def _clock(reference: Mapping[Barrier, float], mine: Mapping[Barrier, float], node: NodeRun) -> NodeClock:
    error_s = node.job.max_error_s
    found: list[tuple[float, float, int]] = []
    for kind in ("end", "start"):
        ahead = np.array([mine[key] - reference[key] for key in mine if key in reference and key[0] == kind])
        if len(ahead) >= FEWEST:
            middle = float(np.median(ahead))
            found.append((float(np.percentile(np.abs(ahead - middle), RESIDUAL_PERCENTILE)), middle, len(ahead)))
    if not found:
        return NodeClock(None, None, 0, error_s)
    residual_s, ahead_s, count = min(found)
    return NodeClock(ahead_s, residual_s, count, error_s)


def why_not_aligned(names: Sequence[str], found: Sequence[NodeClock], *, of_one_time: bool) -> str:
    """Return why no cause may cross from node to node, empty where one may.

    `of_one_time` says that the recordings overlap by their wall clocks.
    """
    for name, clock in zip(names, found, strict=True):
        if clock.residual_s is not None and clock.residual_s > th.WORST_RESIDUAL_S:
            return f"the clock of {name} fits the training's barriers only to {clock.residual_s:.1f} s"
    without = [name for name, clock in zip(names, found, strict=True) if clock.ahead_s is None]
    errors = [clock.error_s for clock in found]
    if without and any(error is None or error > th.WORST_RESIDUAL_S / 2 for error in errors):
        return f"{without[0]} shares no epochs with the first node, and nobody knows how well the clocks were set"
    if without and not of_one_time:
        return "the recordings are not of the same time by their clocks, and no epochs say how these differ"
    return ""


def ahead_of(clock: NodeClock) -> float:
    """Return by how much a node's wall clock is corrected, in seconds: 0 where only the wall clock is known."""
    return clock.ahead_s or 0.0
