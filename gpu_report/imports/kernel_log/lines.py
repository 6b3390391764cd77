"""Reading a saved kernel log of any common format into wall-clock lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from typing import Final

from gpu_report.imports.kernel_log.formats import (
    LINE_READERS,
    NOT_KERNEL,
    Reading,
    Stamped,
    is_dmesg_json,
    read_dmesg_json,
)
from gpu_report.imports.times import iso_wall_s, to_wall_s

_LONGEST_MESSAGE_LINES = 8  # the longest messages that matter have three
_DICTIONARY: Final = re.compile(r" [A-Z_]+=")
_LONGEST_LINE = 16384  # characters; a kernel record is at most 1 KiB, so the rest of a longer line is noise


@dataclass(frozen=True)
class LogLine:
    """One kernel message: UTC epoch seconds, the raw message, its kernel level and its stamp where they are known."""

    wall_s: float
    text: str
    level: int | None = None
    stamp_s: float | None = None


def parse_kernel_log(
    text: str, *, boot_time_s: float | None, timezone: tzinfo | None, recorded_at_s: float
) -> tuple[list[LogLine], tuple[str, ...]]:
    """Return the kernel's lines in `text` in its order, and in whole sentences what could not be read.

    The format is recognised line by line. `boot_time_s` (UTC epoch seconds) puts lines with the kernel clock on the
    wall clock; `timezone` (None: this machine's) is that of stamps without one; a stamp without a year gets the
    one that brings it closest to `recorded_at_s`. Lines that user programs wrote are left out.
    """
    lines: list[LogLine] = []
    without_boot = unreadable = 0
    previous_s = float("-inf")
    for stamped in _readings(text.removeprefix("\ufeff")):
        if stamped is None:
            unreadable += 1
        elif stamped.stamp_s is not None and boot_time_s is None:
            without_boot += 1
        elif (wall_s := _wall_s(stamped, boot_time_s, timezone, recorded_at_s, previous_s)) is None:
            unreadable += 1
        else:
            previous_s = wall_s
            lines.append(LogLine(wall_s, stamped.message, stamped.level, stamped.stamp_s))
    return lines, _problems(len(lines), without_boot, unreadable)


def _readings(text: str) -> Iterator[Stamped | None]:
    """Yield each message of the kernel, with the lines that carry it on; None for a line of no known format."""
    if is_dmesg_json(text):
        yield from read_dmesg_json(text)
        return
    message: Stamped | None = None
    after_message = False
    for line in filter(str.strip, text.split("\n")):
        reading = _read(line.removesuffix("\r")[:_LONGEST_LINE])
        if reading is not None:
            yield from [message] if message else []
            message, after_message = (reading if isinstance(reading, Stamped) else None), True
        elif message is not None:
            message = _continued(message, line)
        elif not after_message:
            yield None
    yield from [message] if message else []


def _read(line: str) -> Reading:
    if line.startswith("-- "):  # journalctl's own remarks: `-- Boot 6a1f... --`
        return NOT_KERNEL
    return next((reading for read in LINE_READERS if (reading := read(line)) is not None), None)


def _continued(message: Stamped, line: str) -> Stamped:
    """Return `message` with a line that has no stamp of its own.

    dmesg prints the further lines of a message so. They are never read on their own, since a program can have a
    line break in its name. The ` SUBSYSTEM=...` lines of /dev/kmsg are of no use here.
    """
    if _DICTIONARY.match(line) or message.message.count("\n") >= _LONGEST_MESSAGE_LINES:
        return message
    return replace(message, message=f"{message.message}\n{line.removesuffix(chr(13))[:_LONGEST_LINE]}")


def _wall_s(
    stamped: Stamped, boot_time_s: float | None, timezone: tzinfo | None, recorded_at_s: float, previous_s: float
) -> float | None:
    if stamped.wall_s is not None:
        return stamped.wall_s
    if stamped.iso is not None:
        return iso_wall_s(stamped.iso, timezone)
    if stamped.local is not None:
        return _local_wall_s(stamped, timezone, recorded_at_s, previous_s)
    return boot_time_s + stamped.stamp_s if boot_time_s is not None and stamped.stamp_s is not None else None


def _local_wall_s(stamped: Stamped, timezone: tzinfo | None, recorded_at_s: float, previous_s: float) -> float | None:
    """Return the wall time of a local stamp: of the year nearest to the recording, and after the line before it."""
    if stamped.local is None:
        return None
    near = datetime.fromtimestamp(recorded_at_s, UTC).year
    years = [stamped.local.year] if stamped.year_known else [near - 1, near, near + 1]
    first = [wall_s for year in years if (wall_s := _in_year(stamped.local, year, 0, timezone)) is not None]
    if not first:
        return None
    wall_s = min(first, key=lambda each: abs(each - recorded_at_s))
    again = [each for year in years if (each := _in_year(stamped.local, year, 1, timezone)) is not None]
    if wall_s < previous_s - 1 and again:  # the hour that autumn repeats
        later = min(again, key=lambda each: abs(each - recorded_at_s))
        return later if later >= previous_s - 1 else wall_s
    return wall_s


def _in_year(local: datetime, year: int, fold: int, timezone: tzinfo | None) -> float | None:
    try:
        return to_wall_s(local.replace(year=year, fold=fold), timezone)
    except (ValueError, OverflowError):
        return None


def _problems(read: int, without_boot: int, unreadable: int) -> tuple[str, ...]:
    problems = []
    if without_boot:
        problems.append(
            f"{without_boot} lines of the kernel log count seconds since boot and were left out. Give "
            "--boot-time (`uptime -s` on that machine, or `grep btime /proc/stat`), or use `dmesg --time-format iso`."
        )
    if unreadable:
        problems.append(f"{unreadable} lines of the kernel log are in no known format and were left out.")
    if not (read or without_boot or unreadable):
        problems.append("The kernel log holds no line of the kernel.")
    return tuple(problems)
