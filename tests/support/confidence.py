"""What few observations say: exact one-sided bounds at 95 % confidence (Clopper and Pearson; Garwood), by bisection."""

import math
from collections.abc import Callable

DOUBT = 0.05


def share_at_least(right: int, of: int) -> float:
    """Return the lowest share (0 to 1) at which so many right ones or more would not be too lucky; 0 where of is 0."""
    return _bisect(lambda share: _binomial_at_least(right, of, share) < DOUBT, 1.0) if right else 0.0


def count_at_most(count: int) -> float:
    """Return the highest mean at which so few events or fewer would not be too lucky: 3.0 where there was none."""
    return _bisect(lambda mean: _poisson_at_most(count, mean) > DOUBT, 10.0 * (count + 1))


def _binomial_at_least(right: int, of: int, share: float) -> float:
    return sum(math.comb(of, n) * share**n * (1 - share) ** (of - n) for n in range(right, of + 1))


def _poisson_at_most(count: int, mean: float) -> float:
    return math.exp(-mean) * sum(mean**n / math.factorial(n) for n in range(count + 1))


def _bisect(holds: Callable[[float], bool], high: float) -> float:
    """Return where `holds` ends between 0 and `high`."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
