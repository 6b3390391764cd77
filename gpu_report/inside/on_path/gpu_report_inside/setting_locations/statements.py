"""What a source does that may switch something on: its calls, assignments and variables of the environment."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LONGEST_LINE = 10_000  # characters: up to Python 3.10 the parser overflows the stack on what is nested some deeper
MOST_PARTS = 8  # of a dotted name
ESCAPE = re.compile(r"\\(?:N\{[^}\n]*\}|[^\r\n'\"])")  # of which the parser warns, on the training's own stderr
ENVIRON = "os.environ"
ASKS = ".cpu_affinity"  # a function that sets something only where it is given what
COMPUTED = object()  # a value that does not stand in the source


class Statement(NamedTuple):
    """A call, an assignment, or the setting of a variable ("call", "assigned", "environ"): of which name, to what."""

    kind: str
    name: str
    value: Any


def steps(source: str) -> list[tuple[int, Statement]]:
    """Return each step of a source with its line; none of one that Python cannot parse."""
    if any(len(line) > LONGEST_LINE for line in source.split("\n")):
        return []
    try:
        nodes = list(ast.walk(ast.parse(ESCAPE.sub("__", source))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # it has been changed since it was imported
        return []
    known = _imported_names(nodes)
    return [(getattr(node, "lineno", 0), step) for node in nodes for step in _steps(node, known)]


def _steps(node: Any, known: Mapping[str, str]) -> Iterator[Statement]:
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Attribute):
                yield Statement("assigned", _dotted(target, known), _value(node.value))
            if isinstance(target, ast.Subscript) and _dotted(target.value, known) == ENVIRON:
                yield Statement("environ", _text(target.slice), _value(node.value))
    elif isinstance(node, ast.Call):
        yield from _steps_of_call(node, _dotted(node.func, known))


def _steps_of_call(node: ast.Call, name: str) -> Iterator[Statement]:
    given = [*node.args, *(each.value for each in node.keywords)]
    if name in {f"{ENVIRON}.setdefault", "os.putenv"} and len(given) > 1:
        yield Statement("environ", _text(given[0]), _value(given[1]))
    elif name == f"{ENVIRON}.update":
        yield from (Statement("environ", each.arg or "", _value(each.value)) for each in node.keywords)
        tables = (each for each in node.args if isinstance(each, ast.Dict))
        pairs = (pair for each in tables for pair in zip(each.keys, each.values))  # noqa: B905 - Python 3.8 to 3.10
        yield from (Statement("environ", _text(key), _value(item)) for key, item in pairs)
    elif given or not name.endswith(ASKS):
        yield Statement("call", name, _value(given[0]) if given else COMPUTED)


def _value(node: Any) -> Any:
    return node.value if isinstance(node, ast.Constant) else COMPUTED


def _text(node: Any) -> str:
    """Return a text that stands in the source; up to Python 3.8 that between brackets has a node around it."""
    value = _value(node.value if type(node).__name__ == "Index" else node)
    return value if isinstance(value, str) else ""


def _imported_names(nodes: Sequence[Any]) -> dict[str, str]:
    """Return what the names that a file imports stand for: `ag` for `torch.autograd`."""
    known: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            known.update((each.asname, each.name) for each in node.names if each.asname)
        if isinstance(node, ast.ImportFrom) and node.module:
            known.update((each.asname or each.name, f"{node.module}.{each.name}") for each in node.names)
    return known


def _dotted(node: Any, known: Mapping[str, str]) -> str:
    """Return the name that an expression is, with what stands for its first part; of a call that of its function."""
    parts: list[str] = []
    while isinstance(node, (ast.Attribute, ast.Call)) and len(parts) < MOST_PARTS:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
        node = node.value if isinstance(node, ast.Attribute) else node.func
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([known.get(node.id, node.id), *reversed(parts)])
