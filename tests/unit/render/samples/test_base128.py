"""Bytes as text of seven bits a character."""

import base64
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.packed import from_text

from gpu_report.render.samples.base128 import to_text

EVERY_BYTE = bytes(range(256)) * 8


@given(st.binary(max_size=300))
def test_it_is_read_back_and_nothing_in_it_ends_a_script(data: bytes) -> None:
    text = to_text(data)
    assert from_text(text) == data
    assert text.isascii()
    assert not re.search("[\0\r\x1b]|<[^A-D]|<$", text)


@pytest.mark.parametrize("byte", [b"\0", b"\xff", b"<", b"\r", b"\x0d\x1a\x34\x68\xd1\xa3\x46"])
def test_what_is_escaped_all_along_is_read_back(byte: bytes) -> None:
    assert from_text(to_text(byte * 1000)) == byte * 1000


def test_it_is_an_eighth_smaller_than_base64() -> None:
    assert len(to_text(EVERY_BYTE)) < 0.89 * len(base64.b64encode(EVERY_BYTE))
