"""The bytes of a trace, unpacked where it is a gzip file, in blocks."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from gpu_report.errors import InputError
from gpu_report.load.problems import too_large
from gpu_report.load.trace.limits import BLOCK_BYTES, MOST_BYTES
from gpu_report.ordinary_file import open_ordinary, refuse_special

GZIP: Final = b"\x1f\x8b"
GZIP_WINDOW: Final = 31  # zlib's wbits for a file with gzip's own header


class Blocks:
    """Iterate over a file's bytes; `problems` has what was wrong with it, once they are at their end."""

    def __init__(self, path: Path, most_bytes: int = MOST_BYTES) -> None:
        """Take a file to read up to `most_bytes` unpacked bytes of."""
        self._path, self._left = path, most_bytes
        self._most_bytes = most_bytes
        self.problems: list[str] = []

    def __iter__(self) -> Iterator[bytes]:
        """Yield blocks of about BLOCK_BYTES; InputError where the file cannot be opened."""
        refuse_special(self._path)
        try:
            with open_ordinary(self._path) as file:
                packed = file.read(len(GZIP)) == GZIP
                file.seek(0)
                for block in self._unpacked(file) if packed else _read(file):
                    yield block[: self._left]
                    self._left -= len(block)
                    if self._left <= 0:
                        self.problems.append(too_large(self._path.name, self._most_bytes))
                        return
        except OSError as error:
            raise InputError(f"{self._path}: {error.strerror or error}") from error

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield what a gzip file holds, also one of several members, up to where it is cut or damaged."""
        member, begun = zlib.decompressobj(GZIP_WINDOW), False
        for packed in _read(file):
            data = packed
            while data:
                try:
                    block = member.decompress(data, BLOCK_BYTES)
                except zlib.error:
                    self.problems.append(f"{self._path.name} is damaged: what was packed behind that is left out")
                    return
                if block:
                    yield block
                data, begun = member.unconsumed_tail, True
                if member.eof:
                    data = member.unused_data.lstrip(b"\0")
                    member, begun = zlib.decompressobj(GZIP_WINDOW), False
        if begun:
            yield member.flush()
            self.problems.append(f"{self._path.name} is cut off: only its beginning was read")


def _read(file: BinaryIO) -> Iterator[bytes]:
    while block := file.read(BLOCK_BYTES):
        yield block
