"""Which event lies within which on the same thread."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

# Times have nanoseconds, and a child may end some of them after its parent: it is written in µs as a decimal fraction.
TOLERANCE_S: Final = 2e-9

Floats = npt.NDArray[np.float64]
Int32s = npt.NDArray[np.int32]


def outer_first(thread: npt.NDArray[Any], start_s: Floats, end_s: Floats) -> npt.NDArray[np.intp]:
    """Return the order of thread and start, and of what starts at once the longer first."""
    return np.lexsort((-end_s, start_s, thread))


def parents(thread: npt.NDArray[Any], start_s: Floats, end_s: Floats) -> Int32s:
    """Return the row of the event around each, -1 where there is none, of rows that are `outer_first`."""
    parent = np.full(len(thread), -1, dtype=np.int32)
    edges = np.flatnonzero(np.diff(thread, prepend=-1, append=-1))
    for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        found = _parents_of_thread(start_s[first:last], end_s[first:last])
        parent[first:last] = np.where(found < 0, -1, found + first)
    return parent


def _ended_before(start_s: Floats, end_s: Floats) -> Int32s:
    """Return how many of the rows before each have ended when it starts."""
    ends_s = np.maximum(end_s - TOLERANCE_S, start_s)
    at_once = ends_s <= start_s  # these have ended at their own start, and may stand behind what starts then
    ends_s.sort()
    ended = np.searchsorted(ends_s, start_s, side="right").astype(np.int32)
    behind = np.searchsorted(start_s[at_once], start_s, side="right") - (np.cumsum(at_once) - at_once)
    found: Int32s = ended - behind.astype(np.int32)
    return found


def _parents_of_thread(start_s: Floats, end_s: Floats) -> Int32s:
    """Return the row around each: the last one before it that is nested one level less deep.

    How deep is how many began before and have not ended.
    """
    rows = np.arange(len(start_s), dtype=np.int32)
    depth = np.maximum(rows - _ended_before(start_s, end_s), 0)
    parent = np.full(len(rows), -1, dtype=np.int32)
    order = np.argsort(depth, kind="stable")  # by level, and in each by row
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2)) if len(rows) else np.zeros(1, dtype=int)
    for level in range(1, len(bounds) - 1):
        above, here = order[bounds[level - 1] : bounds[level]], order[bounds[level] : bounds[level + 1]]
        before = np.searchsorted(above, here) - 1
        parent[here] = np.where(before >= 0, above[np.maximum(before, 0)], -1) if len(above) else -1
    return parent
