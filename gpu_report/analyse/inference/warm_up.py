"""Where warming up ends: the first calls load kernels, fill caches and raise clocks, and are slower than the rest.

A change point in the logarithm of latency: the split at which two levels explain the calls best. It is sought again in
what is left, for the first call often takes a hundred times as long as the next ten, which are slow as well.
"""

from typing import Final

import numpy as np

from gpu_report.analyse.timeseries.gpu_series import Floats

LOOKED_AT: Final = 4_000  # calls from the first on: a warm-up that is longer is no warm-up
LEVELS_SHARE: Final = 0.5  # of these calls: how far a level is looked for ...
LONGEST_SHARE, LONGEST_AT_LEAST = 0.1, 10  # ... of calls: one that lasts longer is a drift, and no warm-up
SLOWER_BY: Final = 1.1  # no unit: the warm-up's calls take at least so many times as long as the calls after them
# No unit: by how much two levels must explain more than one, in units of the Bayesian information criterion. It is
# large, for calls resemble their neighbours, and a slow stretch in the first half is no warm-up by itself.
LEAST_GAIN: Final = 6.0
ROUNDS: Final = 5
SHORTEST: Final = 4  # calls: of fewer nobody can say which are slow


def warm_up_calls(total_ms: Floats) -> int:
    """Return how many calls at the beginning are warm-up: 0 where none is slower than what follows.

    `total_ms` are latencies of one model in the order of its calls; those of batches of different sizes should be made
    alike before (see `alike`).
    """
    logs = np.log(np.maximum(total_ms[:LOOKED_AT].astype(np.float64), 1e-6))
    longest, found = int(max(LONGEST_SHARE * len(logs), LONGEST_AT_LEAST)), 0
    for _ in range(ROUNDS):
        more = _split(logs[found:])
        if found + more > longest:  # a drift, beside which the first calls are looked at by themselves
            more = _split(logs[found : int(longest / LEVELS_SHARE)])
        if not more or found + more > longest:
            break
        found += more
    return found


def alike(total_ms: Floats, kinds: Floats) -> Floats:
    """Return latencies in units of the median of their kind (the size of their batch)."""
    same = np.ones(len(total_ms))
    for kind in np.unique(kinds).tolist():
        mine = kinds == kind
        same[mine] = max(float(np.median(total_ms[mine])), 1e-6)
    scaled: Floats = total_ms / same
    return scaled


def _split(logs: Floats) -> int:
    """Return after how many values the level falls, 0 where it does not."""
    count = len(logs)
    if count < SHORTEST:
        return 0
    firsts = np.arange(1, int(count * LEVELS_SHARE) + 1)
    sums, squares = np.cumsum(logs), np.cumsum(logs**2)
    before, after = sums[firsts - 1] / firsts, (sums[-1] - sums[firsts - 1]) / (count - firsts)
    spread = squares[-1] - firsts * before**2 - (count - firsts) * after**2
    slower = before - after >= np.log(SLOWER_BY)
    spread = np.where(slower, np.maximum(spread, 1e-9), np.inf)
    best = int(np.argmin(spread))
    one = max(float(squares[-1] - sums[-1] ** 2 / count), 1e-9)
    gained = count * float(np.log(one / spread[best])) if np.isfinite(spread[best]) else 0.0
    return int(firsts[best]) if gained > LEAST_GAIN * np.log(count) else 0
