"""A secret's name beside its value in other forms than name=value: elements, tuples, calls, SQL, errors of pydantic."""

from __future__ import annotations

import re
from re import Match

from .names import HIDDEN, hides, is_secret_name, looks_random, without_value

_QUOTED = r"(?P<value>'[^'\n]{1,4000}'|\"[^\"\n]{1,4000}\")"
_NAMED = (
    # <password>...</password>
    re.compile(r"(?P<before><(?P<name>\w[\w.:\-]{0,80})(?:\s[^<>]{0,200})?>)(?P<value>[^<>]{1,4000})(?=</)"),
    # <add key="ApiKey" value="..."/>, {"name": "HF_TOKEN", "value": "..."}
    re.compile(
        r"(?P<before>\b(?:name|key|field|variable)\\?[\"']?\s{0,2}[:=]\s{0,2}\\?[\"']?(?P<name>[\w.\-]{1,80})\\?[\"']?"
        r"[\s,;]{1,8}\\?[\"']?value\\?[\"']?\s{0,2}[:=]\s{0,2}\\?)"
        r"(?P<value>\"[^\"\n]{1,4000}\"|'[^'\n]{1,4000}'|[^\s,;}\"'\\]{1,4000})"
    ),
    # ("X-Api-Key", "..."), setattr(cfg, "token", "...")
    re.compile(rf"(?P<before>(?<=[(,\s])b?[\"'](?P<name>[\w.\-]{{2,80}})[\"'],\s{{0,3}}b?){_QUOTED}(?=\s?\))"),
    # ENV of a Dockerfile, set of fish, setenv; a directive that is a line, or is quoted: requirepass ...
    re.compile(
        r"(?P<before>(?:\b(?:ENV|ARG|setenv|setx|putenv|set -\w{1,4})\s{1,4}|"
        r"(?:^|(?<=['\">]))[ \t]*(?=\w+_\w|[A-Z]+\s|\w{4,}(?:pass|auth)\s))"
        r"(?P<name>[A-Za-z]\w{2,80})[ \t]{1,20})(?P<value>'[^'\n]+'|\"[^\"\n]+\"|[^\s'\"=:;]{4,400})"
        r"(?=\s*(?:$|['\";](?![a-z])))",
        re.MULTILINE,
    ),
    # Content-Disposition: form-data; name="password"
    re.compile(r"(?P<before>\bname=\\?\"(?P<name>[\w.\-]{1,80})\\?\"(?:\\r\\n|\r?\n){2})(?P<value>[^\s\\]{1,4000})"),
)
# hf_token\n  String should be ... [type=..., input_value='...': what is missing has the whole input for its value
_INPUT_VALUE = re.compile(
    r"(?P<before>(?<![\w.\-\[\]])(?P<name>[\w.\-\[\]]{1,120})\s{1,8}"
    r"[A-Z][^\n\[]{0,300}\[type=(?!missing)[\w.]{1,60}, input_value=)(?P<value>[^\n]{1,2000}?)(?=, input_type=|\]|$)",
    re.MULTILINE,
)
# keyring.set_password("wandb", "me", "..."), login("...")
_CALL = re.compile(
    r"(?P<before>\b(?P<name>[A-Za-z][\w.]{2,80})\("
    r"(?:[^()'\"\n]{0,80}(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"),){0,3}\s{0,2})"
    rf"{_QUOTED}(?=\s?\))"
)
_TAKES_SECRET = re.compile(
    r"(?i)(?:.*\.)?(?:set|add|use|put|save|store|update)_?\w*(?:password|token|secret|key|credentials?)"
    r"|.*(?:auth|credentials?|secret)"
)
# comet_ml.init("..."), Roboflow("..."): what they are given first looks like a key
_LOGIN_CALL = re.compile(
    r"(?i)(?P<before>(?:login|authenticate|init|configure|connect|client|api|experiment|roboflow)\(\s*)"
    r"(?P<value>'[^'\n]{12,200}'|\"[^\"\n]{12,200}\")"
)
_LOGIN = re.compile(r"(?i)(?:.*\.)?(?:login|sign_?in|authenticate)")  # (user, password)
_INSERT = re.compile(
    r"(?i)\binsert\s+into\s[^\n(]{1,200}\((?P<names>[^()\n]{1,1000})\)\s*values\s*(?P<values>\([^\n]{1,4000})"
)
_UPDATE = re.compile(r"(?i)\bupdate\s[^\n]{1,200}?\bset\s(?P<names>[^\n]{1,1000})")
_PARAMETERS = re.compile(r"(?<=\[parameters: )[\[({][^\n]{1,4000}")
_SQL_TEXT = re.compile(r"'(?:[^'\n]|''){1,400}'|\"[^\"\n]{1,400}\"")


def hide_pairs(text: str) -> str:
    """Return a text without the values that stand beside a secret's name."""
    for pattern in _NAMED:
        text = pattern.sub(_named, text)
    if "input_value=" in text:
        text = _INPUT_VALUE.sub(_named, text)
    text = _CALL.sub(lambda found: without_value(found) if _takes_secret(found) else found[0], text)
    text = _LOGIN_CALL.sub(lambda found: without_value(found) if looks_random(found["value"][1:-1]) else found[0], text)
    return _in_sql(text)


def _named(found: Match[str]) -> str:
    return without_value(found) if hides(found["name"], found["value"]) else found[0]


def _takes_secret(found: Match[str]) -> bool:
    is_login = _LOGIN.fullmatch(found["name"]) and "," in found["before"]
    return bool(is_login) or _TAKES_SECRET.fullmatch(found["name"]) is not None


def _in_sql(text: str) -> str:
    """Return a text without the values of a statement that writes a column of secrets."""
    told = _INSERT.search(text) or _UPDATE.search(text)
    if told is None or not any(map(is_secret_name, re.findall(r"\w+", told["names"]))):
        return text
    if "values" in told.groupdict():
        text = text.replace(told["values"], _without_texts(told["values"]))
    return _PARAMETERS.sub(lambda found: _without_texts(found[0]), text)


def _without_texts(values: str) -> str:
    return _SQL_TEXT.sub(f"'{HIDDEN}'", values)
