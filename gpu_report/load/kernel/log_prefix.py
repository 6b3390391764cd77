"""Taking the time, host and tag that a log puts before a kernel message off a line."""

import re
from typing import Final

_STAMP: Final = r"\[\s*\d+\.\d+\](?:\[\s*[TC]\d+\])?\s?"  # kernel clock; with the caller on some kernels
_ISO: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
# A user can log a line of any text, so only the kernel's facility (kern, 0) and the kernel's own tag are taken off.
_PREFIX: Final = re.compile(
    rf"""(?:
      [0-7],\d+,\d+,[^;]*;                                                    # /dev/kmsg
    | (?:<[0-7]>|kern\s*:\w+\s*:\s*)?                                         # dmesg -r, dmesg -x
      (?:{_STAMP} | \[\w{{3}}\ \w{{3}}\ [ \d]\d\ \d\d:\d\d:\d\d\ \d{{4}}\]\s? | {_ISO},\d+[+-]\d\d:?\d\d\s)
    | (?:\w{{3}}\ [ \d]\d\ \d\d:\d\d:\d\d | {_ISO}(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d))\ \S+\ kernel:\s(?:{_STAMP})?
    )""",
    re.VERBOSE,
)
_ESCAPED: Final = re.compile(r"\\x([0-9a-fA-F]{2})")
_LONGEST_TEXT = 4096  # characters that are looked at: a kernel record has at most 1 KiB of text, and prefixes


def message_of(text: str) -> str:
    r"""Return the kernel's message in a raw line: without its log's prefix, with `\x0a` and the like unescaped.

    A message of several lines may carry the prefix before each; only the first of them says what it is.
    """
    message = "\n".join(_without_prefix(part) for part in text[:_LONGEST_TEXT].split("\n"))
    return unescape(message) if "\\x" in message else message


def _without_prefix(line: str) -> str:
    found = _PREFIX.match(line)
    return line[found.end() :] if found else line


def unescape(text: str) -> str:
    r"""Return `text` with the \xNN escapes of /dev/kmsg as the UTF-8 text they stand for."""
    raw = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    try:
        return raw.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:  # the rest of the text is beyond latin-1: the log was unescaped already
        return raw
