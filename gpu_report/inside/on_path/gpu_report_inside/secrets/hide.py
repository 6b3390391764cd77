"""Taking secrets out of command lines and any text before they reach the disk: `***` stands in their place.

Structure comes first (JSON, URLs, headers, command lines, names with their values), then shapes that services give
their keys. What merely looks random is hidden only beside a name that may be a secret's: a git hash and a UUID are
none. The recorder uses this module, too: standard library, Python 3.8 on.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from re import Match
from typing import Any

from .commands import hide_by_place
from .headers import hide_headers
from .names import HIDDEN, gives_away, hides, is_secret_name, may_hide, without_value, words_of
from .pairs import hide_pairs
from .scripts import hide_in_scripts
from .sentences import hide_in_sentences
from .shapes import hide_in_urls, hide_keys, hide_shapes

DEEPEST = 20  # a=b=c=...: nobody nests names deeper; what lies below is hidden
LONGEST_TEXT = 500  # characters of one value that callbacks report; a path has fewer
LONGEST_READ = 4000  # ... that are looked through: beyond, an exception's text costs time and is not written
NAME = r"\w[\w.\-\[\]]{0,80}"
_PAIR = re.compile(rf"(?P<lead>-D|[-+~]{{0,2}})(?P<name>{NAME})(?P<sep>[=:])(?P<value>.*)", re.DOTALL)
# A name and its value within a text: quoted or bare, escaped or not, with = or :, in JSON, a query, an environment.
_QUOTE = r"\\{0,7}[\"']|&quot;|&#3[49];|%22|%27"
_IN_TEXT = re.compile(
    rf"(?P<before>(?:(?P<q>{_QUOTE})|(?<![\w.\-])-{{0,2}})(?P<name>{NAME})(?(q)(?P=q)\]{{0,2}})\s{{0,20}}"
    r"(?:[?+:!]{0,2}={1,3}>?|:(?!//)|%3[AaDd])\s{0,20})"
)
_END = rf"(?=\s|$|[\"'{{\[]|\s?{NAME}\s{{0,3}}[=:])"  # behind a comma: the next pair, or a sentence goes on
_VALUE = re.compile(
    r"(?P<value>\\{1,7}\"[^\"\n]{0,4000}\"?|\\{1,7}'[^'\n]{0,4000}'?|&quot;[^&\n]{0,4000}|&#3[49];[^&\n]{0,4000}|"
    r"\"(?:\\.|[^\"\\\n]){0,4000}\"?|'(?:\\.|[^'\\\n]){0,4000}'?|[|>][-+\d]{0,2}[ \t]*\n[^\n]{0,4000}|"
    r"\[[^\]\n]{1,4000}\]|\([^)\n]{1,400}\)|\{[^}\n]{1,4000}\}|"
    rf"(?:[^\s,;&\"'(){{}}\[\]\\]|\\ |\\(?![\"'nrt])|[,;&](?!{_END})|[({{\[]|"
    r"[)}\]\"'](?![\s,;:.)}\]\"'>&\\]|$)){1,4000})"
)
_CODE = re.compile(r"[A-Za-z_][\w.]*(?:\([^()]*\)|\[[^\[\]]*\])")  # token = self.tokenizer(texts) is no secret
_OPTION = re.compile(
    rf"(?P<before>(?<![\w\-])--?(?P<name>{NAME})\s{{1,3}})(?P<value>'[^'\n]*'|\"[^\"\n]*\"|[^\s-]\S{{0,4000}})"
)
_ON_OPTIONS = frozenset(
    {
        *("to", "is", "or", "and", "for", "as", "in", "with", "must", "not", "option", "flag", "argument", "was"),
        *("requires", "needs", "if", "when", "on"),
    }
)
_QUERY = re.compile(r"(?<=[\w+.\-]{2})(:/+[^\s?#]*)[?#]\S*")
# Server=db;User Id=me;Password=...: how a database is reached, with values that may have blanks
_CONNECTION = re.compile(
    r"(?i)\b(?:server|host|data source|database|initial catalog|driver|dsn|user id|uid)="
    r"[^;\n\"']{1,200};[^\n\"']{1,2000}"
)
_CONNECTED = re.compile(r"(?P<before>;\s?(?P<name>[A-Za-z][\w \-]{0,60})=)(?P<value>[^;\n]+)")
# base64 of JSON: {" is eyJ or, with a blank between, eyA or ewo
_BASE64 = re.compile(r"(?<![\w+/=.\-])e(?:yJ|yA|wo)[\w+/\-]{12,}={0,2}(?![\w.])")
_SCRIPT = re.compile(r"[;|&\n`]|\s--?[A-Za-z]|\s\w+=")
_ITEM = r"(?:'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\")"
_LIST = re.compile(rf"\[\s?{_ITEM}(?:,\s{{0,3}}{_ITEM}){{1,400}},?\s?\]")
_ITEMS = re.compile(_ITEM)
_AUDITED = re.compile(r"(?<=\s)(?P<name>a\d+(?:\[\d+\])?)=(?P<value>\"[^\"]*\"|(?:[0-9A-F]{2})+(?![\w]))")
_ENCODED = re.compile(
    r"(?P<name>\b(?:proctitle|cmd|data|exe|comm|path|name|cwd|key))=(?P<value>(?:[0-9A-Fa-f]{2}){4,}\b)"
)


def hide_in_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command line, word by word, without secrets; it keeps its length."""
    placed = hide_by_place(command)
    return tuple(_word(word) if safe is None else safe for word, safe in zip(command, placed))  # noqa: B905 - strict= is of Python 3.10


