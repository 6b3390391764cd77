"""The column codec: every recorded sample, small enough for a page, exact at its scale when read back (codec.js).

A column is scaled to the precision that means something, which makes it whole numbers, and stored from its least number
up in the smallest unsigned type, with one number over the highest that stands for missing. It is stored as it is, as
differences, or as what it is over a line drawn through another column that moves with it, whichever is smallest; of one
that is seldom read, only what was read, and where. What no integer type holds stays a 64-bit float.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpu_report.render.samples.base128 import to_text
from gpu_report.render.samples.byte_planes import deflated, layout

Floats = NDArray[np.float64]
Readings = NDArray[np.floating[Any]]  # float32 where a column is kept so
Whole = NDArray[np.signedinteger[Any]]
Numbers = NDArray[Any]
Bools = NDArray[np.bool_]

INTEGER_TYPES: Final = ("u1", "u2", "u4")
FLOAT_TYPE: Final = "f8"
LARGEST: Final = 2.0**52  # what both sides reckon with exactly
SMALL: Final = 2**30  # no difference of two numbers below is more than 32 bits hold
SELDOM: Final = 0.25  # of the rows: a column known in fewer is stored without the others
SLOPE_ONE: Final = 1 << 22  # slopes are whole numbers of such parts, so that both sides reckon alike
MILLISECOND_DECIMALS: Final = 3
TIME_COLUMN: Final = "t_s"
FEW: Final = 64  # readings
PART_ROWS: Final = 1 << 18  # worked out at once: a month of the driver's readings has 13 million rows


@dataclass(frozen=True)
class Scale:
    """How a column becomes whole numbers: its decimals, and how many significant digits mean something (0: all)."""

    decimals: int
    digits: int = 0


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """The whole numbers of a column, and which of them say nothing."""

    whole: Whole
    missing: Bools

    @cached_property
    def is_all(self) -> bool:
        """Tell whether none is missing."""
        return not self.missing.any()

    @cached_property
    def reach(self) -> tuple[int, int]:
        """Return the least and the highest number, 0 and 0 where there is none."""
        present = self.whole if self.is_all else self.whole[~self.missing]
        return (int(present.min()), int(present.max())) if len(present) else (0, 0)


@dataclass(frozen=True, eq=False)
class LowerBound:
    """What a column is at least: `add` + the nearest to `slope` x the whole numbers of `column` / SLOPE_ONE.

    Without a column it is drawn through the numbers of the rows. What it is over that is of `dtype`, where `gap` stands
    for missing.
    """

    column: PackedColumn | None
    slope: int
    add: int
    dtype: str
    gap: int | None


@dataclass(frozen=True, eq=False)
class PackedColumn:
    """One column as the page holds it: `text` is raw deflate (base128.py).

    Unpacked it is numbers of `dtype` from `least` up, of which `gap` stands for missing (None: nothing is); packed are
    these, their differences (`delta`), or what they are over a `line`, in two planes where `low` is not 0. `rows` are
    the rows that they are of, None where of all.
    """

    name: str
    count: int
    dtype: str
    text: str
    scale: Scale = Scale(0)
    least: int = 0
    gap: int | None = None
    low: int = 0
    delta: bool = False
    line: LowerBound | None = None
    rows: PackedColumn | None = None


@dataclass(frozen=True, eq=False)
class Relative:
    """A packed column that another one may lie over, and its whole numbers, which are not kept with all columns.

    None is the numbers of the rows.
    """

    column: PackedColumn | None
    known: WholeNumbers


def pack_frame(
    frame: pd.DataFrame,
    scales: Mapping[str, Scale],
    kin: Mapping[str, str] | None = None,
    time_decimals: int = MILLISECOND_DECIMALS,
) -> tuple[PackedColumn, ...]:
    """Pack the time column and every column of `scales` in which anything was recorded.

    `kin` names columns that move with another one, which stands before them in `scales`.
    """
    times, scale = _values(frame, TIME_COLUMN), Scale(time_decimals)
    # a recorder keeps to its ticks
    packed = {TIME_COLUMN: pack_column(TIME_COLUMN, times, scale, row_numbers(len(frame)))}
    for name, scale in scales.items():
        if name in frame.columns and _has_any(values := _values(frame, name)):
            other = packed.get((kin or {}).get(name, ""))
            relative = relative_of(other, _values(frame, other.name)) if other else None
            packed[name] = pack_column(name, values, scale, relative)
    return tuple(packed.values())


def pack_column(name: str, values: Readings, scale: Scale, relative: Relative | None = None) -> PackedColumn:
    """Pack one column of numbers; NaN and infinities are missing. `relative` is a column that it may move with."""
    present = np.isfinite(values)
    if 0 < np.count_nonzero(present) / max(len(present), 1) < SELDOM:
        return _pack_seldom(name, values, present, scale)
    known = _known(values, present, scale)
    if known is None:
        return PackedColumn(name, len(values), FLOAT_TYPE, to_text(deflated(_rounded(values, present, scale), 0)))
    return _pack_whole(PackedColumn(name, len(values), "", "", scale), known, relative)


def relative_of(column: PackedColumn, values: Readings) -> Relative | None:
    """Return what other columns may lie over; None for a column that is none of whole numbers in all rows."""
    known = None if column.rows or column.dtype == FLOAT_TYPE else _known(values, np.isfinite(values), column.scale)
    return Relative(column, known) if known else None


def row_numbers(count: int) -> Relative:
    """Return what a column may lie over that rises by the same from row to row, but for a little."""
    return Relative(None, WholeNumbers(np.arange(count, dtype=np.int32), np.broadcast_to(np.False_, count)))


def _pack_whole(column: PackedColumn, known: WholeNumbers, relative: Relative | None) -> PackedColumn:
    """Return a column with its whole numbers packed the way that makes them smallest."""
    numbers, least = _numbered(known)
    line, over = _line_through(relative, known)
    ways = {"plain": numbers, "delta": _differences(numbers)}
    if line is not None:
        ways["line"] = over
    layouts = {way: layout(stored) for way, stored in ways.items()}
    best = min(ways, key=lambda way: layouts[way][0])
    low = layouts[best][1]
    return replace(
        column,
        dtype=_name(numbers),
        text=to_text(deflated(ways[best], low)),
        least=least,
        gap=_gap(numbers, known),
        low=low,
        delta=best == "delta",
        line=line if best == "line" else None,
    )


def _pack_seldom(name: str, values: Readings, present: Bools, scale: Scale) -> PackedColumn:
    """Pack a column that is missing in most rows: the rows in which it is not, and its values there."""
    rows = np.flatnonzero(present)
    places = pack_column("rows", rows.astype(np.float64), Scale(0))
    return replace(pack_column(name, values[rows], scale), count=len(values), rows=places)


def _values(frame: pd.DataFrame, name: str) -> Readings:
    """Return a column as it is kept: in 32 bits it takes half, and a part at a time is worked out in 64."""
    return frame[name].to_numpy()


def _has_any(values: Readings) -> bool:
    """Tell whether any is known: the first most often say it already."""
    return not (np.isnan(values[:FEW]).all() and np.isnan(values).all())


def _rounded(values: Readings, present: Bools, scale: Scale) -> Floats:
    """Return floats at their decimals, NaN where missing; one too large to be scaled has no decimals to round."""
    with np.errstate(over="ignore"):
        rounded = np.round(values.astype(np.float64), scale.decimals)
    return np.where(present, np.where(np.isfinite(rounded), rounded, values), np.nan).astype("<f8")


def _known(values: Readings, present: Bools, scale: Scale) -> WholeNumbers | None:
    """Return values as whole numbers, or as codes of so many digits; None where no integer type holds them."""
    whole = np.empty(len(values), dtype=np.int32)
    for part in _parts(len(values)):
        scaled, some = values[part].astype(np.float64), present[part]
        with np.errstate(over="ignore"):  # what becomes infinite is held by none
            scaled *= 10.0**scale.decimals
        np.rint(scaled, out=scaled)
        if not some.all():
            scaled[~some] = 0
        if max(scaled.max(initial=0), -scaled.min(initial=0)) >= LARGEST:
            return None
        whole = _put(whole, part, _in_digits(scaled.astype(np.int64), scale.digits))
    known = WholeNumbers(whole, ~present)
    return known if _fits(known) else None


def _put(whole: Whole, part: slice, numbers: Whole) -> Whole:
    """Return whole numbers with a part of them set: in 64 bits where 32 do not hold them and all their differences."""
    if whole.dtype == np.int32 and max(numbers.max(initial=0), -numbers.min(initial=0)) >= SMALL:
        whole = whole.astype(np.int64)
    whole[part] = numbers
    return whole


def _parts(count: int) -> Iterator[slice]:
    return (slice(begin, min(begin + PART_ROWS, count)) for begin in range(0, count, PART_ROWS))


def _fits(known: WholeNumbers) -> bool:
    least, highest = known.reach
    return highest - least < np.iinfo(np.uint32).max


def _numbered(known: WholeNumbers) -> tuple[Numbers, int]:
    """Return whole numbers from their least up in the smallest type, and the least; one over the highest is missing."""
    least, highest = known.reach
    span = highest - least
    dtype = next(each for each in INTEGER_TYPES if span < np.iinfo(each).max)
    numbers: Numbers = np.empty(len(known.whole), dtype=f"<{dtype}")
    for part in _parts(len(numbers)):
        numbers[part] = known.whole[part] - least
    if not known.is_all:
        numbers[known.missing] = span + 1
    return numbers, least


def _gap(numbers: Numbers, known: WholeNumbers) -> int | None:
    return None if known.is_all else int(numbers[known.missing.argmax()])


def _name(numbers: Numbers) -> str:
    return f"u{numbers.dtype.itemsize}"


def _in_digits(whole: Whole, digits: int) -> Whole:
    """Return numbers as codes of so many significant digits, in the same order; those of fewer digits stay themselves.

    Beyond them each decade has 9 x 10^(digits - 1) codes.
    """
    if not digits:
        return whole
    full, least = 10**digits, 10 ** (digits - 1)
    codes, longer = whole.copy(), np.flatnonzero(whole >= full)
    whole = whole[longer]
    decade = np.floor(np.log10(whole)).astype(np.int64) - digits + 1
    mantissa = np.rint(whole / 10.0**decade).astype(np.int64)
    carried = mantissa == full
    decade, mantissa = decade + carried, np.where(carried, least, mantissa)
    codes[longer] = full + (decade - 1) * 9 * least + mantissa - least
    return codes


def _line_through(relative: Relative | None, known: WholeNumbers) -> tuple[LowerBound | None, Numbers]:
    """Return the line that a column lies over, drawn through the one that it moves with (least squares), and how far.

    None and nothing where there is none.
    """
    nothing = None, np.empty(0)
    if relative is None:
        return nothing
    slope = _slope(relative.known, known)
    if not slope or max(map(abs, relative.known.reach)) * abs(slope) >= LARGEST - SLOPE_ONE:
        return nothing
    whole: Whole = np.empty(len(known.whole), dtype=np.int32)
    for part in _parts(len(whole)):
        whole = _put(whole, part, known.whole[part] - _expected(relative.known, slope, part))
    over = WholeNumbers(whole, known.missing)
    if not _fits(over):
        return nothing
    numbers, least = _numbered(over)
    return LowerBound(relative.column, slope, least, _name(numbers), _gap(numbers, over)), numbers


def _slope(one: WholeNumbers, other: WholeNumbers) -> int:
    """Return the slope of one column's numbers over another's, in parts of SLOPE_ONE."""
    count, x_mean, y_mean, spread, common = 0, 0.0, 0.0, 0.0, 0.0
    for x, y in _both(one, other):
        count, x_mean, y_mean = count + len(x), x_mean + float(x.sum()), y_mean + float(y.sum())
    x_mean, y_mean = x_mean / max(count, 1), y_mean / max(count, 1)
    for x, y in _both(one, other):
        spread += float(((x - x_mean) ** 2).sum())
        common += float(((x - x_mean) * (y - y_mean)).sum())
    return round(common / spread * SLOPE_ONE) if spread > 0 else 0


def _both(one: WholeNumbers, other: WholeNumbers) -> Iterator[tuple[Floats, Floats]]:
    """Yield the numbers of the rows that two columns know, a part of them at a time."""
    for part in _parts(len(one.whole)):
        x, y = one.whole[part], other.whole[part]
        if not (one.is_all and other.is_all):
            both = ~one.missing[part] & ~other.missing[part]
            x, y = x[both], y[both]
        yield x.astype(float), y.astype(float)


def _expected(other: WholeNumbers, slope: int, part: slice) -> Whole:
    """Return the slope's part of a line through some rows of a column; of what is missing there, as of 0."""
    known = np.where(other.missing[part], 0, other.whole[part]).astype(np.int64)
    expected: Whole = (known * slope + SLOPE_ONE // 2) // SLOPE_ONE
    return expected


def _differences(numbers: Numbers) -> Numbers:
    return np.diff(numbers, prepend=numbers.dtype.type(0))  # wraps, as the reader's running sum does
