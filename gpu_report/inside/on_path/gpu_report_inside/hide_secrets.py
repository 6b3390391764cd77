"""Taking secrets out of command lines, YAML and any text before they reach the disk: `***` stands in their place.

Structure comes first (JSON, YAML, URLs, headers, names with their values), then shapes that services give their keys.
What merely looks random is hidden only beside a name that may be a secret's: a git hash and a UUID are none. The
recorder uses this module, too: standard library, Python 3.8 on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from re import Match
from typing import Any

from .secret_names import HIDDEN, NOTHING, gives_away, hides, is_secret_name, looks_random, may_hide, mixes, words_of

DEEPEST = 20  # a=b=c=...: nobody nests names deeper; what lies below is hidden
LONGEST_TEXT = 500  # characters of one value that callbacks report; a path has fewer
LONGEST_READ = 4000  # ... that are looked through: beyond, an exception's text costs time and is not written
_NAME = r"[A-Za-z_][\w.\-\[\]]{0,80}"
_PAIR = re.compile(rf"(?P<lead>-D|[-+~]{{0,2}})(?P<name>{_NAME})(?P<sep>[=:])(?P<value>.*)", re.DOTALL)
# A name and its value within a text: quoted or bare, with = or :, in JSON, a dict, a query, an environment.
_IN_TEXT = re.compile(
    rf"(?P<before>(?<![\w.\-])(?P<q>[\"']?)(?P<name>{_NAME})(?P=q)\s{{0,3}}(?:=>|:=|=|:(?!//))\s{{0,3}})"
)
_VALUE = re.compile(
    r"(?P<value>\"(?:\\.|[^\"\\\n]){0,4000}\"?|'(?:\\.|[^'\\\n]){0,4000}'?|\[[^\]\n]{1,4000}\]|\([^)\n]{1,400}\)|"
    r"[^\s,;&\"'(){}\[\]]{1,4000})"
)
_OPTION_IN_TEXT = re.compile(
    rf"(?P<before>(?<!\S)--(?P<name>{_NAME})\s{{1,3}})(?P<value>'[^'\n]*'|\"[^\"\n]*\"|[^\s-]\S{{0,4000}})"
)
_QUERY = re.compile(r"(?<=[\w+.\-]{2})(:/+[^\s?#]*)[?#]\S*")
_HEADER = re.compile(
    r"(?i)(?P<before>(?:\b|(?<=\\n))(?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?)"
    r"(?P<kind>[A-Za-z][\w\-]*[ \t]+)?(?P<value>[^\s\"',;}\\]+)"
)
_BEARER = re.compile(r"(?i)(?P<before>\bbearer\s+)(?P<value>[\w\-.~+/]{6,}=*)")
_COOKIE = re.compile(r"(?i)(?P<before>\b(?:set-)?cookie2?[\"']?\s{0,3}:\s{0,3}[\"']?)[^\"'\n]+")
_PEM = re.compile(
    r"(-----BEGIN [A-Z0-9 ]{0,20}PRIVATE KEY[A-Z ]{0,20}-----).*?(-----END [A-Z0-9 ]{0,40}-----|$)", re.DOTALL
)
# A scheme has two letters at least, a drive one; `pathlib` makes one slash of two.
_URL = re.compile(r"(?<![A-Za-z0-9+.\-])(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]{1,30}:/{1,3})(?P<rest>[^\s\"'<>]+)")
_QUERY_PAIR = re.compile(r"(?P<name>[\w.\-\[\]%]{1,80})=(?P<value>[^&;#]*)")
_HOOKS = re.compile(
    r"(?i)(?P<before>hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/|"
    r"webhook\.office\.com/webhookb2/|api\.telegram\.org/(?:file/)?bot|hooks\.zapier\.com/hooks/catch/|"
    r"chat\.googleapis\.com/v1/spaces/[^/\s]+/messages\?)[^\s\"'<>]+"
)
# Shapes that services give their keys.
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{8,}|api_org_[A-Za-z0-9]{16,}|(?:sk|rk|pk)_(?:live|test)_\w{8,}|"
    r"sk-[A-Za-z0-9_\-]{8,}|(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{12,}|gh[pousr]_[A-Za-z0-9]{8,}|github_pat_\w{8,}|"
    r"gl(?:pat|dt|rt|cbt|ptt|ft|soat)-[\w\-]{8,}|xox[abeoprs]-[\w\-]{8,}|xapp-[\w\-]{8,}|AIza[\w\-]{20,}|ya29\.[\w\-]{8,}|"
    r"GOCSPX-[\w\-]{8,}|eyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?|wandb_v\d+_\w{8,}|pypi-[\w\-]{16,}|npm_[A-Za-z0-9]{16,}|"
    r"dckr_(?:pat|oat)_[\w\-]{8,}|SG\.[\w\-]{12,}\.[\w\-]{12,}|rpa_[A-Za-z0-9]{12,}|r8_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}|"
    r"xai-[A-Za-z0-9]{16,}|nvapi-[\w\-]{16,}|key-[0-9a-f]{32}|dop_v1_[0-9a-f]{16,}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{16,}|"
    r"lin_api_\w{16,}|hvs\.[\w\-]{16,}|tfp_\w{16,}|sq0[a-z]{3}-[\w\-]{16,}|EAAC[A-Za-z0-9]{24,}|AGE-SECRET-KEY-1[A-Z0-9]{20,}|"
    r"\d{8,10}:AA[\w\-]{30,})"
)
# Programs that take a password behind a flag, glued to it or not, and those that take a login as name:password.
PASSWORD_FLAGS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mariadb", "sshpass", "mongo", "mongosh", "7z"), "-p"),
    "redis-cli": "-a",
    "sqlcmd": "-P",
    "ldapsearch": "-w",
    "plink": "-pw",
}
USER_FLAGS = frozenset({"-u", "-a", "-U", "--cert", "--user", "--proxy-user"})
USER_PROGRAMS = frozenset({"curl", "wget", "http", "https", "lftp", "smbclient"})
_LOGIN_VALUE = re.compile(r"^([^\s:%,/=]+[:%,])\S+$")
_LOGIN_WORD = re.compile(r"^(-u(?=[^\s:]*:)[^\s:]+:|--(?:proxy-)?user=[^\s:]+:)\S+$")
_CURL = re.compile(r"(\bcurl\b[^\n]{0,200}?\s(?:-[a-zA-Z]*u|--user)[ =]?\s?['\"]?[^\s:'\"]+:)[^\s'\"]+")
_MYSQL = re.compile(r"(\b(?:mysql\w*|mariadb|sshpass)\b[^\n]{0,200}?[\s'\"]-p)[^\s'\"]+")
_LOGIN = re.compile(
    r"(//[^\s/:@'\"]+:)[^\s@'\"/]+(?=@)|(?<=:)([A-Za-z]\w*/)[^\s@/]+(?=@//)|(?<!\S)([A-Za-z]\w*/)[^\s@/]+(?=@//)"
)
_PIPED = re.compile(
    r"((?:\becho|\bprintf)(?:\s+-\w+|\s+'%s\S*')*\s+|<<<\s*)('[^']+'|\"[^\"]+\"|[^\s|;&]+)(?=\s*(?:\||$))"
)
_TAKES_PIPED = re.compile(r"password-stdin|with-token|sudo\s+-S|chpasswd|--stdin")
_HOOK_PATH = re.compile(r"(/services/T\w+/B\w+/)\w+")
_PROSE = re.compile(
    r"(?i)(?P<before>(?:passw(?:or)?d|passphrase|token|api[ _\-]?key|access[ _\-]?key|secret(?:str)?|identified by|"
    r"credentials?|authtoken|pwd)(?![a-z])(?P<gap>[^\n\w]{0,12}(?:\w{1,12}[^\n\w]{1,6}){0,3}?)(?<![\w.\-/])b?['\"{]?)"
    r"(?P<value>(?=[^\s'\"(),;<>{}\[\]\\]{0,200}\d)[^\s'\"(),;<>{}\[\]\\]{8,200})"
)
_SIGNED = re.compile(r"(?i)([?&](?:[\w]{1,20}-){0,3}(?:sig|signature|token)=)[^&\s'\"#]+")
_LOGIN_CALL = re.compile(r"(login\(\s*['\"])([^'\"\n]{12,200})")
_SCRIPT = re.compile(r"[;|&\n`]|\s--?[A-Za-z]|\s\w+=")
# YAML: a name beside its value, an option and its value in a list, a key and its value in a line or in braces.
_NAMED_VALUE = re.compile(
    r"(?P<before>\b(?:name|key)[\"']?:\s*[\"']?(?P<name>[\w.\-]+)[\"']?\s*[\n,]\s*[\"']?value[\"']?:\s*)(?P<value>[^\s,}]+)"
)
_LISTED_OPTION = re.compile(
    r"(?P<before>[\[,\-]\s*[\"']?--(?P<name>[\w.\-]+)[\"']?\s*(?:,|\n\s*-)\s+)(?P<value>[^\s,\]\-][^\s,\]]*)"
)
_YAML_KEY = re.compile(
    r"(?P<lead>\s*(?:-\s+)*[\"']?(?P<name>[\w.\-]+(?: [\w\-]+)?)[\"']?\s*:)(?P<gap>\s*)(?P<value>.*)"
)
_PLAIN_HIDDEN = re.compile(r"(?P<before>(?::|-)\s+|[\[,{]\s*)(?P<value>\*\*\*[^\s,\]}]*)")  # bare, `*` is an alias
_FLOW_PAIR = re.compile(
    rf"(?P<before>[{{,]\s*[\"']?(?P<name>{_NAME})[\"']?\s*:\s*)(?P<value>\"[^\"]*\"|'[^']*'|\[[^\]]*\]|\{{[^{{}}]*\}}|[^,}}\]]+)"
)


def hide_in_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command line, word by word, without secrets; it keeps its length."""
    safe: list[str] = []
    before, whole = "", _Command.of(command)
    for word in command:
        safe.append(_after(before, word, whole))
        many = before.endswith("s") and safe[-1] == HIDDEN  # --tokens A B
        before = before if many else word
    return tuple(safe)


