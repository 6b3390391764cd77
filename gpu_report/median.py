"""Medians of many readings: numpy finds the place of one value in a tenth of the time that it takes for several."""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Readings = npt.NDArray[np.floating[Any]]
GOLDEN = (5**0.5 - 1) / 2  # its multiples, less their whole numbers, repeat least
ENOUGH = 1 << 17  # values: the median of more is the same to a thousandth, and a month of readings has 13 million


def median_of(values: Readings) -> float:
    """Return what np.median says of some readings, of which there is at least one."""
    return float(medians_of(values))


def medians_of(rows: Readings) -> Readings:
    """Return what np.median says of each row (its last axis)."""
    half = rows.shape[-1] // 2
    parted = np.partition(rows, half, axis=-1)
    lower, upper = parted[..., :half], parted[..., half:]
    middle: Readings = upper[..., 0] if rows.shape[-1] % 2 else (lower.max(axis=-1) + upper[..., 0]) / 2
    return np.where(np.isnan(upper.max(axis=-1)), np.nan, middle)  # NaN comes last


def enough_of(values: Readings) -> Readings:
    """Return ENOUGH of many values for a median: one of each stretch, at no regular distance, for ticks come so."""
    if len(values) <= 2 * ENOUGH:
        return values
    places = _places() * (len(values) / ENOUGH)
    return values[places.astype(np.intp)]


@cache
def _places() -> npt.NDArray[np.float64]:
    """Return where in the stretches, of length 1, those values lie: a remainder takes as long as all else of them."""
    number = np.arange(ENOUGH)
    places: npt.NDArray[np.float64] = number + number * GOLDEN % 1
    return places
