"""How far readings are apart around each moment: logs of several tools together have more than one interval."""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# Steps whose median counts. Half of them are more than outages in a row that a log may have, and less than a stretch
# that anybody would look at: nine readings.
STEPS = 9


def local_intervals_s(t_s: Floats, interval_s: float) -> Floats:
    """Return for each step between two readings what is ordinary just before it or just after it (s).

    The longer of both counts, and none is below `interval_s`. Too few steps have that alone.
    """
    steps = np.diff(t_s)
    if len(steps) < STEPS or steps.max() <= interval_s:
        return np.full(len(steps), interval_s)
    medians = np.median(np.lib.stride_tricks.sliding_window_view(steps, STEPS), axis=1)
    step = np.arange(len(steps))
    after, before = medians[np.minimum(step, len(medians) - 1)], medians[np.maximum(step - STEPS + 1, 0)]
    longest: Floats = np.maximum(np.maximum(after, before), interval_s)
    return longest
