"""What a holder of tensors is called in the user's code, and the line that fills it: no code of theirs is run.

A name is an attribute of a class or of its instance (`SheetTrainer.seen`), a global of a module, a variable of a
function: a local one, one of a closure, or an argument's default. The line is read off compiled code.
"""

from __future__ import annotations

import dis
import gc
import os
import sys
import time
from collections import OrderedDict, defaultdict, deque
from types import (
    CodeType,
    FrameType,
    FunctionType,
    GeneratorType,
    GetSetDescriptorType,
    MemberDescriptorType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

CONTAINERS = (list, dict, tuple, set, frozenset, deque, OrderedDict, defaultdict)
MOST_LEVELS = 4  # of containers in containers, from what holds the tensors to what has a name
MOST_REFERRERS = 16  # that are asked for their names
MOST_CODES = 2000  # functions of the user's in which the line is looked for
MOST_MODULES = 200
MUTATORS = frozenset(("append", "appendleft", "extend", "add", "update", "insert", "setdefault", "put", "__setitem__"))
LIBRARIES = ("site-packages", "dist-packages")
OURS = os.path.dirname(__file__)  # noqa: PTH120 - os.path is loaded already, pathlib may not be
STANDARD = os.path.dirname(os.__file__)  # noqa: PTH120 - likewise
OPTIMIZED = 1  # the flag of code with fast variables, that of functions; inspect, which names it, is slow to load
LOOKS_ON = (3, 13)  # since when a frame's variables can be looked at in place (PEP 667)
STORED, ADDED = 1, 2  # how well an instruction fits a line that fills something
Name = Any  # a mapping: name, place, file, line, function


def owner_of(holder: Any, deadline: float, ours: set[int]) -> Name | None:
    """Return the name of what holds an object, None where nothing with a name does, or no time is left."""
    held = holder
    for _ in range(MOST_LEVELS):
        if time.thread_time() > deadline:
            return None
        found = referrers_of([held], deadline)
        ours = ours | {id(found)}
        above = [each for each in found if id(each) not in ours and type(each) is not FrameType][:MOST_REFERRERS]
        ours.add(id(above))
        del found
        name = _named(held, above, ours, deadline) or _local(held)
        if name is not None:
            return name
        held = next((each for each in above if type(each) in CONTAINERS), None)
        if held is None:
            return None
    return None


def referrers_of(objects: list[Any], deadline: float) -> list[Any]:
    """Return what refers to some objects besides this list and the call itself (whose tuple Python 3.13 counts)."""
    mark = object()
    found: list[Any] = []
    if time.thread_time() > deadline:  # a walk through all objects of the process, tens of milliseconds
        return found
    for each in gc.get_referrers(*objects, mark):  # a comprehension would keep `mark` in a cell, which refers to it
        if each is not objects and not (type(each) is tuple and each and each[-1] is mark):
            found.append(each)  # noqa: PERF401 - see above
    return found


def _named(held: Any, above: list[Any], ours: set[int], deadline: float) -> Name | None:
    for each in above:
        name = (
            _of_namespace(held, each, ours, deadline) if type(each) is dict else _of_other(held, each, ours, deadline)
        )
        if name is not None:
            return name
    return None


def _of_namespace(held: Any, names: dict[str, Any], ours: set[int], deadline: float) -> Name | None:
    """Return the name in a module, a class or an instance whose names these are."""
    key = _key(names, held)
    if key is None:
        return None
    module = sys.modules.get(names["__name__"]) if type(names.get("__name__")) is str else None
    if type(module) is ModuleType and _names_of(module) is names:
        file = names.get("__file__")
        stem = os.path.splitext(os.path.basename(file))[0] if type(file) is str else names["__name__"]  # noqa: PTH119, PTH122
        return {
            "name": f"{stem}.{key}",
            "place": "global",
            **_filled(key, names, file if type(file) is str else "", deadline),
        }
    for each in _own_classes():  # found without another walk through all objects
        if any(part is names for part in gc.get_referents(each)):
            return _of_class(each, key, "class", deadline)
    for owner in referrers_of([names], deadline)[:MOST_REFERRERS]:
        if id(owner) in ours or isinstance(owner, FrameType):
            continue
        if isinstance(owner, type):
            return _of_class(owner, key, "class", deadline)
        if type(owner) not in CONTAINERS and _names_of(owner) is names:
            return _of_class(type(owner), key, "instance", deadline)
    return None


def _of_other(held: Any, owner: Any, ours: set[int], deadline: float) -> Name | None:
    """Return the name in an instance that keeps its attributes itself, a closure, a function or a generator."""
    kind = type(owner)
    if kind in CONTAINERS:
        return _of_function(held, owner, ours, deadline) if kind is tuple else None
    if kind is GeneratorType:
        return _of_code(owner.gi_code, next(iter(_variables(owner.gi_frame, held)), None), "local")
    if kind.__name__ == "cell":
        return _of_closure(owner, ours, deadline)
    if kind.__name__ == "_lru_cache_wrapper":
        code = getattr(getattr(owner, "__wrapped__", None), "__code__", None)
        return _of_code(code, "lru_cache", "cache") if type(code) is CodeType else None
    names = _names_of(owner)
    key = _key(names, held) if type(names) is dict else _slot(owner, held)
    return None if key is None else _of_class(kind, key, "instance", deadline)


def _of_function(held: Any, values: tuple[Any, ...], ours: set[int], deadline: float) -> Name | None:
    """Return the name of an argument whose default it is: `def keep(image, seen=[])`."""
    for owner in referrers_of([values], deadline)[:MOST_REFERRERS]:
        if type(owner) is FunctionType and id(owner) not in ours and owner.__defaults__ is values:
            code = owner.__code__
            arguments = code.co_varnames[: code.co_argcount][-len(values) :]
            at = next(place for place, each in enumerate(values) if each is held)
            return _of_code(code, arguments[at], "argument")
    return None


def _of_closure(cell: Any, ours: set[int], deadline: float) -> Name | None:
    for values in referrers_of([cell], deadline)[:MOST_REFERRERS]:
        if type(values) is not tuple or id(values) in ours:
            continue
        for owner in referrers_of([values], deadline)[:MOST_REFERRERS]:
            if type(owner) is FunctionType and owner.__closure__ is values:
                at = next(place for place, each in enumerate(values) if each is cell)
                return _of_code(owner.__code__, owner.__code__.co_freevars[at], "closure")
    return None


def _local(held: Any) -> Name | None:
    """Return the name of a variable of a function that runs: the collector does not see into those."""
    if sys.gettrace() is not None:  # a debugger has its own mind about local variables
        return None
    frame: FrameType | None = None
    waiting = list(sys._current_frames().values())
    try:
        while waiting or frame is not None:
            frame = waiting.pop() if frame is None else frame
            key = next(iter(_variables(frame, held)), None)
            if key is not None:
                return _of_code(frame.f_code, key, "local")
            frame = frame.f_back
        return None
    finally:  # our own frame is one of them: a variable that names it would keep it, and all that it holds
        frame = None
        waiting.clear()


def _variables(frame: FrameType | None, held: Any) -> list[str]:
    """Return the names that an object has among a function's variables; none where to look at them changes something.

    Up to Python 3.12 they are copied into the dict that `locals()` returned to the user's code, and stay there.
    """
    code = None if frame is None or sys.version_info < LOOKS_ON else frame.f_code
    if frame is None or code is None or code.co_filename.startswith(OURS) or not code.co_flags & OPTIMIZED:
        return []
    found = [name for name, value in frame.f_locals.items() if value is held]
    return [name for name in found if name in code.co_varnames or name in code.co_cellvars]


def _key(names: Any, held: Any) -> str | None:
    return next((key for key, value in list(names.items()) if value is held and type(key) is str), None)


def _names_of(owner: Any) -> Any:
    """Return an object's own `__dict__`, None where it has none, or its class has its own idea of it."""
    classes = type.__getattribute__(type(owner), "__mro__")
    told = next((each.__dict__["__dict__"] for each in classes if "__dict__" in each.__dict__), None)
    if type(told) not in {GetSetDescriptorType, MemberDescriptorType}:  # the latter of a module
        return None
    return object.__getattribute__(owner, "__dict__") if not isinstance(owner, type) else None


def _slot(owner: Any, held: Any) -> str | None:
    """Return the slot of an object that holds another one."""
    for each in type.__getattribute__(type(owner), "__mro__"):
        for name, member in list(each.__dict__.items()):
            if type(member).__name__ == "member_descriptor":
                try:
                    if member.__get__(owner) is held:
                        return str(name)
                except AttributeError:  # it is empty
                    continue
    return None


def _of_class(owner: type, key: str, place: str, deadline: float) -> Name:
    name = type.__getattribute__(owner, "__qualname__")
    module = sys.modules.get(str(owner.__dict__.get("__module__")))
    file = module.__dict__.get("__file__") if type(module) is ModuleType else None
    return {
        "name": f"{name}.{key}",
        "place": place,
        **_filled(key, owner.__dict__, file if type(file) is str else "", deadline),
    }


def _of_code(code: CodeType, key: str | None, place: str) -> Name | None:
    """Return the name of a function's variable; it is filled in that function, or in one within it."""
    if key is None:
        return None
    function = getattr(code, "co_qualname", code.co_name)
    best = max((fill for each in _within(code) for fill in _fills(each, key)), key=lambda fill: fill[0], default=None)
    at = (best[1], best[2]) if best else (code.co_name, code.co_firstlineno)
    return {
        "name": f"{function.replace('.<locals>', '')}.{key}",
        "place": place,
        "file": code.co_filename,
        "function": at[0],
        "line": at[1],
    }


def _filled(key: str, names: Any, file: str, deadline: float) -> Name:
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
    spaces += [(False, _names_of(each)) for each in _own_modules()]
    for own, names in spaces:
        for value in list(names.values()):
            function = value.__func__ if type(value) in {staticmethod, classmethod} else value
            if type(function) is FunctionType and len(known) < MOST_CODES and time.thread_time() < deadline:
                for code in _within(function.__code__):
                    if id(code) not in known:
                        known.add(id(code))
                        yield own, code


def _own_modules() -> list[ModuleType]:
    modules = [each for each in list(sys.modules.values()) if type(each) is ModuleType and _is_own(each)]
    return modules[:MOST_MODULES]


def _own_classes() -> list[type]:
    """Return the classes of the user's own modules."""
    spaces = [_names_of(each) for each in _own_modules()]
    return [
        each
        for names in spaces
        for each in list(names.values())
        if isinstance(each, type) and each.__dict__.get("__module__") == names.get("__name__")
    ]


def _is_own(module: ModuleType) -> bool:
    file = (_names_of(module) or {}).get("__file__")
    return type(file) is str and not _is_library(file)


def _is_library(file: str) -> bool:
    parts = file.replace("\\", "/").split("/")
    return file.startswith((STANDARD, OURS)) or any(each in parts for each in LIBRARIES)


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
