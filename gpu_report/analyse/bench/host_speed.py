"""How fast the host was while a benchmark went on, by a loop that does the same everywhere."""

import numpy as np

from gpu_report.model import BenchRun, HostSpeed

NINE_OF_TEN = (0.05, 0.95)


def host_speed(run: BenchRun) -> HostSpeed | None:
    """Return how fast the host was, None where that was not measured."""
    loops = [loop for variant in run.variants for loop in variant.loops]
    if not loops:
        return None
    took = np.array([loop.ms for loop in loops])
    low, high = np.quantile(took, NINE_OF_TEN).tolist()
    waited = [loop.waited_share for loop in loops if loop.waited_share is not None]
    return HostSpeed(float(np.median(took)), low, high, waited_share=float(np.mean(waited)) if waited else None)
