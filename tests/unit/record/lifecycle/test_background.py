"""The command line that a recorder in the background is started with."""

import pytest

from gpu_report.record.lifecycle.background import _as_words
from gpu_report.record.options import RecordOptions


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (RecordOptions(), ["--interval", "1.0"]),
        (RecordOptions(detail=True), ["--interval", "1.0", "--detail"]),
        (RecordOptions(stacks=False), ["--interval", "1.0", "--no-stacks"]),
    ],
)
def test_options_are_passed_on(options, words):
    assert list(_as_words(options, None)) == words
