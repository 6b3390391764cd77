"""What is written into a run folder without secrets: its events, texts of other programs, the arguments of YOLO."""

import contextlib
import json
import re
from collections.abc import Mapping

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_text, hide_in_values
from gpu_report.inside.on_path.gpu_report_inside.secrets.yaml_text import hide_in_yaml

LARGEST_ARGUMENTS = 65_536  # characters of args.yaml: 100 lines of YOLO's have 3,000
MOST_ALIASES = 16  # of one YAML: values are written out, and a few lists of lists of aliases would fill the memory
LONGEST_TEXT = 65_536  # characters of an event: a kernel line has 1,000
# A line of which YAML sees no more than line by line can be seen: a key and a plain value, an item of a list.
_FLAT_LINE = re.compile(r"[\w.\-]+:(?: [^&*!|>{\[?\"'%@` ].*)?|- [\w.\-/]+| *(?:#.*)?")


def event_line(kind: str, wall_s: float, mono_s: float, fields: Mapping[str, object]) -> bytes:
    """Return one line of events.jsonl without secrets; KeyError for a kind that schema.EVENT_KINDS does not name."""
    schema.EVENT_KINDS[kind]
    safe = {name: _safe(value) for name, value in fields.items()}
    event = {"wall_s": round(wall_s, 3), "mono_s": round(mono_s, 3), "kind": kind, **safe}
    line = json.dumps(event, ensure_ascii=False, default=lambda value: _safe(str(value)))
    return (line + "\n").encode("utf-8", "backslashreplace")


def safe_text(text: str) -> str:
    """Return a text without secrets, as far as LONGEST_TEXT."""
    return hide_in_text(text[:LONGEST_TEXT])


def _safe(value: object) -> object:
    """Return a field of an event without secrets, also within a list or a mapping."""
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, Mapping):
        return {key: _safe(item) for key, item in value.items()}
    return [_safe(item) for item in value] if isinstance(value, list | tuple) else value


def safe_arguments(text: str) -> str:
    """Return the text of args.yaml without secrets: as YAML that can be read, where it could be before.

    What is longer than LARGEST_ARGUMENTS is none of YOLO's, and left out.
    """
    text = text[:LARGEST_ARGUMENTS]
    safe = hide_in_yaml(text)
    if safe == text and all(map(_FLAT_LINE.fullmatch, text.splitlines())):
        return text
    import yaml  # noqa: PLC0415 - YOLO's own arguments are flat, and hold no secret: a recording starts without it

    unreadable = (yaml.YAMLError, ValueError, TypeError, AttributeError, LookupError, OverflowError, RecursionError)
    is_readable = False
    with contextlib.suppress(*unreadable):
        yaml.compose(safe)
        is_readable = True
    with contextlib.suppress(*unreadable):
        if sum(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text)) <= MOST_ALIASES:
            values = yaml.safe_load(text)
            hidden = hide_in_values(values)
            secrets = _scalars(values) - _scalars(hidden)
            if not is_readable or any(map("\0".join(_scalars(yaml.safe_load(safe))).count, secrets)):
                dumped: str = yaml.safe_dump(hidden, sort_keys=False, allow_unicode=True)
                return dumped
    return safe


def _scalars(values: object) -> set[str]:
    """Return what YAML holds, keys as well, as text."""
    if isinstance(values, Mapping):
        return set().union(*map(_scalars, values), *map(_scalars, values.values()))
    return set().union(*map(_scalars, values)) if isinstance(values, list | tuple) else {str(values)}
