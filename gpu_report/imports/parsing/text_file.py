"""Reading a whole log as text."""

import zlib
from pathlib import Path
from typing import Final

from gpu_report.errors import InputError
from gpu_report.ordinary_file import LARGEST_SMI_LOG, open_ordinary, refuse_special

HEAD_BYTES: Final = 65_536  # of a file: what tells formats apart stands at its beginning
_GZIP: Final = b"\x1f\x8b"
_GZIP_WINDOW: Final = 31  # zlib's wbits for a file with gzip's own header


def read_text(path: Path, tool: str) -> str:
    """Return a log's text with line feeds alone, unpacked if need be; InputError where it cannot be read."""
    refuse_special(path, LARGEST_SMI_LOG)
    try:
        text = _decoded(_unpacked(path.read_bytes(), LARGEST_SMI_LOG))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): name a log that {tool} wrote") from error
    if not text.strip():
        raise InputError(f"{path} is empty: name a log that {tool} wrote")
    return text


def read_head(path: Path) -> str:
    """Return the first HEAD_BYTES of a log as text, empty of a folder; InputError where it cannot be read."""
    refuse_special(path)
    try:
        if path.is_dir():
            return ""
        with open_ordinary(path) as file:
            return _decoded(_unpacked(file.read(HEAD_BYTES), HEAD_BYTES))
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): name a log that a tool wrote") from error


def _unpacked(data: bytes, most: int) -> bytes:
    """Return what a gzip file holds, of all its members, up to where it is cut or damaged; other data as it is."""
    if not data.startswith(_GZIP):
        return data
    parts: list[bytes] = []
    while data.startswith(_GZIP) and most > 0:
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            parts.append(member.decompress(data, most))
        except zlib.error:
            break
        most -= len(parts[-1])
        data = member.unused_data
    return b"".join(parts)


def _decoded(data: bytes) -> str:
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"  # PowerShell's `>` is UTF-16
    return data.decode(encoding, "replace").replace("\r\n", "\n").replace("\r", "\n")
