"""What the siblings of a part of an epoch excuse, and what they do not."""

import math

import numpy as np
import pytest

from gpu_report.analyse.timeline.siblings import SiblingLengths

TOLERATED_S, FIRST_EXTRA_S = 8.0, 5.0


def exceptions(lengths, firsts=()):
    """Return the places of lengths that are exceptions among the others."""
    siblings = SiblingLengths(lengths, [number in firsts for number in range(len(lengths))])
    usual = [siblings.of(number, TOLERATED_S, FIRST_EXTRA_S) for number in range(len(lengths))]
    return [n for n, (value, of) in enumerate(zip(lengths, usual, strict=True)) if of and value > of.longest_s]


@pytest.mark.parametrize("share", [0.0, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("typical_s", [3.0, 20.0, 60.0, 600.0])
def test_jitter_is_no_exception_and_a_validation_three_times_as_long_is_one(typical_s, share):
    random = np.random.default_rng(7)
    lengths = np.clip(typical_s * (1 + share * random.standard_normal(40)), 0.1, None)
    assert exceptions(lengths.tolist()) == []
    lengths[17] = 3 * typical_s + 10
    assert exceptions(lengths.tolist()) == [17]


def test_validations_that_shrink_as_the_model_learns_are_none_and_a_stall_in_one_of_them_is():
    lengths = [40 + 80 * math.exp(-epoch / 5) for epoch in range(40)]
    assert exceptions(lengths, firsts=(0,)) == []
    lengths[20] += 15
    assert exceptions(lengths, firsts=(0,)) == [20]


def test_a_first_validation_may_take_half_as_long_again_and_no_more():
    """On top of what all vary by: a third of their length, where there are few."""
    assert exceptions([74.0, 50.0], firsts=(0,)) == []
    assert exceptions([89.0, 50.0], firsts=(0,)) == []
    assert exceptions([91.0, 50.0], firsts=(0,)) == [0]
    assert exceptions([74.0, *[50.0] * 20], firsts=(0,)) == []
    assert exceptions([80.0, *[50.0] * 20], firsts=(0,)) == [0]
    assert exceptions([6.0, 1.4, 1.3, 1.4], firsts=(0,)) == []


def test_of_few_the_spread_excuses_nothing():
    """With two faults among five the spread would be the faults."""
    assert exceptions([1.5, 14.0, 1.4, 13.0, 1.6]) == [1, 3]


def test_an_only_one_and_unknown_ones_have_no_siblings():
    siblings = SiblingLengths([5.0, math.nan], [False, False])
    assert siblings.of(0, TOLERATED_S, FIRST_EXTRA_S) is None
