"""An event of a trace, with those of its fields that we use; built from a JSON object, whatever its types are."""

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

MISSING: Final = -1  # in the place of a whole number
INT64: Final = range(-(2**63), 2**63)
NAN: Final = math.nan


def _whole_at(key: str) -> Callable[[Any], int]:
    return lambda args: whole(args._said.get(key, MISSING))


class EventArgs:
    """The arguments of an event; a whole number that it lacks is MISSING.

    `external_id` is the number of the operator that was running, `old_external_id` the same in traces of torch 1;
    `correlation` joins a call of the CUDA runtime with what it had the GPU do; `sequence` a forward operator with its
    node of autograd.
    """

    __slots__ = ("_said",)

    def __init__(self, said: Mapping[str, Any]) -> None:
        """Take a JSON object; its values are looked at when they are asked for: few of them are."""
        self._said = said

    external_id = property(_whole_at("External id"))
    old_external_id = property(_whole_at("external id"))
    correlation = property(_whole_at("correlation"))
    sequence = property(_whole_at("Sequence number"))
    device = property(_whole_at("device"))
    stream = property(_whole_at("stream"))
    bytes = property(_whole_at("bytes"))


class TraceEvent:
    """An event: phase, category, name, start and duration (µs, NaN where missing), process and thread."""

    __slots__ = ("args", "cat", "dur", "name", "ph", "pid", "tid", "ts")

    def __init__(self, said: Mapping[str, Any]) -> None:
        """Take a JSON object."""
        get = said.get
        self.ph, self.cat, self.name = text(get("ph", "")), text(get("cat", "")), text(get("name", ""))
        self.ts, self.dur = number(get("ts", NAN)), number(get("dur", NAN))
        self.pid, self.tid = lane(get("pid", 0)), lane(get("tid", 0))
        args = get("args")
        self.args = EventArgs(args) if type(args) is dict else None


def number(said: object) -> float:
    """Return a number, also one written as text; NaN for anything else."""
    if isinstance(said, float):
        return said
    if isinstance(said, int | str) and not isinstance(said, bool):
        try:
            return float(said)
        except (ValueError, OverflowError):
            return NAN
    return NAN


def whole(said: object) -> int:
    """Return a whole number of 64 bits, also one written as text; MISSING for anything else."""
    if type(said) is int:
        return said if said in INT64 else MISSING
    value = number(said)
    return int(value) if value.is_integer() and abs(value) < 2**53 else MISSING


def text(said: object) -> str:
    """Return a text; empty for anything else."""
    return said if isinstance(said, str) else ""


def lane(said: object) -> int | str:
    """Return a process or thread, which has a number or a name; one written as text is the same as the number."""
    if type(said) is str:
        found = whole(said)
        return said if found == MISSING else found
    return whole(said)
