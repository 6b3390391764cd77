"""Hiding secrets in what is written: `gpu_report.record.redact` cannot be imported here."""

from __future__ import annotations

import re

HIDDEN = "***"
LONGEST_TEXT = 500  # characters of one value; a path has fewer
LONGEST_READ = 4000  # characters that are looked through: beyond, an exception's text costs time and is not written

# A scheme has two letters at least, a drive one; `pathlib` makes one slash of two.
_LOGIN = re.compile(r"(?<=[\w+.-]{2})(:/+)\S*@")
_QUERY = re.compile(r"(?<=[\w+.-]{2})(:/+[^\s?#]*)[?#]\S*")
_PAIR = re.compile(
    r"(?i)([\w.-]{0,64}(?:token|password|passwd|secret|key)[\w.-]{0,64}\s*=\s*)(?:\"[^\"]*\"|'[^']*'|\S+)"
)


def hidden(text: str) -> str:
    """Return a text without logins, queries and fragments of URLs and values of secret keys, and not too long."""
    text = _PAIR.sub(rf"\g<1>{HIDDEN}", text[:LONGEST_READ])
    text = _LOGIN.sub(rf"\g<1>{HIDDEN}@", text)
    return _QUERY.sub(rf"\g<1>?{HIDDEN}", text)[:LONGEST_TEXT]
