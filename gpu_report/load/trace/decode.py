"""Events from JSON: many at once, by msgspec where it is installed, else by `json` of the standard library.

Both come to the same events: what msgspec refuses (a number written as text, NaN) `json` takes, and makes it fit.
"""

import json
from collections.abc import Callable
from typing import Any, Final

from gpu_report.load.trace.event import Event

Decode = Callable[[bytes], list[Any]]  # events between commas; ValueError where it is anything else
TOO_DEEP: Final = "nested too deeply"


def decode_by_json(piece: bytes) -> list[Any]:
    """Return the events that a piece of JSON holds, separated by commas; ValueError where it is anything else."""
    try:
        found = json.loads(b"[%b]" % piece)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    return [Event(each) for each in found if type(each) is dict]


def fastest_decode() -> Decode:
    """Return msgspec's decoder where that is installed (extra [profile]), else `decode_by_json`."""
    try:
        from gpu_report.load.trace.decode_by_msgspec import decode_by_msgspec  # noqa: PLC0415
    except ImportError:
        return decode_by_json
    return decode_by_msgspec
