"""Protobuf's wire format, as much of it as event files need: fields by their numbers."""

from collections.abc import Iterator
from typing import Final

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types
_LONGEST_VARINT: Final = 10  # bytes of 64 bits
_FIXED_BYTES: Final = {FIXED64: 8, FIXED32: 4}
_SIGN: Final = 1 << 63

Field = tuple[int, int, int | bytes]  # number, wire type, value: an int of a varint, else bytes


def fields(data: bytes, *, is_head: bool = False) -> Iterator[Field]:
    """Yield the fields of a message in order; ValueError at what is none, or is cut.

    Of a message of which only the head is there the last field is the one that is cut, with no bytes.
    """
    at, end = 0, len(data)
    while at < end:
        key, at = _varint(data, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == VARINT:
            value, at = _varint(data, at)
            yield number, wire_type, value
            continue
        if wire_type == BYTES:
            length, at = _varint(data, at)
        elif wire_type in _FIXED_BYTES:
            length = _FIXED_BYTES[wire_type]
        else:
            raise ValueError("no protobuf message")
        if at + length > end:
            if not is_head:
                raise ValueError("a message that is cut")
            yield number, wire_type, b""
            return
        yield number, wire_type, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a place, and where it ends; most have one byte."""
    if at < len(data) and data[at] < 0x80:
        return data[at], at + 1
    value = 0
    for place, byte in enumerate(data[at : at + _LONGEST_VARINT]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, at + place + 1
    raise ValueError("a number that is cut")


def signed(value: int) -> int:
    """Return an int64 of its varint, which is that of the two's complement."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value & _SIGN else value


def varint(value: int) -> bytes:
    """Return a whole number as a varint, a negative one as that of its two's complement."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def bytes_field(number: int, value: bytes) -> bytes:
    """Return a field of bytes: text, or a message."""
    return varint(number << 3 | BYTES) + varint(len(value)) + value


def int_field(number: int, value: int) -> bytes:
    """Return a field of a whole number."""
    return varint(number << 3 | VARINT) + varint(value)


def fixed_field(number: int, value: bytes) -> bytes:
    """Return a field of a float (4 bytes) or of a double (8), packed already."""
    return varint(number << 3 | (FIXED64 if len(value) == _FIXED_BYTES[FIXED64] else FIXED32)) + value
