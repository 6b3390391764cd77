"""Taking secrets out of a command line, and of a run's args.yaml, before they reach the disk."""

import re
from collections.abc import Sequence

HIDDEN = "***"

# Words that make an option's or key's value a secret, as a whole part of its name: `--hf-token`, `api_key=`.
_SENSITIVE_WORDS = (
    r"token|tokens|password|passwd|passphrase|pwd|secret|secrets|credential|credentials|apikey|api[-_.]?key|"
    r"access[-_.]?key|private[-_.]?key|secret[-_.]?key|auth|authorization|bearer|cookie|dsn"
)
_SECRET_NAME = re.compile(rf"(?:^|[-_.]|(?<=[a-z])(?=[A-Z]))(?:{_SENSITIVE_WORDS})(?:$|[-_.])", re.IGNORECASE)
_KEY_VALUE = re.compile(r"(?P<key>-{0,2}[A-Za-z_][\w.-]*)(?P<eq>=)(?P<value>.*)", re.DOTALL)
_YAML_LINE = re.compile(r"(?P<key>\s*(?:-\s+)*[\"']?(?P<name>[\w.-]+)[\"']?\s*:)(?P<gap>\s+)(?P<value>\S.*)")
_PLAIN_HIDDEN = re.compile(r"(?P<before>(?::|-)\s+|[\[,]\s*)(?P<value>\*\*\*[^\s,\]]*)")  # bare, `*` is an alias
_YAML_NOTHING = {"null", "~", "true", "false", "''", '""'}
_HEADER = re.compile(r"(?i)\b(authorization\s*:\s*(?:\w+\s+)?|bearer\s+)\S+")
_URL_LOGIN = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*://)[^/@\s]+@")
_URL_SECRET = re.compile(rf"(?i)(?P<name>[?&;](?:[\w.-]*[-_.])?(?:{_SENSITIVE_WORDS}|key|sig|signature)=)[^&;\s#\"']+")
# Shapes that well-known services give their keys; the first group, where there is one, is kept.
_KEY_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{8,}|(?:AKIA|ASIA)[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{8,}|"
    r"github_pat_\w{8,}|glpat-[\w-]{8,}|xox[abprs]-[\w-]{8,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)
_LONG_HEX = re.compile(r"(?P<name>\w*key\w*=)[0-9A-Fa-f]{24,}\b", re.IGNORECASE)


def redact(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command line with the values of secrets replaced by `***`; it keeps its length."""
    safe: list[str] = []
    hide_next = False
    for word in command:
        safe.append(HIDDEN if hide_next and not word.startswith("--") else _redact_word(word))
        hide_next = word.startswith("-") and "=" not in word and is_secret_name(word)
    return tuple(safe)


def is_secret_name(name: str) -> bool:
    """Say whether an option or key of this name holds a secret."""
    return _SECRET_NAME.search(name.strip("-")) is not None


def redact_yaml(text: str) -> str:
    """Return the text of a YAML file, line by line, without secrets: it keeps its lines, keys and quotes."""
    return "".join(_redact_yaml_line(line) for line in text.splitlines(keepends=True))


def _redact_yaml_line(line: str) -> str:
    bare = line.rstrip("\r\n")
    pair = _YAML_LINE.fullmatch(bare)
    if pair and is_secret_name(pair["name"]) and pair["value"].lower() not in _YAML_NOTHING:
        return f"{pair['key']}{pair['gap']}'{HIDDEN}'{line[len(bare) :]}"
    safe = _without_shapes(line)
    return line if safe == line else _PLAIN_HIDDEN.sub(r"\g<before>'\g<value>'", safe)


def _redact_word(word: str) -> str:
    word = _HEADER.sub(rf"\g<1>{HIDDEN}", word)
    if any(map(str.isspace, word)):  # a script, such as `sh -c` takes: its words are a command line too
        parts = re.split(r"(\s+)", word)
        words = redact(parts[::2])
        return "".join(f"{safe}{gap}" for safe, gap in zip(words, [*parts[1::2], ""], strict=True))
    pair = _KEY_VALUE.fullmatch(word)
    if pair and is_secret_name(pair["key"]):
        return f"{pair['key']}={HIDDEN}"
    return _without_shapes(word)


def _without_shapes(word: str) -> str:
    """Return a text without what is a secret by its looks, whatever its name."""
    word = _URL_LOGIN.sub(rf"\g<scheme>{HIDDEN}@", word)
    word = _URL_SECRET.sub(rf"\g<name>{HIDDEN}", word)
    word = _LONG_HEX.sub(rf"\g<name>{HIDDEN}", word)
    return _KEY_SHAPES.sub(HIDDEN, word)