def hide_in_yaml(text: str) -> str:
    """Return YAML, line by line, without secrets: it keeps its keys. What stands below a secret's key goes with it."""
    safe: list[str] = []
    text = _PEM.sub(_key, text)
    text = _LISTED_OPTION.sub(_quoted, _NAMED_VALUE.sub(_quoted, text))
    lines = text.splitlines(keepends=True)
    following = [""] * len(lines)  # the next line that is not blank
    for number in range(len(lines) - 2, -1, -1):
        following[number] = lines[number + 1] if lines[number + 1].strip() else following[number + 1]
    below: int | None = None  # the column of a secret's key, below which its value goes on
    for number, line in enumerate(lines):
        if below is not None and (not line.strip() or _lies_below(line, below)):
            continue
        bare = line.rstrip("\r\n")
        column = len(bare) - len(bare.lstrip(" -"))
        hidden, is_hidden = _yaml_line(bare, goes_on=_lies_below(following[number], column))
        below = column if is_hidden else None
        safe.append(hidden + line[len(bare) :])
    return "".join(safe)


def _lies_below(line: str, column: int) -> bool:
    """Tell whether a line of YAML is part of the value of a key at a column: further in, or an item of its list."""
    indent = len(line) - len(line.lstrip(" "))
    return bool(line.strip()) and (indent > column or (indent == column and line.lstrip(" ").startswith(("- ", "-\n"))))


