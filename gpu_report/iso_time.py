"""Times as machines read them: ISO 8601 in UTC."""

from datetime import UTC, datetime


def iso_utc(wall_s: float) -> str | None:
    """Return a wall time as ISO 8601 UTC with milliseconds, None for what no calendar has."""
    try:
        text = datetime.fromtimestamp(wall_s, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return None
    return text.replace("+00:00", "Z")


def wall_s(text: object) -> float | None:
    """Return the wall seconds of a time in ISO 8601, None for what is none."""
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
