"""Who serves when: short turns in an order in which a drift hits all variants alike, until medians are known."""

import math
import random
import statistics
from collections.abc import Sequence

# Seconds: many short turns. On a host whose speed drifts within seconds, turns of 2 s let each variant meet another
# host: in simulations (benchmarks/bench_design.py) these swap half as many variants, of nine, in a second benchmark.
TURN_S = 0.2
CALLS_OF_A_TURN = 4  # at least, of the slowest variant: the median of a turn is of several
ROUNDS_AT_LEAST = 10  # so that there is a fastest tenth of turns
# Before each turn, not counted: caches, and on the CPU threads of the one before that still spin (0.2 s).
SETTLE_ON_GPU_S, SETTLE_ON_CPU_S = 0.1, 0.2
SEED = 20_261_125

# No unit: half the interval of a variant's median, as a share. Two benchmarks then differ by twice as much at most.
PRECISE = 0.015
CALLS_AT_LEAST = 1_000  # of each variant: p99 needs them
BLOCKS = 8  # of turns in a row: longer than most stretches in which a host is slow
T_OF_BLOCKS = 2.365  # Student's t, 95 %, of 8 blocks


def turn_lengths(seconds: float, call_s: float = 0.0, *, on_gpu: bool = True) -> tuple[int, float, float]:
    """Return how many rounds there are, an even number, how long a turn lasts, and how long it settles before.

    `seconds` are those of all turns of a variant, `call_s` is how long a call of the slowest takes.
    """
    rounds = max(ROUNDS_AT_LEAST, 2 * round(seconds / max(TURN_S, CALLS_OF_A_TURN * call_s) / 2))
    turn_s = seconds / rounds
    return rounds, turn_s, min(SETTLE_ON_GPU_S if on_gpu else SETTLE_ON_CPU_S, turn_s)


def orders(count: int, rounds: int, seed: int = SEED) -> list[list[int]]:
    """Return for each round in which order the variants serve: a shuffled order, then its reverse (A-B-B-A).

    Within such a pair each variant's mean place is the same, so that a steady drift changes none against another. The
    next pair is shuffled anew: nobody always follows the same one.
    """
    chance = random.Random(seed)  # noqa: S311 - an order, not a secret
    found: list[list[int]] = []
    while len(found) < rounds:
        order = chance.sample(range(count), count)
        found += [order, order[::-1]]
    return found[:rounds]


def is_precise(medians_ms: Sequence[float], calls: int) -> bool:
    """Tell whether a variant has served enough: its calls, and the medians of its turns in their order."""
    size = len(medians_ms) // BLOCKS
    if calls < CALLS_AT_LEAST or not size or min(medians_ms) <= 0:
        return False
    logs = [math.log(median) for median in medians_ms[-size * BLOCKS :]]
    blocks = [statistics.fmean(logs[at : at + size]) for at in range(0, len(logs), size)]
    return T_OF_BLOCKS * statistics.stdev(blocks) / math.sqrt(BLOCKS) <= PRECISE