def hide_in_text(text: str) -> str:
    """Return any text without secrets: a kernel's line, an exception's words, a path, a script."""
    text = _PEM.sub(_key, text)
    text = _HEADER.sub(_header, text)
    text = _COOKIE.sub(_rest, text)
    text = _BEARER.sub(
        lambda m: m["before"] + (HIDDEN if not m["value"].islower() or len(m["value"]) > 20 else m["value"]), text
    )
    text = _HOOK_PATH.sub(_rest, text)
    text = _CURL.sub(_rest, text)
    text = _MYSQL.sub(_rest, text)
    if _TAKES_PIPED.search(text):
        text = _PIPED.sub(_rest, text)
    text = _HOOKS.sub(_rest, text)
    text = _URL.sub(_url, text)
    text = _without_pairs(text)
    text = _OPTION_IN_TEXT.sub(lambda m: m["before"] + (HIDDEN if hides(m["name"], m["value"]) else m["value"]), text)
    text = _LOGIN.sub(lambda m: f"{m[1] or m[2] or m[3]}{HIDDEN}", text)
    text = _SIGNED.sub(_rest, text)
    text = _LOGIN_CALL.sub(lambda m: m[1] + (HIDDEN if looks_random(m[2]) else m[2]), text)
    text = _PROSE.sub(lambda m: m["before"] + (HIDDEN if mixes(m["value"]) else m["value"]), text)
    return _SHAPES.sub(HIDDEN, text)


def _rest(found: Match[str]) -> str:
    """Return what is found, hidden but for its first group; a template would push others out of `re`'s table."""
    return f"{found[1]}{HIDDEN}"


