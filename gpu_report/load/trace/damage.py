"""Events out of a damaged piece of JSON: it is mended where that is easy, else read one by one."""

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from gpu_report.load.trace.decode import Decode
from gpu_report.load.trace.event import TraceEvent
from gpu_report.load.trace.limits import LARGEST_EVENT, MOST_BAD

# Kineto writes C++'s own words for numbers that JSON does not have (pytorch/kineto#105).
_NO_NUMBER: Final = re.compile(rb"(:\s*)[-+]?(?:inf|nan|infinity)\b(?=\s*[,}\]])", re.IGNORECASE)
# ... and on Windows names with single backslashes.
_BACKSLASH: Final = re.compile(rb"""\\(["\\/bfnrt]|u[0-9a-fA-F]{4})?""")
_EVENT: Final = re.compile(r'\{\s*"(?:ph|cat|name|ts|dur|pid|tid|id|args|s|bp|cname|tts|tdur|sf)"\s*:')
_SPACE: Final = re.compile(r"\s*")
_END: Final = re.compile(r"\s*\]\s*(?=[,}]|\Z)")
# The end of the array behind an event that cannot be read, and of the file.
_LAST_END: Final = re.compile(r"\]\s*((?:,\s*\"[^\"]*\"\s*:[^{}\[\]]*)?\}\s*\Z)")
_DECODER: Final = json.JSONDecoder(strict=False)  # control characters in a name


@dataclass
class Salvaged:
    """What came out of a piece: its events, how many were lost, what is to be read again, and what follows the array.

    `footer` is None while the array of events has not ended.
    """

    events: list[Any]
    bad: int = 0
    again: bytes = b""
    footer: str | None = None


def salvage(piece: bytes, decode: Decode, *, last: bool) -> Salvaged:
    """Return what can be read of a damaged piece; `last` says that no other follows."""
    mended = _mend(piece)
    try:
        return Salvaged(decode(mended))
    except ValueError:
        return _one_by_one(mended.decode("utf-8", "replace"), last=last)


def _mend(piece: bytes) -> bytes:
    plain = _BACKSLASH.sub(lambda found: found[0] if found[1] else rb"\\", piece) if b"\\" in piece else piece
    return _NO_NUMBER.sub(rb"\1null", plain)


def _one_by_one(text: str, *, last: bool) -> Salvaged:
    found = Salvaged([])
    at = _space(text, 0)
    while at < len(text) and found.bad <= MOST_BAD:
        if (ended := _END.match(text, at)) is not None:
            found.footer = text[ended.end() :]
            break
        try:
            said, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            if not last and _is_cut(text, at, error):
                found.again = text[at:].encode("utf-8", "surrogatepass")
                break
            found.bad += 1
            at = _next_event(text, at)
            if at == len(text) and (ended := _LAST_END.search(text)) is not None:
                found.footer = ended[1]
            continue
        if type(said) is dict:
            found.events.append(TraceEvent(said))
        at = _after_comma(text, end)
    return found


def _is_cut(text: str, at: int, error: Exception) -> bool:
    """Return whether an event goes on behind its piece, which ended between two braces inside of it."""
    return isinstance(error, json.JSONDecodeError) and error.pos >= len(text) - 1 and len(text) - at <= LARGEST_EVENT


def _next_event(text: str, at: int) -> int:
    start = _EVENT.search(text, at + 1)
    return start.start() if start else len(text)


def _after_comma(text: str, at: int) -> int:
    at = _space(text, at)
    return _space(text, at + 1) if text[at : at + 1] == "," else at


def _space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
