"""Ticks of the recorder for which the driver kept no readings of its own, as while its buffer could not be read."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

PART_ROWS = 65_536  # a month has 13 million of the driver's readings


def ticks_alone(tick_t_s: Floats, kept_t_s: Floats, tick_s: float) -> Bools:
    """Return which ticks lie more than half a tick from all of the driver's readings, of which there is one or more.

    Both are in order. There is none where these leave no hole of a tick, which takes less to see than to look for each.
    """
    if not len(tick_t_s) or _are_close(tick_t_s, kept_t_s, tick_s):
        return np.zeros(len(tick_t_s), dtype=np.bool_)
    after = np.clip(np.searchsorted(kept_t_s, tick_t_s), 1, len(kept_t_s) - 1)
    distance_s = np.minimum(np.abs(tick_t_s - kept_t_s[after - 1]), np.abs(kept_t_s[after] - tick_t_s))
    return distance_s > tick_s / 2


def _are_close(tick_t_s: Floats, kept_t_s: Floats, tick_s: float) -> bool:
    """Tell whether the driver's readings go on from the first to the last tick without a hole of a tick."""
    outside_s = max(kept_t_s[0] - tick_t_s[0], tick_t_s[-1] - kept_t_s[-1])
    begins = range(0, len(kept_t_s), PART_ROWS)
    holes_s = (np.diff(kept_t_s[begin : begin + PART_ROWS + 1]).max(initial=0.0) for begin in begins)
    return bool(outside_s <= tick_s / 2) and all(hole_s < tick_s for hole_s in holes_s)
