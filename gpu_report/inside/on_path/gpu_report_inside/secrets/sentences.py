"""Secrets in what programs say and in the lines of password files: prompts, errors, netrc, protocols."""

from __future__ import annotations

import re
from re import Match
from typing import TYPE_CHECKING

from .names import looks_random, mixes, without_value

if TYPE_CHECKING:
    from collections.abc import Callable

    Judge = Callable[[Match[str]], bool]

_TELLING = (
    r"(?:pass(?:word|wd|phrase|code)s?|pwd|tokens?|api[ _\-]?keys?|secrets?(?:str)?|credentials?|authtoken|"
    r"identified by|"
    r"(?:access|secret|private|account|auth|licen[sc]e|activation|product|master|recovery|signing)[ _\-]?keys?|"
    r"(?:wandb|comet|clearml|neptune|hub|hf|roboflow|openai)[ _\-]?key)"
)
_SOURCE = re.compile(r".*\.(?:py|cu|cuh|c|cc|cpp|h|hpp|js|ts|rs|go|sh|ya?ml):\d")


def _always(_: Match[str]) -> bool:
    return True


def _chosen_or_random(found: Match[str]) -> bool:
    return mixes(found["value"]) or looks_random(found["value"])


# What is found, and where it is a secret: `before` stays, `value` is hidden.
_RULES: tuple[tuple[re.Pattern[str], Judge], ...] = (
    # GitHub's and Azure's logs: ::add-mask::...
    (re.compile(r"(?P<before>::add-mask::|issecret=true\])(?P<value>[^\s]+)"), _always),
    # What mail, file and Redis servers are sent: PASS ..., AUTH PLAIN ..., a1 LOGIN me ...
    (
        re.compile(
            r"(?P<before>(?<=['\"])PASS |\bAUTH(?:ENTICATE)? (?:(?:PLAIN|LOGIN|XOAUTH2|CRAM-MD5|default) )?|"
            r"\b[A-Z]{0,5}\d+ LOGIN \S{1,200} )(?P<value>(?![A-Z]+\b)[^\s'\"\\]{3,4000})"
        ),
        _always,
    ),
    # netrc: machine api.wandb.ai login user password ...
    (
        re.compile(
            r"(?P<before>\b(?:machine\s+\S+|default)(?:\s+(?:login|account)\s+\S+){0,2}\s+password\s+)(?P<value>\S+)"
        ),
        _always,
    ),
    # .pgpass: host:5432:runs:me:...; train.cu:120:5:error is none, nor is a MAC
    (
        re.compile(
            r"(?<![\w:.\-])(?![0-9A-Fa-f:.]{1,400}(?![^\s'\"]))(?P<before>(?:[\w\-]{1,63}\.){0,8}[\w\-*]{1,63}:"
            r"(?:\d{3,5}|\*):[\w*][\w.\-]*:[A-Za-z*][\w.\-@]*:)(?P<value>[^\s'\"]+)"
        ),
        lambda found: _SOURCE.match(found[0]) is None,
    ),
    # could not resolve host: ...@gitlab.lab: no host has an @, what stands before it is the rest of a password
    (
        re.compile(
            r"(?i)(?P<before>\b(?:host(?:[ _]?name)?[\"']?\s{0,2}[:=]?\s{0,2}[\"']|host(?:[ _]?name)?[:=]\s?|"
            r"\blookup |\bhost name )[\"']?)(?P<value>[^\s\"'@,()]+)(?=@[\w.\-])"
        ),
        _always,
    ),
    # //me:...@host without its scheme
    (re.compile(r"(?P<before>//[^\s/:@'\"]+:)(?P<value>[^\s@'\"/]+)(?=@)"), _always),
    # Oracle: thin:me/...@//db
    (re.compile(r"(?P<before>(?:(?<=:)|(?<!\S))[A-Za-z]\w*/)(?P<value>[^\s@/]+)(?=@//)"), _always),
    # proxy me:...@proxy.lab:3128; reg/yolo:v8@sha256:... is an image
    (
        re.compile(
            r"(?P<before>(?<![\w/@.:\-])[A-Za-z][\w.\-+%]{0,60}:)(?P<value>(?!\d+@)[^\s@/'\"]{3,200})"
            r"(?=@(?!sha\d|md5)(?:[A-Za-z0-9\-]*[A-Za-z]|\d{1,3}\.\d)[\w.\-]*(?:[:/\s'\",)]|$))"
        ),
        _always,
    ),
    # What curl reads with -K: user = "me:..."
    (
        re.compile(
            r"(?P<before>\b(?:proxy-)?user\s{0,3}[=:]?\s{0,3}[\"'][^\s:\"']{1,80}:)"
            r"(?P<value>(?!\d+[\"'])[^\s\"']+)(?=[\"'])"
        ),
        lambda found: "curl" in found.string,
    ),
    # First copy your one-time code: 8F3A-K2Q7
    (
        re.compile(
            r"(?i)(?P<before>\b(?:"
            r"(?:one-time|verification|device|recovery|pairing|login|user|backup|2fa|mfa)[ \-](?:pass)?codes?"
            r"(?: is|:| =)?|enter (?:the )?code|passcode(?: is|:)?|\bpin(?: is|:))\s{0,3})"
            r"(?P<value>(?=[\w\-]*\d|[A-Z]{4}-)[A-Z0-9\-]{4,40})"
        ),
        _always,
    ),
    # ALTER USER me WITH PASSWORD '...'
    (
        re.compile(
            r"(?i)(?P<before>\b(?:pass(?:word|wd|phrase|code)|identified by|api[ _]key|"
            r"securestring|(?:access|auth)[ _]token)\s{1,3}(?:is |was |of )?b?)"
            r"(?P<value>'(?:[^'\n]|''){3,400}'|\"[^\"\n]{3,400}\")(?!\s*[:=])"
        ),
        _always,
    ),
    # token '...' is not valid; an unexpected token is Python's
    (
        re.compile(
            r"(?i)(?P<before>(?<!unexpected )(?<!special )(?<!unknown )\b(?:token|secret|credential) )"
            r"(?P<value>'[\w.+/=\-]{8,400}'|\"[\w.+/=\-]{8,400}\")"
        ),
        _always,
    ),
    # login failed with the password ...: what stands near a telling word, and has digits
    (
        re.compile(
            rf"(?i)(?P<before>{_TELLING}(?![a-z])"
            r"[^\n\w]{0,12}(?:\w{1,12}[^\n\w]{1,6}){0,3}?(?<![\w.\-/])b?['\"{]?)"
            r"(?P<value>(?=[^\s'\"(),;<>{}\[\]\\]{0,200}\d)[^\s'\"(),;<>{}\[\]\\]{8,200})"
        ),
        lambda found: mixes(found["value"]),
    ),
    # ... is your API key
    (
        re.compile(
            r"(?i)(?P<before>(?<!\S))(?P<value>[\w+/=\-]{12,300})"
            rf"(?=\s(?:as|is)\s(?:(?:a|an|the|your|my)\s)?(?:\w{{1,20}}\s)?{_TELLING}(?![a-z]))"
        ),
        lambda found: looks_random(found["value"]),
    ),
    # Paste an API key from your profile and hit enter: ...: what a line with a telling word ends with
    (
        re.compile(
            rf"(?im)(?P<before>\b{_TELLING}\b[^\n]{{0,80}}?(?:[:=]|\b(?:is|be|was|got))\s{{1,3}})"
            r"(?P<value>[^\s:]{8,300})(?=[ \t]*$)"
        ),
        _chosen_or_random,
    ),
)
# echo ... | docker login --password-stdin
_PIPED = re.compile(
    r"(?P<before>(?:\becho|\bprintf)(?:\s+-\w+|\s+'%s\S*')*\s+|(?P<here><<<\s*))"
    r"(?P<value>'[^']+'|\"[^\"]+\"|[^\s|;&]+)(?(here)|(?=\s*(?:\||$)))"
)
_TAKES_PIPED = re.compile(
    r"password-stdin|with-token|sudo\s+(?:-\w+\s+(?:[a-z]\w*\s+)?){0,4}-\w*S|chpasswd|--stdin|\blogin\b|cryptsetup|passphrase-fd|secret"
)


def hide_in_sentences(text: str) -> str:
    """Return a text without the secrets that its words tell of."""
    if _TAKES_PIPED.search(text):
        text = _PIPED.sub(without_value, text)
    for pattern, judge in _RULES:
        text = _without_secrets(pattern, judge, text)
    return text


def _without_secrets(pattern: re.Pattern[str], judge: Judge, text: str) -> str:
    return pattern.sub(lambda found: without_value(found) if judge(found) else found[0], text)
