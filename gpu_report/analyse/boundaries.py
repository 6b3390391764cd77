"""The ends of epochs: how long the GPU rests for validation and checkpoint, and which drops that explains."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.drops import stretches
from gpu_report.analyse.track import Bools, Track
from gpu_report.model import EpochRow


@dataclass(frozen=True)
class Boundary:
    """The end of an epoch: its row, and the dip around it (None where utilisation shows none)."""

    row: EpochRow
    dip_start_s: float | None = None
    dip_end_s: float | None = None

    @property
    def dip_s(self) -> float | None:
        """Return the length of the dip in seconds."""
        return (
            self.dip_end_s - self.dip_start_s if self.dip_start_s is not None and self.dip_end_s is not None else None
        )


def find_boundaries(rows: Sequence[EpochRow], tracks: Sequence[Track], usable: Sequence[Bools]) -> tuple[Boundary, ...]:
    """Return the boundary of every epoch, its dip seen on the GPU that dips most (validation runs on one rank)."""
    per_gpu = [_on_one_gpu(rows, track, use) for track, use in zip(tracks, usable, strict=True) if use.any()]
    if not per_gpu:
        return tuple(Boundary(row) for row in rows)
    seen = max(per_gpu, key=lambda found: sum(b.dip_s is not None for b in found))
    return tuple(_trimmed(boundary, seen) for boundary in seen)


def _trimmed(boundary: Boundary, seen: Sequence[Boundary]) -> Boundary:
    """Return a boundary whose dip is as long as its siblings' where it is too long to be validation and checkpoint."""
    start, end, row_t = boundary.dip_start_s, boundary.dip_end_s, boundary.row.row_t_s
    if start is None or end is None or explains(seen, start, end):
        return boundary
    siblings = [
        (b.row.row_t_s - b.dip_start_s, b.dip_end_s - b.row.row_t_s)
        for b in seen
        if b is not boundary and b.dip_start_s is not None and b.dip_end_s is not None
    ]
    before, after = (max(median(side), 0.0) for side in zip(*siblings, strict=True))
    return Boundary(boundary.row, max(start, row_t - before), min(end, row_t + after))


def explains(boundaries: Sequence[Boundary], start_s: float, end_s: float) -> bool:
    """Tell whether an epoch's validation and checkpoint explain a drop.

    They do when it touches the epoch's row and is no longer than SIBLING_FACTOR times the median dip of the other
    epochs. Without siblings there is nothing to hold it against.
    """
    touched = touching(boundaries, start_s, end_s)
    if touched is None:
        return False
    siblings = [b.dip_s for b in boundaries if b is not touched and b.dip_s is not None]
    first = touched is min(boundaries, key=lambda b: b.row.row_t_s)
    extra = th.FIRST_BOUNDARY_EXTRA_S if first else 0.0
    return not siblings or end_s - start_s <= th.SIBLING_FACTOR * median(siblings) + extra


def touching(boundaries: Sequence[Boundary], start_s: float, end_s: float) -> Boundary | None:
    """Return the boundary whose row appeared within [start, end] give or take BOUNDARY_S, None if there is none."""
    near = [b for b in boundaries if start_s - th.BOUNDARY_S <= b.row.row_t_s <= end_s + th.BOUNDARY_S]
    return min(near, key=lambda b: abs(b.row.row_t_s - start_s), default=None)


def _on_one_gpu(rows: Sequence[EpochRow], track: Track, usable: Bools) -> list[Boundary]:
    level = float(np.median(track.util_pct[usable]))
    low = stretches(track, usable & (track.util_pct < th.DIP_SHARE * level), usable)
    starts = np.array([track.t_s[a] for a, _ in low])
    ends = np.array([track.ends_s[b - 1] for _, b in low])
    found = []
    for row in rows:
        near = np.flatnonzero((starts <= row.row_t_s + th.BOUNDARY_S) & (ends >= row.row_t_s - th.BOUNDARY_S))
        if len(near):
            found.append(Boundary(row, float(starts[near[0]]), float(ends[near[-1]])))
        else:
            found.append(Boundary(row))
    return found
