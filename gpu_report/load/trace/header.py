"""What stands around the events of a trace: the clock's base, the GPUs, the rank."""

import json
import re
from typing import Any, Final

from gpu_report.load.trace.event import MISSING, text, whole
from gpu_report.load.trace.limits import MOST_DEVICES
from gpu_report.model import TraceDevice, TraceRank

_DECODER: Final = json.JSONDecoder(strict=False)


def base_ns(around: str) -> int | None:
    """Return the nanoseconds since 1970 that times of events are counted from, None where they count from 1970."""
    found = whole(_value(around, "baseTimeNanoseconds"))
    return None if found == MISSING else found


def devices(around: str) -> tuple[TraceDevice, ...]:
    """Return the GPUs that the profiler saw."""
    said = _value(around, "deviceProperties") or _value(around, "computeProperties")  # the latter: torch 1.8
    each = [gpu for gpu in said if type(gpu) is dict] if type(said) is list else []
    return tuple(_device(gpu) for gpu in each[:MOST_DEVICES])


def rank(around: str) -> TraceRank | None:
    """Return which of several processes it is, None where torch.distributed was not used."""
    said = _value(around, "distributedInfo")
    if type(said) is not dict:
        return None
    number, of = whole(said.get("rank")), whole(said.get("world_size"))
    return TraceRank(number, of) if 0 <= number < of else None


def _device(said: dict[str, Any]) -> TraceDevice:
    memory = whole(said.get("totalGlobalMem"))
    return TraceDevice(
        index=whole(said.get("id")),
        name=text(said.get("name")),
        memory_mib=memory / 2**20 if memory > 0 else None,
    )


def _value(around: str, key: str) -> Any:
    """Return the value of a key, None where it cannot be read: the text around need not be JSON as a whole."""
    found = re.search(rf'"{key}"\s*:\s*', around)
    if found is None:
        return None
    try:
        return _DECODER.raw_decode(around, found.end())[0]
    except (ValueError, RecursionError):
        return None
