"""What numbers stand for, worked out once for each of them, however often they come."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Places = npt.NDArray[np.int64]


def distinct(numbers: npt.NDArray[Any], told: Callable[[int], T]) -> tuple[list[T], Places]:
    """Return what numbers stand for, each thing once, in order of the numbers; and for each number its place there."""
    unique, of = np.unique(numbers, return_inverse=True)
    known: dict[T, int] = {}
    places = [known.setdefault(told(number), len(known)) for number in unique.tolist()]
    return list(known), np.array(places, dtype=np.int64)[of]
