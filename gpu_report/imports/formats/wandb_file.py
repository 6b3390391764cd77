"""The local log of wandb, `run-ID.wandb`: LevelDB's log format around protobuf messages, of which only readings matter.

wandb/proto/wandb_internal.proto: Record.stats is field 7; StatsRecord has timestamp 2 (seconds 1, nanos 2) and item 3
(key 1, value_json 16). LevelDB's format is in its doc/log_format.md: blocks of 32 KiB, in them a checksum, a length, a
kind and data; a record longer than what is left of its block goes on in the next.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from gpu_report.errors import InputError
from gpu_report.ordinary_file import LARGEST_SMI_LOG, refuse_special
from gpu_report.tfevents.wire import fields

MAGIC: Final = ":W&B"
_FILE_HEADER: Final = 7  # bytes: MAGIC, a magic number and a version
_BLOCK: Final = 32_768
_HEADER: Final = struct.Struct("<IHB")
_FULL, _FIRST, _LAST = 1, 2, 4  # kinds; 3 is in the middle
_STATS, _STAMP, _ITEM, _KEY, _VALUE = 7, 2, 3, 1, 16  # field numbers
_NANO: Final = 1e-9

Reading = tuple[float, list[tuple[str, float]]]  # a moment (s since 1970), and names with values


def read_records(path: Path) -> Iterator[Reading]:
    """Yield the readings of a log in order; what is cut or damaged ends it. InputError where it cannot be read."""
    refuse_special(path, LARGEST_SMI_LOG)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): name the .wandb file of a run") from error
    for record in _records(data):
        try:
            stats = [bytes(value) for field, _, value in fields(record) if field == _STATS and isinstance(value, bytes)]
            readings = [_reading(each) for each in stats]
        except ValueError:
            continue
        yield from readings


def _records(data: bytes) -> Iterator[bytes]:
    at, begun = _FILE_HEADER, b""
    while at + _HEADER.size <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _HEADER.size:  # too short for a header: zeros
            at += left
            continue
        _, length, kind = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        part = data[at : at + length]
        at += length
        begun = part if kind in {_FULL, _FIRST} else begun + part
        if kind in {_FULL, _LAST}:
            yield begun


def _reading(stats: bytes) -> Reading:
    stamp_s, items = float("nan"), []
    for name, _, value in fields(stats):
        if not isinstance(value, bytes):
            continue
        if name == _STAMP:
            seconds = {part: int(each) for part, _, each in fields(value) if isinstance(each, int)}
            stamp_s = seconds.get(1, 0) + seconds.get(2, 0) * _NANO
        elif name == _ITEM:
            item = {part: each for part, _, each in fields(value) if isinstance(each, bytes)}
            items.append((item.get(_KEY, b"").decode("utf-8", "replace"), _number(item.get(_VALUE, b""))))
    return stamp_s, items


def _number(text: bytes) -> float:
    """Return a JSON number; NaN for what is none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
