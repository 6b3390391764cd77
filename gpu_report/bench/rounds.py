"""Who serves when: short turns in an order in which a drift hits all variants alike."""

import random

TURN_S = 2.0  # about the length of a turn: many calls even of a slow model, and many turns within plan.SECONDS
ROUNDS_AT_LEAST = 4  # so that turns have an interval of their mean, and each order its reverse twice
SETTLE_S = 0.5  # before each turn, not counted: clocks, caches, and threads of the one before that still spin (0.2 s)
SETTLE_SHARE = 0.25  # ... but no more of a short turn
SEED = 20_261_125


def turn_lengths(seconds: float) -> tuple[int, float, float]:
    """Return how many rounds there are, an even number, how long a turn lasts, and how long it settles before.

    `seconds` are those of all turns of a variant.
    """
    rounds = max(ROUNDS_AT_LEAST, 2 * round(seconds / TURN_S / 2))
    turn_s = seconds / rounds
    return rounds, turn_s, min(SETTLE_S, SETTLE_SHARE * turn_s)


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
