"""Packed columns read back as js/codec.js reads them."""

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpu_report.render.samples.column_codec import PackedColumn
from gpu_report.render.samples.columns import Blob

HIGHEST = {"u1": 255, "u2": 65535, "u4": 2**32 - 1}
Described = Mapping[str, Any]


def unpack(column: PackedColumn) -> npt.NDArray[np.float64]:
    """Return the values of one packed column; what it lies over is put into the same blob."""
    blob = Blob()
    blob.put(_chain(column)[:-1])
    (described,) = blob.put([column])
    return Reader(blob.take()).values(described)


def _chain(column: PackedColumn) -> list[PackedColumn]:
    other = column.line.column if column.line else None
    return [*(_chain(other) if other else []), column]


ESCAPED = {"<A": "\0", "<B": "\r", "<C": "<", "<D": "\x1b"}


def from_text(text: str) -> bytes:
    """Return the bytes of a dense text, read bit by bit."""
    plain = re.sub("<[A-D]", lambda found: ESCAPED[found[0]], text)
    bits = "".join(f"{ord(character):07b}" for character in plain)
    return bytes(int(bits[at : at + 8], 2) for at in range(0, len(bits) - 7, 8))


class Reader:
    """The columns in a text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def values(self, about: Described) -> npt.NDArray[np.float64]:
        """Return a column's values, NaN where they are missing."""
        numbers = self._numbers(about)
        if about["dtype"] not in HIGHEST:
            return numbers
        missing = numbers == HIGHEST[about["dtype"]]
        codes = np.where(missing, 0, numbers) + about.get("least", 0)
        whole = np.array([_from_digits(int(code), about.get("digits", 0)) for code in codes], dtype=float)
        return np.where(missing, np.nan, whole / 10.0 ** about["decimals"])

    def rows(self, table: Sequence[Described]) -> list[list[float | None]]:
        """Return a table's rows; None is missing."""
        columns = [self.values(about).tolist() for about in table]
        return [[None if np.isnan(value) else value for value in row] for row in zip(*columns, strict=True)]

    def _numbers(self, about: Described) -> npt.NDArray[np.float64]:
        line = about.get("line")
        if line is not None:
            return self._over(about, line)
        numbers = self._raw(about, about["dtype"], about.get("gap"))
        if "rows" in about:
            places = self.values(about["rows"]).astype(int)
            spread = np.full(about["count"], HIGHEST.get(about["dtype"], np.nan), dtype=float)
            spread[places] = numbers
            return spread
        return numbers

    def _raw(self, about: Described, dtype: str, gap: int | None) -> npt.NDArray[np.float64]:
        data = from_text(self._text[about["offset"] : about["offset"] + about["length"]])
        planes = np.frombuffer(zlib.decompress(data, wbits=-15), np.uint8)
        kind = np.dtype(f"<{dtype}")
        by_plane = planes.reshape(kind.itemsize, -1)
        if about.get("low"):
            raw = (by_plane[0].astype(int) | by_plane[1].astype(int) << about["low"]).astype(kind)
        else:
            raw = by_plane.T.copy().view(kind).ravel()
        raw = np.cumsum(raw, dtype=kind) if about.get("delta") else raw
        return np.where(raw == gap, HIGHEST[dtype], raw).astype(float) if gap is not None else raw.astype(float)

    def _over(self, about: Described, line: Described) -> npt.NDArray[np.float64]:
        over = self._raw(about, line["dtype"], line["gap"])
        below = np.arange(len(over)) if "column" not in line else self._below(line["column"])
        numbers = over + line["add"] - about.get("least", 0) + np.floor((below * line["slope"] + 2**21) / 2**22)
        return np.where(over == HIGHEST[line["dtype"]], HIGHEST[about["dtype"]], numbers)

    def _below(self, column: Described) -> npt.NDArray[np.float64]:
        other = self._numbers(column)
        return np.where(other == HIGHEST[column["dtype"]], 0, other + column.get("least", 0))


def _from_digits(code: int, digits: int) -> int:
    if not digits or code < 10**digits:
        return code
    decade, mantissa = divmod(code - 10**digits, 9 * 10 ** (digits - 1))
    return (10 ** (digits - 1) + mantissa) * 10 ** (decade + 1)
