"""Secrets in what programs say: headers, prompts, errors, lines of password files, audit lines, SQL."""

from __future__ import annotations

import re
from re import Match

from .secret_names import HIDDEN, hides, is_secret_name, looks_random, mixes

_PARAMETER = r"[A-Za-z][\w\-]*=(?:\\?\"[^\"\n]{0,1000}\"?|[^\s,\"']+)"
# Authorization: Digest username="me", response="...": whatever its parameters are called.
_SIGNED_HEADER = re.compile(
    rf"(?i)(?P<before>(?:authorization[\"']?\s{{0,3}}[:=]\s{{0,3}}[\"']?[A-Za-z][\w\-]*|\bdigest)\s+)(?P<v>{_PARAMETER}(?:\s{{0,3}},\s{{0,3}}{_PARAMETER})*)"
)
_HEADER = re.compile(
    r"(?i)(?P<before>(?:\b|(?<=\\n))(?:proxy-)?authorization\\{0,3}[\"']?\s{0,3}[:=,]\s{0,3}\\{0,3}b?[\"']?)"
    r"(?P<kind>[A-Za-z][\w\-]*[ \t]+)?(?P<value>[^\s\"',;}\\]+)"
)
_BEARER = re.compile(r"(?i)(?P<before>\bbearer\s+)(?P<value>[\w\-.~+/]{6,}=*)")
_COOKIE = re.compile(r"(?i)(?P<before>\b(?:set-)?cookie2?\\{0,3}[\"']?\s{0,3}[:,]\s{0,3}\\{0,3}b?[\"']?)[^\"'\n\\]+")
_TELLING = (
    r"(?:pass(?:word|wd|phrase|code)s?|pwd|tokens?|api[ _\-]?keys?|secrets?(?:str)?|credentials?|authtoken|identified by|"
    r"(?:access|secret|private|account|auth|licen[sc]e|activation|product|master|recovery|signing)[ _\-]?keys?)"
)
_PROSE = re.compile(
    rf"(?i)(?P<before>{_TELLING}(?![a-z])(?P<gap>[^\n\w]{{0,12}}(?:\w{{1,12}}[^\n\w]{{1,6}}){{0,3}}?)(?<![\w.\-/])b?['\"{{]?)"
    r"(?P<value>(?=[^\s'\"(),;<>{}\[\]\\]{0,200}\d)[^\s'\"(),;<>{}\[\]\\]{8,200})"
)
_PASSWORD_QUOTED = re.compile(
    r"(?i)(?P<before>\b(?:pass(?:word|wd|phrase|code)|identified by|api[ _]key|securestring|(?:access|auth)[ _]token)\s{1,3}(?:is |was |of )?b?)"
    r"(?P<value>'(?:[^'\n]|''){3,400}'|\"[^\"\n]{3,400}\")(?!\s*[:=])"
)
_SAID_LAST = re.compile(rf"(?i)(?P<before>\b{_TELLING}\b[^\n]{{0,80}}?(?:[:=]|\bis|\bbe)\s{{1,3}})(?P<value>[^\s:]{{8,300}})(?=[ \t]*$)", re.M)
_CODE = re.compile(
    r"(?i)(?P<before>\b(?:(?:one-time|verification|device|recovery|pairing|login|user|backup|2fa|mfa)[ \-](?:pass)?codes?"
    r"(?: is|:| =)?|enter (?:the )?code|passcode(?: is|:)?|\bpin(?: is|:))\s{0,3})(?P<value>(?=[\w\-]*\d|[A-Z]{4}-)[A-Z0-9\-]{4,40})"
)
_USER_OF_HOST = re.compile(r"(?i)(?P<before>\b(?:host(?:[ _]?name)?[\"']?\s{0,2}[:=]?\s{0,2}[\"']|host(?:[ _]?name)?[:=]\s?|\blookup |\bhost name )[\"']?)[^\s\"'@,()]+(?=@[\w.\-])")
_LOGIN = re.compile(
    r"(//[^\s/:@'\"]+:)[^\s@'\"/]+(?=@)|(?<=:)([A-Za-z]\w*/)[^\s@/]+(?=@//)|(?<!\S)([A-Za-z]\w*/)[^\s@/]+(?=@//)|"
    r"(?<![\w/@.:\-])([A-Za-z][\w.\-+%]{0,60}:)(?!\d+@)[^\s:@/'\"]{3,200}(?=@(?!sha\d|md5)(?:[A-Za-z0-9\-]*[A-Za-z]|\d{1,3}\.\d)[\w.\-]*(?:[:/\s'\",)]|$))"
)
_NETRC = re.compile(
    r"(?P<before>\b(?:machine\s+\S+|default)(?:\s+(?:login|account)\s+\S+){1,2}\s+password\s+)\S+|"
    r"(?P<other>\b(?:machine\s+\S+|default)\s+password\s+)\S+"
)
_PGPASS = re.compile(
    r"(?<![\w:.\-])(?![0-9A-Fa-f:.]{1,400}(?![^\s'\"]))(?P<before>(?:[\w\-]{1,63}\.){0,8}[\w\-*]{1,63}:(?:\d{3,5}|\*):[\w*][\w.\-]*:[A-Za-z*][\w.\-@]*:)[^\s'\"]+"
)
_SOURCE = re.compile(r".*\.(?:py|cu|cuh|c|cc|cpp|h|hpp|js|ts|rs|go|sh|ya?ml):\d")
_INPUT_VALUE = re.compile(
    r"(?P<before>(?<![\w.\-\[\]])(?P<name>[\w.\-\[\]]{1,120})\s{1,8}[A-Z][^\n\[]{0,300}\[type=(?!missing)[\w.]{1,60}, input_value=)(?P<value>[^\n]{1,2000}?)"
    r"(?=, input_type=|\]|$)", re.M
)
_ELEMENT = re.compile(r"(?P<before><(?P<name>[A-Za-z][\w.:\-]{0,80})(?:\s[^<>]{0,200})?>)(?P<value>[^<>]{1,4000})(?=</)")
_NAMED = re.compile(
    r"(?P<before>\b(?:name|key|field|variable)\\?[\"']?\s{0,2}[:=]\s{0,2}\\?[\"']?(?P<name>[\w.\-]{1,80})\\?[\"']?[\s,;]{1,8}\\?[\"']?"
    r"value\\?[\"']?\s{0,2}[:=]\s{0,2}\\?)(?P<value>\"[^\"\n]{1,4000}\"|'[^'\n]{1,4000}'|[^\s,;}\"'\\]{1,4000})"
)
_LOGIN_CALL = re.compile(r"(?P<before>(?:login|authenticate|auth|set_token|set_access_token)\(\s*['\"])(?P<value>[^'\"\n]{12,200})")
_INSERT = re.compile(r"(?i)\binsert\s+into\s[^\n(]{1,200}\((?P<names>[^()\n]{1,1000})\)\s*values\s*(?P<values>\([^\n]{1,4000})")
_UPDATE = re.compile(r"(?i)\bupdate\s[^\n]{1,200}?\bset\s(?P<names>[^\n]{1,1000})")
_PARAMETERS = re.compile(r"(?<=\[parameters: )[\[({][^\n]{1,4000}")
_QUOTED = re.compile(r"'(?:[^'\n]|''){1,400}'|\"[^\"\n]{1,400}\"")
# NAME VALUE without a sign between: ENV of a Dockerfile, set of fish, setenv, a directive that is a line or is quoted.
_ASSIGNED = re.compile(
    r"(?P<before>(?:\b(?:ENV|ARG|setenv|setx|putenv|set -\w{1,4})\s{1,4}|(?:^|(?<=['\">]))[ \t]*(?=\w+_\w|[A-Z]+\s|\w{4,}(?:pass|auth)\s))"
    r"(?P<name>[A-Za-z]\w{2,80})[ \t]{1,20})(?P<value>'[^'\n]+'|\"[^\"\n]+\"|[^\s'\"=:;]{4,400})(?=\s*(?:$|['\";](?![a-z])))", re.M
)
# A name and its value as two words of a call or a tuple: ("X-Api-Key", "..."), setattr(cfg, "token", "...").
_TUPLE = re.compile(
    r"(?P<before>(?<=[(,\s])b?[\"'](?P<name>[\w.\-]{2,80})[\"'],\s{0,3}b?)(?P<value>'[^'\n]{1,4000}'|\"[^\"\n]{1,4000}\")(?=\s?\))"
)
_CALL = re.compile(
    r"(?P<before>\b(?P<name>[A-Za-z][\w.]{2,80})\((?:[^()'\"\n]{0,80}(?:'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"),){0,3}\s{0,2})"
    r"(?P<value>'[^'\n]{3,400}'|\"[^\"\n]{3,400}\")(?=\s?\))"
)
_CALLED = re.compile(r"(?i)(?:.*\.)?(?:set|add|use|put|save|store|update)_?\w*(?:password|token|secret|key|credentials?)|.*(?:auth|credentials?|secret)")
_FORM_DATA = re.compile(
    r"(?P<before>\bname=\\?\"(?P<name>[\w.\-]{1,80})\\?\"(?:\\r\\n|\r?\n){2})(?P<value>[^\s\\]{1,4000})"
)
# What mail, file and Redis servers are sent: PASS X, AUTH PLAIN X, a1 LOGIN me X.
_SENT = re.compile(
    r"(?P<before>(?<=['\"])PASS |\bAUTH(?:ENTICATE)? (?:(?:PLAIN|LOGIN|XOAUTH2|CRAM-MD5|default) )?|\b[A-Z]{0,5}\d+ LOGIN \S{1,200} )"
    r"(?P<value>(?![A-Z]+\b)[^\s'\"\\]{3,4000})"
)
_MASK = re.compile(r"(?P<before>::add-mask::|issecret=true\])[^\s]+")
_PIPED = re.compile(
    r"((?:\becho|\bprintf)(?:\s+-\w+|\s+'%s\S*')*\s+|<<<\s*)('[^']+'|\"[^\"]+\"|[^\s|;&]+)(?=\s*(?:\||$))"
)
_TAKES_PIPED = re.compile(r"password-stdin|with-token|sudo\s+-S|chpasswd|--stdin|\blogin\b|cryptsetup|passphrase-fd|secret")


