"""args.yaml of a YOLO run: plain values only, whatever the file holds."""

import re
import reprlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final

import yaml

Scalar = str | int | float | bool | None

LONGEST_FILE = 256 * 1024  # characters; YOLO's own has 3 thousand, and reading YAML takes a second a megabyte
LONGEST_TEXT: Final = 1000
LONGEST_LIST: Final = 1000
LARGEST_INT: Final = 2**63  # beyond it, a number is no setting, and JSON readers do not take it

_BRIEF: Final = reprlib.Repr()
_BRIEF.maxlevel = 2  # bounds lists that hold themselves, and those that share parts a million times


# A line as YOLO writes them: a key and a plain value, or none. It means the same to YAML wherever it stands.
_FLAT_LINE: Final = re.compile(r"([A-Za-z_]\w*):(?: (-?[0-9][\w.,+-]*|[A-Za-z_/][\w./+-]*|'[\w., /+-]*'))?")


class _SafeYaml(yaml.SafeLoader):
    """YAML without `<<`: merging aliases of merges of aliases takes for ever."""

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Merge nothing: `<<` is then an unknown tag, which is an error like others."""


def load_arguments(path: Path) -> tuple[dict[str, object], list[str]]:
    """Return the arguments in `path` as scalars and lists of scalars (what is neither as its text), and what failed."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            text = file.read(LONGEST_FILE + 1)
    except FileNotFoundError:
        return {}, []
    except OSError as error:
        return {}, [f"yolo/{path.name} could not be read: {error.strerror}"]
    if len(text) > LONGEST_FILE:
        return {}, [f"yolo/{path.name} could not be read: it is longer than {LONGEST_FILE} characters"]
    return _parsed(text, path.name)


def _parsed(text: str, name: str) -> tuple[dict[str, object], list[str]]:
    if (flat := _flat(text)) is not None:
        return flat, []
    try:
        args = yaml.load(text, _SafeYaml)  # noqa: S506 - a SafeLoader with less
    except RecursionError:
        return {}, [f"yolo/{name} could not be read: it is nested too deeply"]
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError) as error:
        # PyYAML's constructors raise all of these for `!!bool maybe`, `!!timestamp x` or the 99th of a month.
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        return {}, [f"yolo/{name} could not be read: {reason}"]
    if not isinstance(args, Mapping):
        return {}, [f"yolo/{name} holds no arguments"]
    return {str(_scalar(key)): _plain(value) for key, value in args.items()}, []


def _flat(text: str) -> dict[str, object] | None:
    """Return the arguments of a text of flat lines alone, None for any other: YAML takes a fifth of loading a run."""
    found = [_FLAT_LINE.fullmatch(line) for line in text.removesuffix("\n").split("\n")]
    lines = [line.groups() for line in found if line is not None]
    if len(lines) < len(found) or not lines:
        return None
    try:
        return {str(_value(key)): _value(value) if value else None for key, value in lines}
    except (
        yaml.YAMLError,
        ValueError,
        TypeError,
        LookupError,
        OverflowError,
    ):  # who reads the whole says what is wrong
        return None


@lru_cache(4096)
def _value(word: str) -> Scalar:
    return _scalar(yaml.load(word, _SafeYaml))  # noqa: S506 - as above


def _plain(value: object) -> object:
    if isinstance(value, list) and len(value) <= LONGEST_LIST and not any(map(_holds_others, value)):
        return [_scalar(item) for item in value]
    return _scalar(value)


def _holds_others(value: object) -> bool:
    return isinstance(value, list | tuple | dict | set)


def _scalar(value: object) -> Scalar:
    if isinstance(value, str):
        return value[:LONGEST_TEXT]
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return value if abs(value) < LARGEST_INT else f"{value:#x}"[:LONGEST_TEXT]
    return (_BRIEF.repr(value) if _holds_others(value) or isinstance(value, bytes) else str(value))[:LONGEST_TEXT]
