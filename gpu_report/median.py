"""Medians of many readings: numpy finds the place of one value in a tenth of the time that it takes for several."""

from typing import Any

import numpy as np
import numpy.typing as npt

Readings = npt.NDArray[np.floating[Any]]


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