def _key(found: Match[str]) -> str:
    """Return the frame of a private key without the key."""
    return f"{found[1]}{HIDDEN}{found[2]}"


def hide_and_cut(text: str) -> str:
    """Return a text of the user's process without secrets and URLs' queries and fragments, and not too long."""
    return _QUERY.sub(rf"\g<1>?{HIDDEN}", hide_in_text(text[:LONGEST_READ]))[:LONGEST_TEXT]


@dataclass(frozen=True)
class _Command:
    """What of a whole command says how its words are read: its programs' flags for passwords, logins as words."""

    flags: frozenset[str]
    has_user: bool
    has_login: bool

    @staticmethod
    def of(command: Sequence[str]) -> _Command:
        programs = {word.rsplit("/", 1)[-1] for word in command}
        flags = frozenset(flag for program, flag in PASSWORD_FLAGS.items() if program in programs)
        return _Command(flags, not programs.isdisjoint(USER_PROGRAMS), "login" in programs)


def _after(before: str, word: str, command: _Command) -> str:
    """Return a word of a command without secrets, by the word before it."""
    glued = next((flag for flag in command.flags if word.startswith(flag) and len(word) > len(flag)), None)
    if glued is not None and not word.startswith("--"):
        return f"{glued}{HIDDEN}"
    if command.has_user:
        word = _LOGIN_WORD.sub(_rest, word)
        if before in USER_FLAGS or re.fullmatch(r"-[a-zA-Z]*u", before):
            return _LOGIN_VALUE.sub(_rest, word)
    is_option = word.startswith("--") or re.fullmatch(r"-[A-Za-z]", word) is not None
    return HIDDEN if not is_option and _is_secret_after(before, word, command) else _word(word)


def _is_secret_after(before: str, word: str, command: _Command) -> bool:
    """Tell whether a word that is no option is a secret by what stands before it: a flag, a secret's name, a login."""
    if before in command.flags or (before == "-p" and command.has_login):
        return True
    bare = "=" not in word.rstrip("=")
    if before.startswith("-") and len(before) > 2 and "=" not in before and bare and hides(before.lstrip("-"), word):
        return True
    named = before == "bearer" or (re.fullmatch(_NAME, before) is not None and is_secret_name(before))
    if named and bare and (mixes(word) or looks_random(word)):
        return True
    return command.has_login and bare and ":" not in word and looks_random(word)


def _word(word: str, depth: int = 0) -> str:
    """Return a word of a command without the secrets within it."""
    is_script = any(map(str.isspace, word)) and _SCRIPT.search(word) is not None
    pair = None if is_script else _PAIR.fullmatch(word)
    if pair and not pair["value"].startswith("//") and (pair["sep"] == "=" or pair["name"].lower() != "http"):
        if pair["sep"] == ":" and pair["value"][:1].isspace():  # a header
            kept = hide_in_text(word)
            is_one = kept == word and hides(pair["name"], pair["value"]) and HIDDEN not in word
            return f"{pair['lead']}{pair['name']}: {HIDDEN}" if is_one else kept
        if hides(pair["name"], pair["value"]):
            return f"{pair['lead']}{pair['name']}{pair['sep']}{_listed(pair['value'])}"
        if pair["sep"] == "=":
            return f"{pair['lead']}{pair['name']}={_word(pair['value'], depth + 1) if depth < DEEPEST else HIDDEN}"
    if word.lstrip()[:1] in {"{", "["} and (safe := _json(word)) is not None:
        return safe
    if any(map(str.isspace, word)):  # a script, such as `sh -c` takes: its words are a command line too
        parts = re.split(r"(\s+)", hide_in_text(word))
        words = hide_in_command(parts[::2])
        return "".join(f"{safe}{gap}" for safe, gap in zip(words, [*parts[1::2], ""]))  # noqa: B905 - strict= is of Python 3.10
    return hide_in_text(word)


def _listed(value: str) -> str:
    """Return what is hidden of a value: all, or up to the next name of a list (token=X,epochs=3)."""
    rest = re.search(rf"[,;](?={_NAME}=)", value)
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


