"""The lines of a saved kernel log that lie around a recording, as events of its run folder."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Final

from gpu_report.errors import InputError
from gpu_report.imports.kernel_log.lines import LogLine, parse_kernel_log
from gpu_report.imports.parsing.readings import ImportedEvent
from gpu_report.ordinary_file import LARGEST_KERNEL_LOG, refuse_special

# Lines from this long before the recording may explain what happened in it; those after it are another story, but
# a log with whole seconds, or a clock a little off, is not to lose the last ones.
BEFORE_S: Final = 600.0
AFTER_S: Final = 60.0
_PAIRS_GPU: Final = "NVRM: GPU at PCI:"  # tells which UUID a PCI address has, whenever it was printed
_HOW: Final = "where FILE is made after the run by `sudo dmesg --time-format iso`"


def kernel_happenings(
    path: Path | None, span: tuple[float, float], zone: tzinfo | None, boot_time_s: float | None
) -> tuple[list[ImportedEvent], tuple[str, ...]]:
    """Return the kernel log's status and its lines around the recording, and what could not be read.

    `span` holds the wall times of the recording's first and last row in seconds. InputError when `path` cannot be
    read.
    """
    start_s = span[0]
    span = min(span), max(span)  # where the clock was set back, the last row has the earlier time
    if path is None:
        reason, advice = "no kernel log was given with the import", f"import again with --kernel-log FILE, {_HOW}"
        return [ImportedEvent("kernel_log", start_s, 0.0, _unavailable(None, reason, advice))], ()
    refuse_special(path, LARGEST_KERNEL_LOG)
    try:
        text = path.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): name a saved kernel log") from error
    lines, problems = parse_kernel_log(text, boot_time_s=boot_time_s, timezone=zone, recorded_at_s=start_s)
    status = _status(path, lines, span, problems)
    if lines and status["reason"]:
        problems = (*problems, f"{status['reason']}: {status['advice']}.")
    kept = [line for line in lines if _near(line, span) or line.text.startswith(_PAIRS_GPU)]
    return [
        ImportedEvent("kernel_log", start_s, 0.0, status),
        *(_happening(line, start_s, path) for line in kept),
    ], problems


def _near(line: LogLine, span: tuple[float, float]) -> bool:
    return span[0] - BEFORE_S <= line.wall_s <= span[1] + AFTER_S


def _status(
    path: Path, lines: Sequence[LogLine], span: tuple[float, float], problems: tuple[str, ...]
) -> Mapping[str, object]:
    """Return the event's fields: only a log that reaches into the recording has been read for it."""
    if not lines:
        reason = problems[0].removesuffix(".")
        return _unavailable(path, reason, f"import again with another --kernel-log FILE, {_HOW}")
    first_s, last_s = min(line.wall_s for line in lines), max(line.wall_s for line in lines)
    if last_s < span[0] - BEFORE_S:
        reason = f"the last line of {path} is of {_utc(last_s)}, before the recording began ({_utc(span[0])})"
    elif first_s > span[1] + AFTER_S:
        reason = f"the first line of {path} is of {_utc(first_s)}, after the recording ended ({_utc(span[1])})"
    else:
        return {"status": "read", "source": str(path), "reason": "", "advice": ""}
    return _unavailable(path, reason, f"check --timezone and --boot-time, or give --kernel-log FILE, {_HOW}")


def _unavailable(path: Path | None, reason: str, advice: str) -> dict[str, object]:
    return {"status": "unavailable", "source": None if path is None else str(path), "reason": reason, "advice": advice}


def _utc(wall_s: float) -> str:
    try:
        return f"{datetime.fromtimestamp(wall_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (ValueError, OverflowError, OSError):  # a stamp beyond the calendar
        return f"{wall_s:.0f} s since 1970"


def _happening(line: LogLine, start_s: float, path: Path) -> ImportedEvent:
    fields = {"text": line.text, "level": line.level, "source": path.name, "stamp_s": line.stamp_s}
    return ImportedEvent("kernel", line.wall_s, line.wall_s - start_s, fields)
