"""The column codec: every recorded sample, small enough for a page and exact when read back (js/codec.js).

A column is scaled to the precision that means something (schema decimals), stored in the smallest integer type
with the type's highest value standing for missing, as differences where those deflate smaller, byte by byte
(all low bytes, then all high bytes), and deflated. What no integer type holds stays a 64-bit float.
"""

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

INTEGER_TYPES = ("u1", "i1", "u2", "i2", "u4", "i4")
FLOAT_TYPE = "f8"
DEFLATE_LEVEL = 6  # 9 takes four times as long and wins 1.7 % (reference/report.md, f)
PROBE_VALUES = 65_536  # how much of a column decides whether differences deflate smaller
MILLISECOND_DECIMALS = 3
TIME_COLUMN = "t_s"


@dataclass(frozen=True)
class PackedColumn:
    """One column as the page holds it: `data` is raw deflate, `decimals` the power of ten it was scaled by."""

    name: str
    count: int
    dtype: str
    delta: bool
    decimals: int
    data: bytes


def pack_frame(frame: pd.DataFrame, decimals: dict[str, int]) -> tuple[PackedColumn, ...]:
    """Pack the time column (at 1 ms) and every column of `decimals` in which anything was recorded."""
    times = pack_column(TIME_COLUMN, _values(frame, TIME_COLUMN), MILLISECOND_DECIMALS)
    recorded = (name for name in decimals if name in frame.columns and bool(frame[name].notna().any()))
    return (times, *(pack_column(name, _values(frame, name), decimals[name]) for name in recorded))


def pack_column(name: str, values: NDArray[np.float64], decimals: int) -> PackedColumn:
    """Pack one column of numbers; NaN and infinities are missing."""
    scaled = np.round(values * 10**decimals)
    missing = ~np.isfinite(scaled)
    dtype = _smallest_type(scaled[~missing])
    if dtype == FLOAT_TYPE:
        floats = np.where(missing, np.nan, np.round(values, decimals)).astype("<f8")
        return PackedColumn(name, len(values), dtype, delta=False, decimals=0, data=_deflate(_planes(floats)))
    integers = np.where(missing, np.iinfo(dtype).max, scaled).astype(f"<{dtype}")
    differences = _differences(integers)
    delta = len(_deflate(_planes(differences[:PROBE_VALUES]))) < len(_deflate(_planes(integers[:PROBE_VALUES])))
    data = _deflate(_planes(differences if delta else integers))
    return PackedColumn(name, len(values), dtype, delta, decimals, data)


def _values(frame: pd.DataFrame, name: str) -> NDArray[np.float64]:
    return frame[name].to_numpy(dtype=np.float64, na_value=np.nan)


def _smallest_type(present: NDArray[np.float64]) -> str:
    low, high = (float(present.min()), float(present.max())) if present.size else (0.0, 0.0)
    fits = (t for t in INTEGER_TYPES if np.iinfo(t).min <= low and high < np.iinfo(t).max)
    return min(fits, key=lambda t: np.dtype(t).itemsize, default=FLOAT_TYPE)


def _differences(integers: NDArray[Any]) -> NDArray[Any]:
    unsigned = integers.view(integers.dtype.str.replace("i", "u"))
    return np.diff(unsigned, prepend=unsigned.dtype.type(0))  # wraps, as the reader's running sum does


def _planes(values: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values).view(np.uint8).reshape(len(values), values.dtype.itemsize).T.tobytes()


def _deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(DEFLATE_LEVEL, wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()