def hide_headers(text: str) -> str:
    """Return a text without what headers prove who somebody is by."""
    text = _COOKIE.sub(_before, _HEADER.sub(_header, _SIGNED_HEADER.sub(_before, text)))
    return _BEARER.sub(lambda m: _before(m) if not m["value"].islower() or len(m["value"]) > 20 else m[0], text)


def hide_in_sentences(text: str) -> str:
    """Return a text without the secrets that its words tell of."""
    if _TAKES_PIPED.search(text):
        text = _PIPED.sub(lambda m: f"{m[1]}{HIDDEN}", text)
    if "input_value=" in text:
        text = _INPUT_VALUE.sub(_if_named, text)
    text = _ELEMENT.sub(_if_named, text)
    text = _NAMED.sub(_if_named, text)
    for pattern in (_TUPLE, _ASSIGNED, _FORM_DATA):
        text = pattern.sub(_if_named, text)
    text = _CALL.sub(lambda m: f"{m['before']}'{HIDDEN}'" if _CALLED.fullmatch(m["name"]) else m[0], text)
    text = _MASK.sub(_before, _SENT.sub(_before, text))
    text = _NETRC.sub(lambda m: f"{m['before'] or m['other']}{HIDDEN}", text)
    text = _PGPASS.sub(lambda m: m[0] if _SOURCE.match(m[0]) else _before(m), text)
    text = _USER_OF_HOST.sub(_before, text)
    text = _LOGIN.sub(lambda m: f"{m[1] or m[2] or m[3] or m[4]}{HIDDEN}", text)
    text = _in_sql(text)
    text = _LOGIN_CALL.sub(_if_random, text)
    text = _CODE.sub(_before, text)
    text = _PASSWORD_QUOTED.sub(lambda m: f"{m['before']}{m['value'][0]}{HIDDEN}{m['value'][-1]}", text)
    text = _PROSE.sub(lambda m: _before(m) if mixes(m["value"]) else m[0], text)
    return _SAID_LAST.sub(lambda m: _before(m) if mixes(m["value"]) else _if_random(m), text)


