"""What of an event goes into which column of its table."""

from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

from gpu_report.load.trace.event import MISSING, lane

ColumnReader = Callable[[Sequence[Any], Sequence[Any]], list[int]]  # of events and their arguments


class NoArgs:
    """The arguments of an event that has none."""

    external_id = old_external_id = correlation = sequence = device = stream = bytes = MISSING


NO_ARGS: Final = NoArgs()


def _whole(field: str) -> ColumnReader:
    get = attrgetter(field)
    return lambda _, args: list(map(get, args))


def _external_ids(_: Sequence[Any], args: Sequence[Any]) -> list[int]:
    return [max(each.external_id, each.old_external_id) for each in args]


def _devices(events: Sequence[Any], args: Sequence[Any]) -> list[int]:
    return [a.device if a.device != MISSING else _number(e.pid) for e, a in zip(events, args, strict=True)]


def _streams(events: Sequence[Any], args: Sequence[Any]) -> list[int]:
    return [a.stream if a.stream != MISSING else _number(e.tid) for e, a in zip(events, args, strict=True)]


def _number(said: int | str) -> int:
    found = lane(said)
    return found if isinstance(found, int) else MISSING


_GPU_LANE: Final[Mapping[str, ColumnReader]] = {
    "device": _devices,
    "stream": _streams,
    "correlation": _whole("correlation"),
}
_GPU_WORK: Final[Mapping[str, ColumnReader]] = {**_GPU_LANE, "external_id": _external_ids, "bytes": _whole("bytes")}
COLUMNS: Final[Mapping[str, Mapping[str, ColumnReader]]] = {
    "operators": {
        "external_id": _external_ids,
        "sequence": _whole("sequence"),
    },
    "calls": {"correlation": _whole("correlation"), "external_id": _external_ids},
    "kernels": _GPU_WORK,
    "copies": _GPU_WORK,
    "memsets": _GPU_WORK,
    "syncs": _GPU_LANE,
    "annotations": {},
    "python": {},
}
ON_CPU: Final = frozenset({"operators", "calls", "annotations", "python"})  # have a thread, the others a stream
