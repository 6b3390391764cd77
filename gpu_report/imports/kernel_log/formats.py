"""The formats a kernel log is kept in, one line at a time: when a line was written, and the kernel's own message.

Each reader returns a Stamped (the time in whichever clock the format has), NOT_KERNEL for a line that is well
formed but was not written by the kernel, or None for a line of another format. Formats: nvml.md 5.1.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from gpu_report.imports.times import local_time


@dataclass(frozen=True)
class Stamped:
    """A message and its time: kernel-clock seconds, UTC wall seconds as text, or a local time without zone.

    `year_known` is false where the format leaves the year out and `local` holds a leap year in its place.
    """

    message: str
    level: int | None = None
    stamp_s: float | None = None
    wall_s: float | None = None
    iso: str | None = None
    local: datetime | None = None
    year_known: bool = True


NOT_KERNEL: Final = "not the kernel's"
Reading = Stamped | Literal["not the kernel's"] | None

_LEVELS: Final = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")
_LEAP_YEAR: Final = 2000  # so that 29 February is a day while the year is not known
_ISO: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_OFFSET: Final = r"(?:Z|[+-]\d\d:?\d\d)"
_DMESG_TAG: Final = r"(?:<(?P<priority>\d{1,4})>|(?P<facility>[a-z0-9]+) *:(?P<level>[a-z]+) *: )?"
_CALLER: Final = r"(?:\[ *[TC]\d+\])?"

_KMSG: Final = re.compile(r"(?P<priority>\d{1,9}),\d+,(?P<us>\d{1,18}),[^;]*;(?P<message>.*)", re.DOTALL)
_DMESG: Final = re.compile(_DMESG_TAG + rf"\[ *(?P<stamp>\d{{1,12}}\.\d{{1,9}})\]{_CALLER} ?(?P<message>.*)", re.DOTALL)
_DMESG_T: Final = re.compile(
    _DMESG_TAG
    + r"\[\w{3} (?P<month>\w{3}) (?P<day>[ \d]\d) (?P<clock>\d\d:\d\d:\d\d) (?P<year>\d{4})\] ?(?P<message>.*)",
    re.DOTALL,
)
_DMESG_ISO: Final = re.compile(_DMESG_TAG + rf"(?P<iso>{_ISO},\d{{1,9}}{_OFFSET}) (?P<message>.*)", re.DOTALL)
# journalctl -o short-iso, and RFC 3339 files of syslog daemons: no fraction, or one with a point
_HOST_ISO: Final = re.compile(rf"(?P<iso>{_ISO}(?:\.\d{{1,9}})?{_OFFSET}) \S+ (?P<rest>.*)", re.DOTALL)
_HOST_SYSLOG: Final = re.compile(
    r"(?P<month>[A-Z][a-z]{2}) (?P<day>[ \d]\d) (?P<clock>\d\d:\d\d:\d\d)(?:\.\d+)? \S+ (?P<rest>.*)", re.DOTALL
)
_KERNEL_TAG: Final = re.compile(r"kernel: (?:\[ *\d{1,12}\.\d{1,9}\] ?)?")
_ESCAPED: Final = re.compile(r"\\x([0-9a-fA-F]{2})")


def read_kmsg(line: str) -> Reading:
    """Read a record of /dev/kmsg: `4,373,438285308,c;text`."""
    found = _KMSG.match(line)
    if found is None:
        return None
    facility, level = divmod(int(found["priority"]), 8)
    if facility:  # a user wrote it
        return NOT_KERNEL
    return Stamped(_unescape(found["message"]), level, stamp_s=int(found["us"]) / 1e6)


def read_dmesg(line: str) -> Reading:
    """Read a line of dmesg: kernel clock, -T or --time-format iso, each with or without -x."""
    for pattern in (_DMESG, _DMESG_T, _DMESG_ISO):
        found = pattern.match(line)
        if found is None:
            continue
        level, ours = _level(found)
        if not ours:
            return NOT_KERNEL
        fields = found.groupdict()
        if "stamp" in fields:
            return Stamped(found["message"], level, stamp_s=float(found["stamp"]))
        if "iso" in fields:
            return Stamped(found["message"], level, iso=found["iso"])
        local = local_time(int(found["year"]), found["month"], found["day"], found["clock"])
        return Stamped(found["message"], level, local=local) if local else None
    return None


def read_syslog(line: str) -> Reading:
    """Read a line of journalctl -o short-iso, /var/log/kern.log or /var/log/messages."""
    found = _HOST_ISO.match(line) or _HOST_SYSLOG.match(line)
    if found is None:
        return None
    tag = _KERNEL_TAG.match(found["rest"])
    if tag is None:
        return NOT_KERNEL
    message = found["rest"][tag.end() :]
    if "iso" in found.groupdict():
        return Stamped(message, iso=found["iso"])
    local = local_time(_LEAP_YEAR, found["month"], found["day"], found["clock"])
    return Stamped(message, local=local, year_known=False) if local else None


def read_journal_json(line: str) -> Reading:
    """Read a line of journalctl -o json; a message that is no text comes as an array of bytes, or as null."""
    if not line.startswith("{"):
        return None
    try:
        entry = json.loads(line)
        wall_s = int(entry["__REALTIME_TIMESTAMP"]) / 1e6
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if entry.get("_TRANSPORT", "kernel") != "kernel" or entry.get("SYSLOG_IDENTIFIER", "kernel") != "kernel":
        return NOT_KERNEL
    message = _journal_text(entry.get("MESSAGE"))
    return NOT_KERNEL if message is None else Stamped(message, _integer(entry.get("PRIORITY")), wall_s=wall_s)


def read_dmesg_json(text: str) -> list[Stamped]:
    """Return the records in the text of dmesg --json, also where its beginning or its end is cut off."""
    decoder, position = json.JSONDecoder(), 0
    records: list[Stamped] = []
    while found := _JSON_RECORD.search(text, position):
        try:
            entry, position = decoder.raw_decode(text, found.start())
        except ValueError:
            position = found.end()
            continue
        except RecursionError:  # no kernel's: records are flat
            return records
        record = _json_record(entry)
        records += [record] if record else []
    return records


def is_dmesg_json(text: str) -> bool:
    """Return whether `text` is of dmesg --json: its first lines hold nothing but JSON of its keys."""
    return _JSON_LINE.search(text[:_JSON_HEAD]) is not None and not any(
        read(line) for line in text[:_JSON_HEAD].splitlines() for read in LINE_READERS
    )


_JSON_HEAD = 4096  # characters that decide it: enough for one record cut short and a whole one
_JSON_LINE: Final = re.compile(r'^\s*(?:\},)?\{?\s*"(?:fac|pri|time|msg|dmesg|caller)"\s*:', re.MULTILINE)
_JSON_RECORD: Final = re.compile(r'\{\s*"(?:fac|pri|time|caller|msg)"\s*:')
LINE_READERS: Final[tuple[Callable[[str], Reading], ...]] = (read_kmsg, read_dmesg, read_syslog, read_journal_json)


def _json_record(entry: dict[str, Any]) -> Stamped | None:
    message, stamp = entry.get("msg"), entry.get("time")
    kernel = entry.get("fac", "kern") == "kern"
    if not (isinstance(message, str) and isinstance(stamp, int | float) and 0 <= stamp < 1e12 and kernel):
        return None
    priority = entry.get("pri")
    level = _LEVELS.index(priority) if priority in _LEVELS else _integer(priority)
    if level is not None and level >= len(_LEVELS):  # without -x the number holds the facility too
        return None
    return Stamped(message, level, stamp_s=float(stamp))


def _level(found: re.Match[str]) -> tuple[int | None, bool]:
    """Return the level in a line's dmesg tag, and whether the kernel wrote it; without a tag it is taken to have."""
    if found["priority"]:
        facility, level = divmod(int(found["priority"]), 8)
        return level, facility == 0
    if found["facility"]:
        return (_LEVELS.index(found["level"]) if found["level"] in _LEVELS else None), found["facility"] == "kern"
    return None, True


def _journal_text(message: object) -> str | None:
    if isinstance(message, list):
        try:
            return bytes(message).decode("utf-8", "replace")
        except (ValueError, TypeError):
            return None
    return message if isinstance(message, str) else None


def _integer(value: object) -> int | None:
    try:
        return int(value) if isinstance(value, str | int) else None
    except ValueError:
        return None


def _unescape(text: str) -> str:
    raw = _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)
    try:
        return raw.encode("latin-1").decode("utf-8", "replace")
    except UnicodeEncodeError:  # beyond latin-1: not a raw copy of /dev/kmsg, so nothing was escaped
        return text
