"""Taking secrets out of YAML, line by line, so that all else stays as it was written."""

from __future__ import annotations

import re
from re import Match

from .hide import NAME, hide_in_text
from .names import HIDDEN, hides, is_secret_name
from .shapes import hide_keys

# A name beside its value, an option and its value in a list, a key and its value in a line or in braces.
_NAMED_VALUE = re.compile(
    r"(?P<before>\b(?:name|key)[\"']?:\s{0,9}[\"']?(?P<name>[\w.\-]{1,80})[\"']?"
    r"[ \t]{0,9}\r?[\n,]\s{0,80}[\"']?value[\"']?:\s{0,9})"
    r"(?P<value>[^\s,}]+)"
)
_LISTED_OPTION = re.compile(
    r"(?P<before>(?:[\[,]\s{0,80}|(?<![^\s])-\s{1,9})[\"']?--?(?P<name>\w[\w.\-]{0,80})[\"']?\s{0,9}(?:,|\n\s{0,80}-)\s{1,80})"
    r"(?P<value>'[^'\n]*'|\"[^\"\n]*\"|[^\s,\]\-][^\s,\]]*)"
)
_KEY = re.compile(
    r"(?P<lead>\s*(?:-\s+)*(?:!\S+\s+|&\S+\s+)?[\"']?(?P<name>[\w.\-]+(?: [\w\-]+)?)[\"']?"
    r"\s*:)(?P<gap>\s*)(?P<value>.*)"
)
_ASKED_KEY = re.compile(
    r"(?m)^(?P<indent>[ \t]*(?:-[ \t]+)*)\?[ \t]+(?P<name>[\"']?[\w.\-]+[\"']?)[ \t]*\r?\n[ \t]*:(?=\s)"
)
_ALIAS = re.compile(r"(?<![\w.\-])(?P<name>[\w.\-]{1,80})[\"']?[ \t]{0,9}:[ \t]{1,9}\*(?P<anchor>[\w\-]+)")
_PLAIN_HIDDEN = re.compile(r"(?P<before>(?::|-)\s+|[\[,{]\s*)(?P<value>\*\*\*[^\s,\]}]*)")  # bare, `*` is an alias
_FLOW_PAIR = re.compile(
    rf"(?P<before>[{{,]\s*[\"']?(?P<name>{NAME})[\"']?\s*:\s*)(?P<value>\"[^\"]*\"|'[^']*'|\[[^\]]*\]|\{{[^{{}}]*\}}|[^,}}\]]+)"
)


def hide_in_yaml(text: str) -> str:
    """Return YAML, line by line, without secrets: it keeps its keys. What stands below a secret's key goes with it."""
    safe: list[str] = []
    text = _ASKED_KEY.sub(_asked, hide_keys(text))
    text = _LISTED_OPTION.sub(_quoted, _NAMED_VALUE.sub(_quoted, text))
    anchors = {found["anchor"] for found in _ALIAS.finditer(text) if is_secret_name(found["name"])}
    lines = text.splitlines(keepends=True)
    following = _following(lines)
    below: int | None = None  # the column of a secret's key, below which its value goes on
    for number, line in enumerate(lines):
        if below is not None and (not line.strip() or _lies_below(line, below)):
            continue
        if not line.strip():
            safe.append(line)
            continue
        bare = line.rstrip("\r\n")
        column = len(bare) - len(bare.lstrip(" -"))
        hidden, is_hidden = _line(bare, anchors, goes_on=_lies_below(following[number], column))
        below = column if is_hidden else None
        safe.append(hidden + line[len(bare) :])
    return "".join(safe)


def _following(lines: list[str]) -> list[str]:
    """Return, for each line, the next one that is not blank, empty behind the last."""
    following = [""] * len(lines)
    for number in range(len(lines) - 2, -1, -1):
        following[number] = lines[number + 1] if lines[number + 1].strip() else following[number + 1]
    return following


def _asked(found: Match[str]) -> str:
    """Return `? key` and its value's `:` in one line, where the key is a secret's."""
    return f"{found['indent']}{found['name']}:" if is_secret_name(found["name"]) else found[0]


def _lies_below(line: str, column: int) -> bool:
    """Tell whether a line of YAML is part of the value of a key at a column: further in, or an item of its list."""
    indent = len(line) - len(line.lstrip(" "))
    return bool(line.strip()) and (indent > column or (indent == column and line.lstrip(" ").startswith(("- ", "-\n"))))


def _line(bare: str, anchors: set[str], *, goes_on: bool) -> tuple[str, bool]:
    """Return a line of YAML without secrets, and whether its whole value was one, on the lines below it as well."""
    pair = _KEY.fullmatch(bare)
    value = "" if pair is None else re.sub(r"(?:^|\s)#.*", "", pair["value"]).strip()
    anchored = re.match(r"&([\w\-]+)", value)
    if pair and anchored and anchored[1] in anchors:
        return f"{pair['lead']}{pair['gap']}{anchored[0]} '{HIDDEN}'", True
    if pair and is_secret_name(pair["name"]) and (pair["gap"] or not pair["value"]):
        structured = value.startswith(('"', "'", "{", "|", ">", "&", "!")) and value.strip("\"'[]{} ") != ""
        if structured or (goes_on if not value else hides(pair["name"], value)):
            return f"{pair['lead']} '{HIDDEN}'", True
    elif pair and pair["gap"] and value and hides(pair["name"], value):
        return f"{pair['lead']}{pair['gap']}'{HIDDEN}'", True
    safe = hide_in_text(_FLOW_PAIR.sub(_quoted, bare))
    return (bare if safe == bare else _PLAIN_HIDDEN.sub(lambda m: f"{m['before']}'{m['value']}'", safe)), False


def _quoted(found: Match[str]) -> str:
    """Return a name and its value in YAML, the value hidden where it is a secret; bare, `*` is an alias."""
    return found["before"] + (f"'{HIDDEN}'" if hides(found["name"], found["value"]) else found["value"])
