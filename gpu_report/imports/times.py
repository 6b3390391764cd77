"""Reading the times that logs and users write: local stamps without a zone, ISO 8601, plain seconds."""

import re
from datetime import UTC, datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo

from gpu_report.errors import UsageError

_MONTHS: Final = {
    name: number
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), start=1
    )
}
_SHORT_OFFSET: Final = re.compile(r"([+-]\d\d)(\d\d)$")
# nvidia-smi logs and -T logs go on over the hour that autumn repeats: a step back of more than this is the repeat.
REPEATED_HOUR_S: Final = 1800.0


def zone(name: str | None) -> tzinfo | None:
    """Return the time zone called `name` (Europe/Berlin, UTC), None for this machine's; UsageError when unknown."""
    if name is None:
        return None
    if name.upper() in ("UTC", "Z", "GMT"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError) as error:  # what zoneinfo raises, by how the name is wrong
        raise UsageError(f"--timezone {name!r} is no known zone: give a name such as Europe/Berlin or UTC") from error


def zone_name(chosen: tzinfo | None, at: datetime) -> str:
    """Return the name of the zone for a sentence; `at` is a local time, since names change with the season."""
    if chosen is not None:
        return str(getattr(chosen, "key", chosen))
    try:
        return at.astimezone().tzname() or "local time"
    except (ValueError, OverflowError, OSError):  # a damaged year, at the edge of the calendar
        return "local time"


def to_wall_s(local: datetime, chosen: tzinfo | None) -> float:
    """Return UTC epoch seconds of a local time without a zone; ValueError or OverflowError beyond the calendar."""
    try:
        return local.replace(tzinfo=chosen).timestamp() if chosen is not None else local.timestamp()
    except OSError as error:  # the C library's own limits
        raise ValueError(str(error)) from error


def iso_wall_s(text: str, chosen: tzinfo | None) -> float | None:
    """Return UTC epoch seconds of an ISO 8601 time (a comma will do, and +0200), or None when it is none."""
    normal = _SHORT_OFFSET.sub(r"\1:\2", text.strip().replace(",", "."))
    try:
        moment = datetime.fromisoformat(normal)
        return moment.timestamp() if moment.tzinfo else to_wall_s(moment, chosen)
    except (ValueError, OverflowError):
        return None


def local_time(year: int, month: str, day: str, clock: str) -> datetime | None:
    """Return the local time of `Nov 21 00:54:24` in `year`, or None when there is no such moment."""
    try:
        hour, minute, second = (int(part) for part in clock.split(":"))
        naive = datetime(year, _MONTHS[month], int(day), hour, minute, min(second, 59))  # noqa: DTZ001 (a local time)
    except (ValueError, KeyError):
        return None
    return naive


def moment(value: str | float | None, option: str, chosen: tzinfo | None) -> float | None:
    """Return UTC epoch seconds of what a user gave for `option`: seconds or ISO 8601; UsageError for anything else."""
    if value is None or isinstance(value, int | float):
        return value
    if re.fullmatch(r"\d{1,11}(?:\.\d+)?", value.strip()):
        return float(value)
    wall_s = iso_wall_s(value, chosen)
    if wall_s is None:
        raise UsageError(f"{option} {value!r} is no time: give 2026-11-21T01:05:51+00:00, or seconds since 1970")
    return wall_s
