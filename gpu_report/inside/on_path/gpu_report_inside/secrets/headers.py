"""Taking out of a text what headers prove by who somebody is: Authorization, Cookie, a bearer's token."""

from __future__ import annotations

import re
from re import Match

from .names import HIDDEN, without_value

_PARAMETER = r"[A-Za-z][\w\-]*=(?:\\?\"[^\"\n]{0,1000}\"?|[^\s,\"']+)"
# Authorization: Digest username="me", response="...": whatever its parameters are called.
_WITH_PARAMETERS = re.compile(
    r"(?i)(?P<before>(?:authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?[A-Za-z][\w\-]*|\bdigest)\s+)"
    rf"(?P<value>{_PARAMETER}(?:\s{{0,3}},\s{{0,3}}{_PARAMETER})*)"
)
_AUTHORIZATION = re.compile(
    r"(?i)(?P<before>(?:\b|(?<=\\n))(?:proxy-)?authorization\\{0,3}[\"']?\s{0,3}[:=,]\s{0,3}(?:value\s?=\s?)?\\{0,3}b?[\"']?)"
    r"(?P<kind>[A-Za-z][\w\-]*[ \t]+)?(?P<value>[^\s\"',;}\\]+)"
)
_BEARER = re.compile(r"(?i)(?P<before>\bbearer\s+)(?P<value>[\w\-.~+/]{6,}=*)")
_COOKIE = re.compile(
    r"(?i)(?P<before>\b(?:set-)?cookie2?\\{0,3}[\"']?\s{0,3}[:=,]>?\s{0,3}\\{0,3}b?[\"']?)(?P<value>[^\"'\n\\]+)"
)


def hide_headers(text: str) -> str:
    """Return a text without what its headers prove."""
    text = _AUTHORIZATION.sub(_authorization, _WITH_PARAMETERS.sub(without_value, text))
    return _BEARER.sub(_bearer, _COOKIE.sub(without_value, text))


def _authorization(found: Match[str]) -> str:
    """Return a header without what follows its kind; "Authorization: missing" is none."""
    if found["kind"] is None and found["value"].islower() and found["value"].isalpha():
        return found[0]
    return f"{found['before']}{found['kind'] or ''}{HIDDEN}"


def _bearer(found: Match[str]) -> str:
    """Return a bearer's token hidden; "bearer tokens" are none."""
    is_word = found["value"].islower() and len(found["value"]) <= 20
    return found[0] if is_word else without_value(found)
