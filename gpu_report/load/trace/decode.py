"""Events from JSON, many at once, by the standard library."""

import json
from collections.abc import Callable
from typing import Any, Final

from gpu_report.load.trace.event import TraceEvent

Decode = Callable[[bytes], list[Any]]  # events between commas; ValueError where it is anything else
TOO_DEEP: Final = "nested too deeply"


def decode_by_json(piece: bytes) -> list[Any]:
    """Return the events that a piece of JSON holds, separated by commas; ValueError where it is anything else."""
    try:
        found = json.loads(b"[%b]" % piece)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    return [TraceEvent(each) for each in found if type(each) is dict]
