"""What happened to the recording itself, in words: the page lists it, and the timeline marks what bears on readings."""

from collections.abc import Iterable, Mapping

from gpu_report.gpu_words import gpu_words
from gpu_report.model import RecordedEvent

WHAT = {
    "gap": "Samples missing",
    "clock_step": "Clock set",
    "suspend": "Machine slept",
    "nvml_error": "Reading failed",
    "nvml_recovered": "Reading works again",
    "nvml_unavailable": "No GPU could be read",
    "nvml_stalled": "Driver did not answer",
    "rows_lost": "Rows lost",
    "oom_kill": "Killed for want of memory",
    "trace_lost": "A profiler trace was lost",
    "dump_failed": "No stacks from py-spy",
    "marker": "Marker",
    "recording_started": "Recording started",
    "recording_ended": "Recording ended",
    "command_started": "Command started",
    "command_ended": "Command ended",
    "left_behind": "Processes left running",
    "yolo_run": "YOLO run found",
    "kernel_lines_dropped": "Kernel lines dropped",
    "xid": "Xid, from NVML",
    "xid_events": "Xid events",
}

TEXTS = frozenset({"reason", "text", "advice"})  # what says by itself what it is
NAMES = {"asked": "stopped by", "asked_before_s": "seconds from then to its end"}

# Kinds that say nothing about the run at their moment: what they tell has its own place on the page.
_ROUTINE = frozenset(
    {
        *("gap", "recording_started", "recording_ended", "command_started", "command_ended", "yolo_run"),
        *("epoch", "checkpoint", "kernel", "kernel_log", "xid", "xid_events", "dump_failed", "tensorboard"),
    }
)


def marked(events: Iterable[RecordedEvent]) -> tuple[RecordedEvent, ...]:
    """Return the events that the timeline marks: notes of the user, and what bears on how readings are read."""
    return tuple(event for event in events if event.kind not in _ROUTINE)


def detail(event: RecordedEvent) -> str:
    """Return everything an event carries, as one line."""
    fields: Mapping[str, object] = {key: value for key, value in event.fields.items() if value not in (None, "")}
    said = (_words(value) if key in TEXTS else f"{_name(key)} {_words(value)}" for key, value in fields.items())
    return ", ".join(part for part in (gpu_name(event.gpu), *said) if part)


def _name(key: str) -> str:
    return NAMES.get(key, key.replace("_", " "))


def _words(value: object) -> str:
    """Return a value as a person writes it; what was typed stands in one line."""
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def gpu_name(index: int | None) -> str:
    """Return what a device is called, empty where a thing concerns all of them."""
    return "" if index is None else gpu_words(index)
