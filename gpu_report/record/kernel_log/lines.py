"""Taking apart one line of the kernel log, in the form its source gives it."""

import codecs
import json
import re
from dataclasses import dataclass

KERNEL_FACILITY = 0  # anything else was written by a user program, and could forge an Xid
LEVELS = ("emerg", "alert", "crit", "err", "warn", "notice", "info", "debug")

_KMSG = re.compile(rb"(?P<priority>\d+),\d+,(?P<stamp_us>\d+),[^;]*;(?P<text>[^\n]*)")
_ESCAPED = re.compile(rb"\\x([0-9a-fA-F]{2})")
_DMESG = re.compile(r"(?P<facility>\w+)\s*:(?P<level>\w+)\s*:\s*\[\s*(?P<stamp>\d+\.\d+)\]\s?(?P<text>.*)")


@dataclass(frozen=True)
class KernelLine:
    """A message of the kernel: its raw text, and its level (0 worst, 7) and kernel stamp where they are known."""

    text: str
    level: int | None = None
    stamp_s: float | None = None


def parse_kmsg(record: bytes) -> KernelLine | None:
    """Return a record of /dev/kmsg; None for one that no kernel code wrote."""
    match = _KMSG.match(record)
    if match is None:
        return None
    priority = int(match["priority"])
    if priority >> 3 != KERNEL_FACILITY:
        return None
    text = _ESCAPED.sub(lambda escape: bytes.fromhex(escape[1].decode()), match["text"])
    return KernelLine(text.decode("utf-8", "backslashreplace"), priority & 7, int(match["stamp_us"]) / 1e6)


def parse_dmesg(line: bytes) -> KernelLine | None:
    """Return a line of `dmesg --decode`; None for one of another facility, or of dmesg itself."""
    text = line.decode("utf-8", "backslashreplace")
    match = _DMESG.match(text)
    if match is None or match["facility"] != "kern":
        return None
    level = LEVELS.index(match["level"]) if match["level"] in LEVELS else None
    return KernelLine(match["text"], level, float(match["stamp"]))


def parse_journal(line: bytes) -> KernelLine | None:
    """Return an entry of `journalctl -o json`; None for one without a message."""
    try:
        entry = json.loads(line)
        message = entry["MESSAGE"]
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(message, list):  # journald gives bytes that are no UTF-8 as numbers
        message = bytes(number & 255 for number in message if isinstance(number, int)).decode(
            "utf-8", "backslashreplace"
        )
    if not isinstance(message, str):
        return None
    level, stamp_us = str(entry.get("PRIORITY", "")), str(entry.get("_SOURCE_MONOTONIC_TIMESTAMP", ""))
    return KernelLine(
        message,
        int(level) if level.isdecimal() else None,
        int(stamp_us) / 1e6 if stamp_us.isdecimal() else None,
    )


def parse_plain(line: bytes) -> KernelLine | None:
    """Return a line of a file the user named, as it stands."""
    text = line.removeprefix(codecs.BOM_UTF8).decode("utf-8", "backslashreplace").rstrip("\r")
    return KernelLine(text) if text.strip() else None
