"""What the line that a thread stands in calls: the name of a function of C, which has no frame of its own.

Since Python 3.11 code knows the columns of its instructions. A call begins where the name of what it calls begins; of
`loss.mean().item()` that are `mean` and `item`, of which the one that reaches furthest is the call's.
"""

from __future__ import annotations

import itertools
import opcode
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType

EARLIER = 64  # instructions before a call among which its name is looked for: arguments stand in between
BYTES = 2  # of an instruction, caches included
LONGEST = 100  # characters of a name
KNOWS_COLUMNS = sys.version_info >= (3, 11)
# Instructions that name what is called, and by how much their argument is shifted: the lowest bits are flags.
SHIFTS = {
    "LOAD_GLOBAL": 1,
    "LOAD_NAME": 0,
    "LOAD_METHOD": 0,
    "LOAD_ATTR": 1 if sys.version_info >= (3, 12) else 0,
}
_NAMING = {opcode.opmap[name]: shift for name, shift in SHIFTS.items() if name in opcode.opmap}
# `x.float()` of a tensor is another type on the GPU, `float(x)` waits for its value: the former is noted as `.float`.
CONVERSIONS = frozenset(("int", "float", "bool"))
_OF_OBJECT = {opcode.opmap[name] for name in ("LOAD_METHOD", "LOAD_ATTR") if name in opcode.opmap}
_EXTENDED = opcode.opmap["EXTENDED_ARG"]
# In Python 3.11 a call that has been specialised happens in the instruction before it.
_CALLS = {
    number for name, number in opcode.opmap.items() if name.startswith(("CALL", "PRECALL")) and "INTRINSIC" not in name
}
# `with lock:` calls what it enters without a name of its own; since Python 3.14 by a call of what it has loaded before.
ENTERS = "__enter__"
_ENTERING, _LOADING = opcode.opmap.get("BEFORE_WITH"), opcode.opmap.get("LOAD_SPECIAL")


def called(code: CodeType, lasti: int) -> str:
    """Return what an instruction of some code calls, empty where it calls nothing or nobody can say; never raises."""
    try:
        return _called(code, lasti // BYTES) if KNOWS_COLUMNS and lasti >= 0 else ""
    except Exception:  # noqa: BLE001 - a name is worth no trouble
        return ""


def _called(code: CodeType, at: int) -> str:
    raw = code.co_code
    if _enters(raw, at):
        return ENTERS
    if raw[at * BYTES] not in _CALLS:
        return ""
    first = max(at - EARLIER, 0)
    places = list(itertools.islice(code.co_positions(), first, at + 1))
    line, end_line, column, end_column = places[-1]
    if None in (line, end_line, column, end_column):
        return ""
    name, furthest = "", (-1, -1)
    for number, (begin, end, left, right) in enumerate(places[:-1], start=first):
        reach = end or 0, right or 0
        if (begin, left) == (line, column) and reach < (end_line, end_column):
            found = _name(code, raw, number)
            if found and reach >= furthest:
                name, furthest = found, reach
    return name[:LONGEST]


def _enters(raw: bytes, at: int) -> bool:
    """Tell whether an instruction enters a `with` block."""
    if raw[at * BYTES] == _ENTERING:
        return True
    loaded = raw[max(at - 1, 0) * BYTES : at * BYTES]  # its argument is 0 for `__enter__`
    return raw[at * BYTES] in _CALLS and _LOADING is not None and loaded == bytes((_LOADING, 0))


def _name(code: CodeType, raw: bytes, number: int) -> str:
    operation, argument = raw[number * BYTES], raw[number * BYTES + 1]
    if operation not in _NAMING:
        return ""
    if number and raw[(number - 1) * BYTES] == _EXTENDED:
        argument |= raw[(number - 1) * BYTES + 1] << 8
    name = code.co_names[argument >> _NAMING[operation]]
    return f".{name}" if name in CONVERSIONS and operation in _OF_OBJECT else name
