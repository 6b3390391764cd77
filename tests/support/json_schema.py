"""The part of JSON Schema (2020-12) that our schema uses; a keyword that is not known here is an error, not a pass."""

from collections.abc import Mapping
from typing import Any

TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "integer": int,
    "number": (int, float),
}
WORDS = {"$schema", "$id", "$defs", "title", "description"}


def errors(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any] | None = None, at: str = "$") -> list[str]:
    """Return what of a value a schema does not allow, empty where it allows all of it."""
    root = root or schema
    if "$ref" in schema:
        schema = {
            **root["$defs"][schema["$ref"].removeprefix("#/$defs/")],
            **{k: v for k, v in schema.items() if k != "$ref"},
        }
    found: list[str] = []
    for keyword, wanted in schema.items():
        if keyword not in WORDS:
            found += CHECKS[keyword](value, wanted, schema, root, at)
    return found


def _type(value, wanted, schema, root, at):
    names = wanted if isinstance(wanted, list) else [wanted]
    fits = any(isinstance(value, TYPES[n]) and (n == "boolean" or not isinstance(value, bool)) for n in names)
    return [] if fits else [f"{at} is {value!r}, no {wanted}"]


def _properties(value, wanted, schema, root, at):
    if not isinstance(value, dict):
        return []
    return [
        e for name, each in wanted.items() if name in value for e in errors(value[name], each, root, f"{at}.{name}")
    ]


def _required(value, wanted, schema, root, at):
    return [f"{at} has no {name}" for name in wanted if isinstance(value, dict) and name not in value]


def _additional(value, wanted, schema, root, at):
    more = {
        name: value[name] for name in (value if isinstance(value, dict) else ()) if name not in schema["properties"]
    }
    if wanted is False:
        return [f"{at} has {name}" for name in more]
    return [e for name, each in more.items() for e in errors(each, wanted, root, f"{at}.{name}")]


def _items(value, wanted, schema, root, at):
    many = enumerate(value) if isinstance(value, list) else ()
    return [e for n, item in many for e in errors(item, wanted, root, f"{at}[{n}]")]


def _any_of(value, wanted, schema, root, at):
    return [] if any(not errors(value, each, root, at) for each in wanted) else [f"{at} is {value!r}, none of anyOf"]


CHECKS = {
    "type": _type,
    "properties": _properties,
    "required": _required,
    "additionalProperties": _additional,
    "items": _items,
    "anyOf": _any_of,
    "const": lambda value, wanted, schema, root, at: [] if value == wanted else [f"{at} is not {wanted!r}"],
    "enum": lambda value, wanted, schema, root, at: [] if value in wanted else [f"{at} is {value!r}, none of {wanted}"],
    "minimum": lambda value, wanted, schema, root, at: (
        [f"{at} < {wanted}"] if value is not None and value < wanted else []
    ),
}
