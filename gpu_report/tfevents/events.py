"""Events of TensorBoard: the scalars of a file, and when it was begun. Field numbers: tensorboard/compat/proto."""

import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gpu_report.errors import InputError
from gpu_report.ordinary_file import open_ordinary, refuse_special
from gpu_report.tfevents import wire
from gpu_report.tfevents.framing import MOST_RECORDS, Record, RecordReader

FILE_VERSION: Final = b"brain.Event:2"
WALL_TIME, STEP, VERSION, GRAPH, SUMMARY = 1, 2, 3, 4, 5  # of Event
VALUE: Final = 1  # of Summary
TAG, SIMPLE_VALUE, TENSOR, METADATA = 1, 2, 8, 9  # of Summary.Value
DTYPE, SHAPE, CONTENT, FLOAT_VALUES, DOUBLE_VALUES, STRING_VALUES = 1, 2, 4, 5, 6, 8  # of TensorProto
FLOAT, DOUBLE, STRING = 1, 2, 7  # of DataType
LATEST_S: Final = 1e11  # in the year 5138; what lies beyond is no time in seconds
LONGEST_TAG: Final = 200  # characters: of YOLO's the longest has 20
# A training of 1,000 epochs has 25,000. Each takes 200 bytes of memory.
MOST_SCALARS: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Scalar:
    """A value of a tag: when it was written (s since 1970), at which step; NaN and infinity as they were written."""

    wall_s: float
    step: int
    tag: str
    value: float


@dataclass(frozen=True)
class EventFile:
    """What a file holds of the tags that were asked for, in the file's order.

    `begun_s` is when its writer was made, `graph_s` when a model's graph was written (YOLO does so as training starts);
    None where the file does not say. `problems` say what could not be read.
    """

    path: Path
    begun_s: float | None
    graph_s: float | None
    scalars: tuple[Scalar, ...]
    problems: tuple[str, ...]


def read_event_file(
    path: Path, wanted: Callable[[str], bool], most: int = MOST_SCALARS, most_records: int = MOST_RECORDS
) -> EventFile:
    """Return the scalars of the tags that are `wanted`, at most so many, of the first so many records.

    InputError for what is no event file.
    """
    refuse_special(path)
    begun_s = graph_s = None
    scalars: list[Scalar] = []
    known = count = unknown = 0
    try:
        with open_ordinary(path) as file:
            records = RecordReader(file, most_records)
            for count, record in enumerate(records, start=1):  # noqa: B007 - how many there were
                event = _event(record)
                if event is None:
                    unknown += 1
                    continue
                known += 1
                begun_s = event.wall_s if begun_s is None and event.is_version else begun_s
                graph_s = event.wall_s if graph_s is None and event.is_graph else graph_s
                scalars += _scalars(event, wanted, most - len(scalars))
                if len(scalars) >= most:
                    records.stopped = True
                    break
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): name a file events.out.tfevents...") from error
    if not known:
        raise InputError(f"{path} holds no event of TensorBoard: name a file events.out.tfevents... that a run wrote")
    return EventFile(path, begun_s, graph_s, tuple(scalars), tuple(_problems(path, records, unknown)))


def _problems(path: Path, records: RecordReader, unknown: int) -> Iterator[str]:
    damaged = records.damaged + unknown
    if damaged:
        yield f"{path.name} is damaged in {damaged:,} place{'s' if damaged > 1 else ''}: what stood there is left out."
    if records.cut:
        yield f"{path.name} is cut in its last record, which is left out."
    if records.stopped:
        yield f"{path.name} has more than a training writes: only its beginning is read."


@dataclass(frozen=True, slots=True)
class _Event:
    wall_s: float
    step: int
    is_version: bool
    is_graph: bool
    summary: bytes


def _event(record: Record) -> _Event | None:
    """Return what a record says, None where it is no event, or has no time."""
    wall_s, step, summary, numbers = math.nan, 0, b"", set()
    try:
        for number, _, value in wire.fields(record.data, is_head=not record.whole):
            numbers.add(number)
            if number == WALL_TIME and isinstance(value, bytes) and len(value) == struct.calcsize("<d"):
                wall_s = struct.unpack("<d", value)[0]
            elif number == STEP and isinstance(value, int):
                step = wire.signed(value)
            elif number == SUMMARY and isinstance(value, bytes):
                summary = value
    except ValueError:
        return None
    if not 0 < wall_s < LATEST_S:  # NaN is neither
        return None
    return _Event(wall_s, step, VERSION in numbers, GRAPH in numbers, summary)


