"""Numbers, seconds mostly, added up by what they are of."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def sums_by_key(pairs: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """Return the sum of each key's numbers, in the order in which the keys came first."""
    sums: dict[Key, float] = {}
    for key, number in pairs:
        sums[key] = sums.get(key, 0.0) + number
    return sums
