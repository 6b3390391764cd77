"""Numbers on the command line: what is none, or lies outside, is said in words."""

import click
import pytest

from gpu_report.cli.common import CountRange, FiniteRange


@pytest.mark.parametrize(
    ("kind", "value", "says"),
    [
        (FiniteRange(0, 10), "x", "'x' is not a number."),
        (FiniteRange(0, 10), "", "'' is not a number."),
        (FiniteRange(0, 10), "nan", "'nan' is not a number in range."),
        (FiniteRange(0, 10, min_open=True), "0", "0 is out of range: above 0 and at most 10."),
        (CountRange(1, 9), "1.5", "'1.5' is not a whole number."),
        (CountRange(1, 9), "12", "12 is out of range: at least 1 and at most 9."),
    ],
)
def test_what_is_no_number_within_limits_is_wrong_use(kind, value, says):
    with pytest.raises(click.BadParameter) as told:
        kind.convert(value, None, None)
    assert told.value.message == says


def test_a_number_within_limits_is_taken():
    assert FiniteRange(0, 10).convert("2.5", None, None) == 2.5
    assert CountRange(1, 9).convert("3", None, None) == 3
