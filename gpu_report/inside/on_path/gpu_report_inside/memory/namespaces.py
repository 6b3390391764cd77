"""The names in modules, classes and objects, and which modules are the user's own: looked up without running code."""

from __future__ import annotations

import os
import sys
from types import GetSetDescriptorType, MemberDescriptorType, ModuleType
from typing import Any

MOST_MODULES = 200
LIBRARIES = ("site-packages", "dist-packages")
OURS = os.path.dirname(os.path.dirname(__file__))  # noqa: PTH120 - os.path is loaded already, pathlib may not be
STANDARD = os.path.dirname(os.__file__)  # noqa: PTH120 - likewise


def names_of(owner: Any) -> Any:
    """Return an object's own `__dict__`, None where it has none, or its class has its own idea of it."""
    classes = type.__getattribute__(type(owner), "__mro__")
    told = next((each.__dict__["__dict__"] for each in classes if "__dict__" in each.__dict__), None)
    if type(told) not in {GetSetDescriptorType, MemberDescriptorType}:  # the latter of a module
        return None
    return object.__getattribute__(owner, "__dict__") if not isinstance(owner, type) else None


def own_modules() -> list[ModuleType]:
    """Return the modules that are neither Python's, nor installed, nor ours."""
    modules = [each for each in list(sys.modules.values()) if type(each) is ModuleType and _is_own(each)]
    return modules[:MOST_MODULES]


def own_classes() -> list[type]:
    """Return the classes of the user's own modules."""
    spaces = [names_of(each) for each in own_modules()]
    return [
        each
        for names in spaces
        for each in list(names.values())
        if isinstance(each, type) and each.__dict__.get("__module__") == names.get("__name__")
    ]


def _is_own(module: ModuleType) -> bool:
    file = (names_of(module) or {}).get("__file__")
    return type(file) is str and not _is_library(file)


def _is_library(file: str) -> bool:
    parts = file.replace("\\", "/").split("/")
    return file.startswith((STANDARD, OURS)) or any(each in parts for each in LIBRARIES)
