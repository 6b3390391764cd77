"""What a holder of tensors is called in the user's code, and the line that fills it: no code of theirs is run.

A name is an attribute of a class or of its instance (`SheetTrainer.seen`), a global of a module, a variable of a
function: a local one, one of a closure, or an argument's default. The line is read off compiled code.
"""

from __future__ import annotations

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
    ModuleType,
)
from typing import Any

from ..threads import frames_of_threads
from .fills import line_in, line_that_fills
from .namespaces import OURS, names_of, own_classes

CONTAINERS = (list, dict, tuple, set, frozenset, deque, OrderedDict, defaultdict)
MOST_LEVELS = 4  # of containers in containers, from what holds the tensors to what has a name
MOST_REFERRERS = 16  # that are asked for their names
OPTIMIZED = 1  # the flag of code with fast variables, that of functions; inspect, which names it, is slow to load
LOOKS_ON = (3, 13)  # since when a frame's variables can be looked at in place (PEP 667)
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
    if type(module) is ModuleType and names_of(module) is names:
        file = names.get("__file__")
        stem = os.path.splitext(os.path.basename(file))[0] if type(file) is str else names["__name__"]  # noqa: PTH119, PTH122
        return {
            "name": f"{stem}.{key}",
            "place": "global",
            **line_that_fills(key, names, file if type(file) is str else "", deadline),
        }
    for each in own_classes():  # found without another walk through all objects
        if any(part is names for part in gc.get_referents(each)):
            return _of_class(each, key, "class", deadline)
    for owner in referrers_of([names], deadline)[:MOST_REFERRERS]:
        if id(owner) in ours or isinstance(owner, FrameType):
            continue
        if isinstance(owner, type):
            return _of_class(owner, key, "class", deadline)
        if type(owner) not in CONTAINERS and names_of(owner) is names:
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
    names = names_of(owner)
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
    waiting = list(frames_of_threads().values())
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
        **line_that_fills(key, owner.__dict__, file if type(file) is str else "", deadline),
    }


def _of_code(code: CodeType, key: str | None, place: str) -> Name | None:
    """Return the name of a function's variable; it is filled in that function, or in one within it."""
    if key is None:
        return None
    function = getattr(code, "co_qualname", code.co_name)
    return {"name": f"{function.replace('.<locals>', '')}.{key}", "place": place, **line_in(code, key)}