def _scalars(event: _Event, wanted: Callable[[str], bool], most: int) -> list[Scalar]:
    """Return the scalars of an event; one whose rest cannot be read has those before."""
    found: list[Scalar] = []
    try:
        for number, _, value in wire.fields(event.summary):
            if number != VALUE or not isinstance(value, bytes):
                continue
            tag, scalar = _tag_and_value(value, wanted)
            if scalar is not None and len(found) < most:
                found.append(Scalar(event.wall_s, event.step, tag, scalar))
    except ValueError:
        return found
    return found


def _tag_and_value(data: bytes, wanted: Callable[[str], bool]) -> tuple[str, float | None]:
    """Return a value's tag and its number, None where it has none or is not wanted."""
    tag, scalar, tensor = "", None, b""
    for number, wire_type, value in wire.fields(data):
        if not isinstance(value, bytes):
            continue
        if number == TAG:
            tag = value[: LONGEST_TAG + 1].decode("utf-8", "replace")
        elif number == SIMPLE_VALUE and wire_type == wire.FIXED32:
            scalar = float(struct.unpack("<f", value)[0])
        elif number == TENSOR:
            tensor = value
    if len(tag) > LONGEST_TAG or not wanted(tag):
        return tag, None
    return tag, scalar if scalar is not None else _of_tensor(tensor)


def _of_tensor(data: bytes) -> float | None:
    """Return the number of a tensor that holds one, as TensorFlow 2 writes scalars; None for any other."""
    for number, wire_type, value in wire.fields(data):
        if not isinstance(value, bytes) or number not in {CONTENT, FLOAT_VALUES, DOUBLE_VALUES}:
            continue
        form = "<f" if number == FLOAT_VALUES or (number == CONTENT and len(value) == struct.calcsize("<f")) else "<d"
        packed = wire_type == wire.BYTES or wire_type in {wire.FIXED32, wire.FIXED64}
        if packed and len(value) == struct.calcsize(form):
            return float(struct.unpack(form, value)[0])
    return None


def event_head(wall_s: float, step: int) -> bytes:
    """Return the beginning of an event: when it was (s since 1970), at which step."""
    return wire.fixed_field(WALL_TIME, struct.pack("<d", wall_s)) + wire.int_field(STEP, step)


def version_event(wall_s: float) -> bytes:
    """Return the event that a file begins with."""
    return wire.fixed_field(WALL_TIME, struct.pack("<d", wall_s)) + wire.bytes_field(VERSION, FILE_VERSION)


def summary_event(wall_s: float, step: int, values: bytes) -> bytes:
    """Return an event of values, each as `text_value` returns it, or as `scalar_prefix` and four bytes of a float."""
    return event_head(wall_s, step) + wire.bytes_field(SUMMARY, values)


def scalar_prefix(tag: str) -> bytes:
    """Return a scalar's value of a summary, up to its number: a little-endian float of four bytes follows."""
    start = wire.bytes_field(TAG, tag.encode())
    number = wire.fixed_field(SIMPLE_VALUE, struct.pack("<f", 0.0))
    return wire.bytes_field(VALUE, start + number)[:-4]


def text_value(tag: str, markdown: str) -> bytes:
    """Return a text as a value of a summary, which TensorBoard's plugin `text` shows as Markdown."""
    return string_value(tag, "text", markdown.encode("utf-8", "replace"), (1,))


def string_value(tag: str, plugin: str, content: bytes, shape: tuple[int, ...] = ()) -> bytes:
    """Return some bytes as a value of a summary, for a plugin of TensorBoard; a tensor of one element."""
    dimensions = b"".join(wire.bytes_field(2, wire.int_field(1, size)) for size in shape)
    tensor = (
        wire.int_field(DTYPE, STRING) + wire.bytes_field(SHAPE, dimensions) + wire.bytes_field(STRING_VALUES, content)
    )
    metadata = wire.bytes_field(1, wire.bytes_field(1, plugin.encode()))
    value = wire.bytes_field(TAG, tag.encode()) + wire.bytes_field(METADATA, metadata)
    return wire.bytes_field(VALUE, value + wire.bytes_field(TENSOR, tensor))
