"""TFRecord: a length, its checksum, the data, their checksum. Files that are cut, damaged or huge are survived.

Format: tensorflow/core/lib/io/record_writer.h; u64 length, u32 masked CRC-32C of the length, the data, u32 masked
CRC-32C of the data, all little-endian.
"""

import os
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from gpu_report.ordinary_file import MIB
from gpu_report.tfevents.crc32c import masked_crc32c

HEADER_BYTES: Final = 12
FOOTER_BYTES: Final = 4
# What is larger holds images, histograms or a graph, and no scalars: of YOLO's own records the largest with scalars has
# 100 bytes, of ours 20,000. It is stepped over, however large it is.
LARGEST_READ: Final = 256 * 1024
HEAD_BYTES: Final = 64  # of a record that is stepped over: its time, its step, and what it is
# A training of 1,000 epochs has 25,000. A million take 15 s on a slow core.
MOST_RECORDS: Final = 1_000_000
# The upper half of a length is zero below 4 GiB, and an event begins with field 1, a double: its time.
_LIKE_A_HEADER: Final = re.compile(rb"(?=\0\0\0\0.{4}\x09)", re.DOTALL)
_UPPER_HALF: Final = 4
_LOOKED_AT: Final = MIB


def pack_record(data: bytes) -> bytes:
    """Return a record with its checksums."""
    length = struct.pack("<Q", len(data))
    return b"".join((length, _checksum(length), data, _checksum(data)))


def _checksum(data: bytes) -> bytes:
    return struct.pack("<I", masked_crc32c(data))


@dataclass(frozen=True)
class Record:
    """A record's data; of one larger than LARGEST_READ only the first HEAD_BYTES, and then it is not `whole`."""

    data: bytes
    whole: bool = True


class RecordReader:
    """The records of a file in order; what could not be read is counted.

    `damaged` counts records whose data do not match their checksum, and places where the next record had to be searched
    for. `cut` says that the last record is not there to its end, `stopped` that there are more than MOST_RECORDS.
    """

    def __init__(self, file: BinaryIO, most_records: int = MOST_RECORDS) -> None:
        self.damaged = 0
        self.cut = False
        self.stopped = False
        self._file = file
        self._size = os.fstat(file.fileno()).st_size  # what is appended meanwhile is of the next reading
        self._left = most_records

    def __iter__(self) -> Iterator[Record]:
        """Yield each record that is as it was written."""
        at: int | None = 0
        while at is not None and at < self._size:
            if self._left <= 0:
                self.stopped = True
                return
            self._left -= 1
            length = self._length_at(at)
            if length is None:
                at = self._search(at + 1)
                continue
            following = at + HEADER_BYTES + length + FOOTER_BYTES
            if following > self._size:
                self.cut = True
                return
            record = self._read(length)
            if record is not None:
                yield record
            at = following

    def _length_at(self, at: int) -> int | None:
        """Return the length of the record that begins at a place, None where none does; the file stands after it."""
        self._file.seek(at)
        header = self._file.read(HEADER_BYTES)
        if len(header) < HEADER_BYTES:
            self.cut = True
            return None
        return struct.unpack("<Q", header[:8])[0] if _checksum(header[:8]) == header[8:] else None

    def _read(self, length: int) -> Record | None:
        """Return the record whose data begin here, None where they are damaged."""
        if length > LARGEST_READ:
            return Record(self._file.read(HEAD_BYTES), whole=False)
        data = self._file.read(length)
        if self._file.read(FOOTER_BYTES) == _checksum(data):
            return Record(data)
        self.damaged += 1
        return None

    def _search(self, at: int) -> int | None:
        """Return where the next record begins, at or after a place; None where there is none."""
        if self.cut:
            return None
        self.damaged += 1
        while at + HEADER_BYTES < self._size and self._left > 0:
            self._file.seek(at)
            data = self._file.read(_LOOKED_AT)
            for match in _LIKE_A_HEADER.finditer(data):
                self._left -= 1
                begins = at + match.start() - _UPPER_HALF
                if begins >= 0 and self._length_at(begins) is not None:
                    return begins
                if self._left <= 0:
                    break
            at += max(len(data) - HEADER_BYTES, 1)
        self.stopped = self._left <= 0
        return None
