"""CRC-32C (Castagnoli), as TFRecord masks it: by google-crc32c where the extra [tensorboard] is there, else in Python.

Python alone takes 100 to 200 ns a byte, a second of the largest export.
"""

import contextlib
from collections.abc import Callable
from typing import Final

_POLYNOMIAL: Final = 0x82F63B78  # Castagnoli's, bits reversed (RFC 3720, appendix B.4)
_MASK_DELTA: Final = 0xA282EAD8  # TFRecord's: a checksum that is stored with the data must not be that of the data
_BITS: Final = 0xFFFFFFFF


def _entry(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ (_POLYNOMIAL if byte & 1 else 0)
    return byte


_TABLE: Final = tuple(map(_entry, range(256)))


def crc32c_in_python(data: bytes) -> int:
    """Return the CRC-32C of some bytes, a byte at a time."""
    table, crc = _TABLE, _BITS
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    return crc ^ _BITS


def _fastest() -> Callable[[bytes], int]:
    with contextlib.suppress(Exception):  # whatever a broken install raises: the other one does the same
        import google_crc32c  # noqa: PLC0415 - the extra [tensorboard]

        if google_crc32c.implementation == "c":
            value: Callable[[bytes], int] = google_crc32c.value
            return value
    return crc32c_in_python


crc32c: Final = _fastest()


def masked_crc32c(data: bytes) -> int:
    """Return the checksum that TFRecord stores: rotated by 15 bits and shifted by a constant."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _BITS