def hide_in_text(text: str) -> str:
    """Return any text without secrets: a kernel's line, an exception's words, a path, a script."""
    text = _BASE64.sub(_in_base64, hide_headers(hide_keys(text)))
    text = _LIST.sub(_list, text)
    if "audit" in text or "proctitle=" in text:
        text = _ENCODED.sub(_decoded, _in_audit(text))
    if ";" in text:
        text = _CONNECTION.sub(_connection, text)
    text = hide_in_scripts(hide_in_urls(text))
    text = _OPTION.sub(_option, _without_pairs(text))
    return hide_shapes(hide_in_sentences(hide_pairs(text)))


def hide_and_cut(text: str) -> str:
    """Return a text of the user's process without secrets and URLs' queries and fragments, and not too long."""
    safe = hide_in_text(text[:LONGEST_READ])
    return _QUERY.sub(lambda found: f"{found[1]}?{HIDDEN}", safe)[:LONGEST_TEXT]


def hide_in_values(value: Any, name: str = "") -> Any:
    """Return what JSON or YAML holds without secrets; `name` is what it stands under, or the secret's name above it."""
    if isinstance(value, dict):
        named = value.get("name", value.get("key"))
        if isinstance(named, str) and isinstance(value.get("value"), str) and hides(named, value["value"]):
            return {**value, "value": HIDDEN}
        return {_safe_key(key): hide_in_values(item, _name_of(key, name)) for key, item in value.items()}
    if isinstance(value, list):
        is_command = all(isinstance(item, str) for item in value) and not is_secret_name(name)
        return list(hide_in_command(value)) if is_command else [hide_in_values(item, name) for item in value]
    if not isinstance(value, bool) and value is not None and hides(name, str(value)):
        return HIDDEN
    return _word(value) if isinstance(value, str) else value


def _safe_key(key: Any) -> Any:
    return hide_in_text(key) if isinstance(key, str) else key


def _name_of(key: Any, above: str) -> str:
    """Return by which name a value is judged: what stands below a secret's name is one, whatever it is called."""
    return above if is_secret_name(above) and not is_secret_name(str(key)) else str(key)


def _word(word: str, depth: int = 0) -> str:
    """Return a word of a command without the secrets within it."""
    is_script = any(map(str.isspace, word)) and _SCRIPT.search(word) is not None
    word = _BASE64.sub(_in_base64, word)  # before its = is one between a name and a value
    if ";" in word:
        word = _CONNECTION.sub(_connection, word)
    pair = None if is_script else _PAIR.fullmatch(word)
    if pair and not pair["value"].startswith("//") and (pair["sep"] == "=" or pair["name"].lower() != "http"):
        if pair["sep"] == ":" and pair["value"][:1].isspace():  # a header
            kept = hide_in_text(word)
            is_one = kept == word and hides(pair["name"], pair["value"]) and HIDDEN not in word
            return f"{pair['lead']}{pair['name']}: {HIDDEN}" if is_one else kept
        glued = pair["name"][1:] if pair["lead"] == "-" else ""  # docker run -eHF_TOKEN=X
        if hides(pair["name"], pair["value"]) or hides(glued, pair["value"]):
            return f"{pair['lead']}{pair['name']}{pair['sep']}{_listed(pair['value'])}"
        if pair["sep"] == "=":
            return f"{pair['lead']}{pair['name']}={_word(pair['value'], depth + 1) if depth < DEEPEST else HIDDEN}"
    if word.lstrip()[:1] in {"{", "["} and (safe := _json(word)) is not None:
        return safe
    return hide_in_text(word)


def _listed(value: str) -> str:
    """Return what is hidden of a value: all, or up to the next name of a list (token=X,epochs=3)."""
    rest = re.search(rf"[,;](?={NAME}=)", value)
    if rest is None or value.count("=") > DEEPEST:
        return HIDDEN
    return f"{HIDDEN}{value[rest.start()]}{_word(value[rest.end() :])}"


def _json(text: str) -> str | None:
    """Return JSON without secrets, None for what is none."""
    try:
        value = json.loads(text)
        safe = hide_in_values(value)
        return json.dumps(safe) if safe != value else text
    except (ValueError, RecursionError):
        return None


