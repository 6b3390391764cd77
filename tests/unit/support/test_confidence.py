"""Bounds against values that tables and closed forms give."""

import pytest
from support.confidence import count_at_most, share_at_least


def test_all_right_is_a_power_of_the_doubt():
    assert share_at_least(16, 16) == pytest.approx(0.05 ** (1 / 16))


def test_some_right_is_what_the_table_of_clopper_and_pearson_says():
    assert share_at_least(8, 10) == pytest.approx(0.4931, abs=1e-4)


def test_none_right_says_nothing():
    assert share_at_least(0, 5) == share_at_least(0, 0) == 0.0


@pytest.mark.parametrize(("count", "mean"), [(0, 2.9957), (1, 4.7439), (3, 7.7537)])
def test_few_events_are_what_the_table_of_garwood_says(count, mean):
    assert count_at_most(count) == pytest.approx(mean, abs=1e-4)