def hide_in_values(value: Any, name: str = "") -> Any:
    """Return what JSON or YAML holds without secrets; `name` is what it stands under."""
    if isinstance(value, dict):
        named = value.get("name", value.get("key"))
        if isinstance(named, str) and isinstance(value.get("value"), str) and hides(named, value["value"]):
            return {**value, "value": HIDDEN}
        return {key: hide_in_values(item, str(key)) for key, item in value.items()}
    if isinstance(value, list):
        is_command = all(isinstance(item, str) for item in value) and not is_secret_name(name)
        return list(hide_in_command(value)) if is_command else [hide_in_values(item, name) for item in value]
    if not isinstance(value, bool) and value is not None and hides(name, str(value)):
        return HIDDEN
    return _word(value) if isinstance(value, str) else value


def _header(found: Match[str]) -> str:
    """Return an Authorization header without what proves who it is; "Authorization: missing" is none."""
    if found["kind"] is None and found["value"].islower() and found["value"].isalpha():
        return found[0]
    return f"{found['before']}{found['kind'] or ''}{HIDDEN}"


def _without_pairs(text: str) -> str:
    """Return a text without the values of secret names; a value may hold another pair (Environment=TOKEN=...)."""
    safe, at = [], 0
    while (found := _IN_TEXT.search(text, at)) is not None:
        safe.append(text[at : found.end()])
        at = found.end()
        # a header was looked at before; most names are no secret's, and their values are not even read
        if may_hide(found["name"]) and words_of(found["name"])[-1] not in {"authorization", "cookie"}:
            hidden, at = _value(found, _VALUE.match(text, at), at)
            safe.append(hidden)
    return "".join(safe) + text[at:]


def _value(found: Match[str], given: Match[str] | None, at: int) -> tuple[str, int]:
    """Return what stands for the value of a pair, and where the text goes on; nothing where it stays as it is."""
    if given is None or not hides(found["name"], given["value"]):
        return "", at
    first = given["value"][0]
    prose = not found["q"] and found["before"].rstrip()[-1] == ":" and first not in "\"'"
    if prose and not gives_away(found["name"], given["value"]):
        return "", at
    quote = first if found["q"] and first in "\"'" else ""
    return f"{quote}{HIDDEN}{quote}", given.end()


def _url(found: Match[str]) -> str:
    """Return a URL without its login, and without what in its query and fragment has a secret's name."""
    rest = found["rest"]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    login, at, _ = authority.rpartition("@")
    cut = len(login) if at and (":" in login or looks_random(login)) else -1  # a name alone is none: git@github.com
    if not at and re.search(r":(?!\d*$)", authority):  # a password with / ? or # in it
        cut = rest.rfind("@")
    if cut >= 0:
        rest = f"{HIDDEN}{rest[cut:]}"
    place, mark, query = _split_query(rest)
    return f"{found['scheme']}{place}{mark}{_QUERY_PAIR.sub(_query_pair, query)}"


def _split_query(rest: str) -> tuple[str, str, str]:
    at = min((at for at in (rest.find("?"), rest.find("#")) if at >= 0), default=len(rest))
    return rest[:at], rest[at : at + 1], rest[at + 1 :]


def _query_pair(found: Match[str]) -> str:
    name = found["name"]
    signed = words_of(name)[-1:] in (["key"], ["sig"], ["signature"], ["code"])
    hidden = hides(name, found["value"]) or (signed and found["value"].lower() not in NOTHING)
    return f"{name}={HIDDEN if hidden else found['value']}"


def _yaml_line(bare: str, *, goes_on: bool) -> tuple[str, bool]:
    """Return a line of YAML without secrets, and whether its whole value was one, on the lines below it as well."""
    pair = _YAML_KEY.fullmatch(bare)
    value = "" if pair is None else re.sub(r"(?:^|\s)#.*", "", pair["value"]).strip()
    if pair and is_secret_name(pair["name"]) and (pair["gap"] or not pair["value"]):
        structured = value.startswith(('"', "'", "{", "|", ">", "&", "!")) and value.strip("\"'[]{} ") != ""
        if structured or (goes_on if not value else hides(pair["name"], value)):
            return f"{pair['lead']} '{HIDDEN}'", True
    elif pair and pair["gap"] and value and hides(pair["name"], value):
        return f"{pair['lead']}{pair['gap']}'{HIDDEN}'", True
    safe = hide_in_text(_FLOW_PAIR.sub(_quoted, bare))
    return (bare if safe == bare else _PLAIN_HIDDEN.sub(r"\g<before>'\g<value>'", safe)), False


def _quoted(found: Match[str]) -> str:
    """Return a name and its value in YAML, the value hidden where it is a secret; bare, `*` is an alias."""
    return found["before"] + (f"'{HIDDEN}'" if hides(found["name"], found["value"]) else found["value"])