def _before(found: Match[str]) -> str:
    """Return what stands before a secret. (A template would stay in `re`'s table, and push out the user's own.)"""
    return f"{found['before']}{HIDDEN}"


def _if_random(found: Match[str]) -> str:
    return _before(found) if looks_random(found["value"]) else found[0]


def _if_named(found: Match[str]) -> str:
    """Return what is found, its value hidden where its name is a secret's; its quotes stay."""
    value = found["value"]
    if not hides(found["name"], value):
        return found[0]
    quote = value[0] if value[0] in "\"'" else ""
    return f"{found['before']}{quote}{HIDDEN}{quote}"


def _header(found: Match[str]) -> str:
    """Return an Authorization header without what proves who it is; "Authorization: missing" is none."""
    if found["kind"] is None and found["value"].islower() and found["value"].isalpha():
        return found[0]
    return f"{found['before']}{found['kind'] or ''}{HIDDEN}"


def _in_sql(text: str) -> str:
    """Return a text without the values of a statement that writes a column of secrets."""
    told = _INSERT.search(text) or _UPDATE.search(text)
    if told is None or not any(map(is_secret_name, re.findall(r"\w+", told["names"]))):
        return text
    if "values" in told.groupdict():
        text = text.replace(told["values"], _QUOTED.sub(f"'{HIDDEN}'", told["values"]))
    return _PARAMETERS.sub(lambda m: _QUOTED.sub(f"'{HIDDEN}'", m[0]), text)
