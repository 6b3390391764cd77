"""The checksum: known answers, and the one in Python against the one in C."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_report.tfevents.crc32c import crc32c, crc32c_in_python
from tests.conftest import clean_environment

# RFC 3720, appendix B.4
KNOWN = [
    (b"\0" * 32, 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (b"123456789", 0xE3069283),
]


@pytest.mark.parametrize(("data", "crc"), KNOWN)
def test_known_answers(data, crc):
    assert crc32c_in_python(data) == crc
    assert crc32c(data) == crc


def test_without_google_s_it_is_that_in_python():
    code = "import sys; sys.modules['google_crc32c'] = None; from gpu_report.tfevents import crc32c; "
    done = subprocess.run(
        [sys.executable, "-c", f"{code}print(crc32c.crc32c is crc32c.crc32c_in_python)"],
        env=clean_environment(None),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


@given(st.binary(max_size=300))
def test_both_ways_are_one(data):
    google = pytest.importorskip("google_crc32c")
    assert google.value(data) == crc32c_in_python(data)
