"""Which line of the user's code fills what has a name: read off compiled code, of which none is run."""

from __future__ import annotations

import dis
import time
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from .namespaces import names_of, own_modules

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_CODES = 2000  # functions of the user's in which the line is looked for
MUTATORS = frozenset(("append", "appendleft", "extend", "add", "update", "insert", "setdefault", "put", "__setitem__"))
STORED, ADDED = 1, 2  # how well an instruction fits a line that fills something
Place = dict[str, Any]  # file, line, function


def line_in(code: CodeType, key: str) -> Place:
    """Return the line of a function, or of one within it, that fills its variable; its first where none is seen to."""
    best = max((fill for each in _within(code) for fill in _fills(each, key)), key=lambda fill: fill[0], default=None)
    function, line = (best[1], best[2]) if best else (code.co_name, code.co_firstlineno)
    return {"file": code.co_filename, "function": function, "line": line}


def line_that_fills(key: str, names: Any, file: str, deadline: float) -> Place:
    """Return the line of the user's code that fills what has a name, among the functions of its class or module first.

    `names` are those of that class or module. A function elsewhere may fill another one's attribute of that name: it is
    named where it is the only one that adds to any.
    """
    own: list[tuple[int, str, str, int]] = []
    others: list[tuple[int, str, str, int]] = []
    for mine, code in _codes(names, deadline):
        if key in code.co_names:
            found = [(fit, code.co_filename, function, line) for fit, function, line in _fills(code, key)]
            own += found if mine else []
            others += [] if mine else [each for each in found if each[0] == ADDED]
    if time.thread_time() > deadline:
        own, others = [], []  # there may be a better one
    places = {each[1:3] for each in others}
    best = max(own, key=lambda fill: fill[0], default=others[0] if len(places) == 1 else None)
    if best is None:
        return {"file": file, "function": "", "line": None}
    return {"file": best[1], "function": best[2], "line": best[3]}


def _codes(first: Any, deadline: float) -> Iterator[tuple[bool, CodeType]]:
    """Yield the code of functions among some names (True), and of others in the user's own modules (False).

    A method of another class has attributes of its own in mind.
    """
    known: set[int] = set()
    spaces: list[tuple[bool, Any]] = [(True, first)]
    spaces += [(False, names_of(each)) for each in own_modules()]
    for own, names in spaces:
        for value in list(names.values()):
            function = value.__func__ if type(value) in {staticmethod, classmethod} else value
            if type(function) is FunctionType and len(known) < MOST_CODES and time.thread_time() < deadline:
                for code in _within(function.__code__):
                    if id(code) not in known:
                        known.add(id(code))
                        yield own, code


def _within(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if type(each) is CodeType:
            yield from _within(each)


def _fills(code: CodeType, key: str) -> Iterator[tuple[int, str, int]]:
    """Yield where code adds to something of this name, or stores into it: how well it fits, function and line."""
    lines = dict(dis.findlinestarts(code))
    line, on_line = code.co_firstlineno, False
    instructions = list(dis.get_instructions(code))
    for at, each in enumerate(instructions):
        if each.offset in lines:
            line, on_line = lines[each.offset] or line, False
        if _loads(each, key):
            on_line = True
            after = next(
                (one for one in instructions[at + 1 : at + 3] if one.opname not in {"PUSH_NULL", "CACHE"}), None
            )
            if after is not None and after.argval in MUTATORS:
                yield ADDED, code.co_name, line
        elif on_line and (_mutates(each) or _stores(each, key)):
            yield STORED, code.co_name, line


def _loads(instruction: dis.Instruction, key: str) -> bool:
    value = instruction.argval
    return instruction.opname.startswith("LOAD") and (value == key or (type(value) is tuple and value[-1:] == (key,)))


def _stores(instruction: dis.Instruction, key: str) -> bool:
    return instruction.opname.startswith("STORE") and instruction.argval == key


def _mutates(instruction: dis.Instruction) -> bool:
    """Tell whether an instruction adds to something: `x[0] = y`, `x += y` or `x[0].append(y)`."""
    operation, value = instruction.opname, instruction.argval
    in_place = operation.startswith("INPLACE") or (operation == "BINARY_OP" and instruction.argrepr.endswith("="))
    return operation == "STORE_SUBSCR" or in_place or (type(value) is str and value in MUTATORS)
