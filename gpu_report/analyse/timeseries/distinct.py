"""What numbers stand for, worked out once for each of them, however often they come."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PlaceOf:
    """The place, among different things, of what each of many numbers stands for: `place_of[rows]`.

    It is looked up each time. To keep it takes 15 MB for the notes of a day, several times over.
    """

    numbers: npt.NDArray[Any]
    places: Places  # of each number from 0 on

    def __getitem__(self, rows: Any) -> Places:
        """Return the places of some of the numbers, in any way that an array can be asked for them."""
        places: Places = self.places[self.numbers[rows]]
        return places


def distinct(numbers: npt.NDArray[Any], told: Callable[[int], T]) -> tuple[list[T], PlaceOf]:
    """Return what numbers (0 or more) stand for, each thing once, in order of the numbers, and the place of each there.

    They are counted: to sort a million, as np.unique does, takes ten times as long.
    """
    counts = np.bincount(numbers)
    places, known = np.zeros(len(counts), dtype=np.int64), dict[T, int]()
    for number in np.flatnonzero(counts).tolist():
        places[number] = known.setdefault(told(number), len(known))
    return list(known), PlaceOf(numbers, places)