def _in_base64(found: Match[str]) -> str:
    """Return base64 as it is, hidden where it is JSON with a secret in it."""
    bare = found[0].rstrip("=").replace("-", "+").replace("_", "/")
    try:
        text = base64.b64decode(bare + "=" * (-len(bare) % 4)).decode("utf-8")
    except ValueError:
        return found[0]
    return found[0] if _json(text) in {None, text} else HIDDEN


def _connection(found: Match[str]) -> str:
    return _CONNECTED.sub(_connected, found[0])


def _connected(found: Match[str]) -> str:
    return without_value(found) if hides(found["name"], found["value"]) else found[0]


def _list(found: Match[str]) -> str:
    """Return a command as Python writes it, without secrets; its quotes stay."""
    words = [item[1:-1] for item in _ITEMS.findall(found[0])]
    safe = iter(zip(words, hide_in_command(words)))  # noqa: B905 - see above

    def item(given: Match[str]) -> str:
        word, kept = next(safe)
        return given[0] if kept == word else f"{given[0][0]}{kept}{given[0][0]}"

    return _ITEMS.sub(item, found[0])


def _in_audit(text: str) -> str:
    """Return an audit line without secrets among the arguments of a command: a0="curl" a1="-u" a2="me:..."."""
    found = list(_AUDITED.finditer(text))
    words = [_decode(match["value"]) for match in found]
    safe, at = [], 0
    for match, word, hidden in zip(found, words, hide_in_command(words)):  # noqa: B905 - see above
        safe.append(text[at : match.start()] + (match[0] if hidden == word else f'{match["name"]}="{hidden}"'))
        at = match.end()
    return "".join(safe) + text[at:]


def _decode(value: str) -> str:
    """Return what an audit line holds: quoted, or in hexadecimal digits where it has blanks."""
    return value[1:-1] if value.startswith('"') else bytes.fromhex(value).decode("utf-8", "replace")


def _decoded(found: Match[str]) -> str:
    """Return what a field of an audit line holds in hexadecimal digits, hidden where there is a secret in it."""
    words = _decode(found["value"]).split("\0")
    is_safe = list(hide_in_command(words)) == words and hide_in_text(" ".join(words)) == " ".join(words)
    return found[0] if is_safe and found["name"] != "data" else f"{found['name']}={HIDDEN}"


def _option(found: Match[str]) -> str:
    """Return an option and its value; "use --token to log in" has none."""
    is_secret = found["value"] not in _ON_OPTIONS and hides(found["name"], found["value"])
    return f"{found['before']}{HIDDEN}" if is_secret else found[0]


def _without_pairs(text: str) -> str:
    """Return a text without the values of secret names; a value may hold another pair (Environment=TOKEN=...)."""
    safe, at = [], 0
    while (found := _IN_TEXT.search(text, at)) is not None:
        safe.append(text[at : found.end()])
        at = found.end()
        name = _unescaped(found)
        # a header was looked at before; most names are no secret's, and their values are not even read
        if may_hide(name) and words_of(name)[-1] != "authorization":
            hidden, at = _value(name, found, at)
            safe.append(hidden)
    return "".join(safe) + text[at:]


def _unescaped(found: Match[str]) -> str:
    r"""Return a name without the letter of an escape before it: `\r\nX-Api-Key` of a quoted text."""
    name: str = found["name"]
    escaped = name[0] in "nrt" and found.string[found.start("name") - 1 : found.start("name")] == "\\"
    return name[1:] if escaped and not is_secret_name(name) else name


def _value(name: str, found: Match[str], at: int) -> tuple[str, int]:
    """Return what stands for the value of a pair, and where the text goes on; nothing where it stays as it is."""
    given = _VALUE.match(found.string, at)
    if given is None or not hides(name, given["value"]) or _is_none(found, given):
        return "", at
    first = given["value"][0]
    prose = not found["q"] and found["before"].rstrip()[-1] == ":" and first not in "\"'"
    if prose and not gives_away(name, given["value"]) and not _is_braced(found):
        return "", at
    quote = first if found["q"] and first in "\"'" else ""
    return f"{quote}{HIDDEN}{quote}", given.end()


def _is_braced(found: Match[str]) -> bool:
    """Tell whether a name stands in braces, as in YAML's {key: ...}: that is no prose."""
    before = found.string[max(0, found.start() - LONGEST_TEXT) : found.start()]
    return before.rfind("{") > before.rfind("}")


def _is_none(found: Match[str], given: Match[str]) -> bool:
    """Tell whether what follows a name is not its value: a call of Python, or the next key on the next line."""
    gap = found["before"][len(found["before"].rstrip()) :]
    is_code = bool(gap) and _CODE.fullmatch(given.string, given.start(), _line_end(given)) is not None
    return is_code or ("\n" in gap and given["value"].endswith(":"))


def _line_end(given: Match[str]) -> int:
    """Return where the words end that begin with a value: at the next blank behind it, or with the text."""
    blank = re.compile(r"\s|$").search(given.string, given.end())
    return blank.start() if blank else len(given.string)
