"""The order of turns: a drift hits all variants alike."""

import numpy as np
import pytest

from gpu_report.bench.rounds import (
    BLOCKS,
    CALLS_AT_LEAST,
    PRECISE,
    ROUNDS_AT_LEAST,
    SETTLE_ON_CPU_S,
    TURN_S,
    is_precise,
    orders,
    turn_lengths,
)


@pytest.mark.parametrize("count", [1, 2, 7])
def test_a_steady_drift_is_the_same_for_all(count):
    rounds = 10
    places = np.empty((rounds, count))
    for number, order in enumerate(orders(count, rounds)):
        assert sorted(order) == list(range(count))
        places[number, order] = number * count + np.arange(count)  # when each had its turn
    assert np.ptp(places.mean(axis=0)) == 0


def test_pairs_of_rounds_are_shuffled_anew_and_the_same_in_each_benchmark():
    assert orders(6, 8) == orders(6, 8)
    assert len({tuple(order) for order in orders(6, 8)}) == 8


@pytest.mark.parametrize("seconds", [0.5, 3, 20, 61, 600])
def test_turns_are_an_even_number_and_fill_the_seconds(seconds):
    rounds, turn_s, settle_s = turn_lengths(seconds, on_gpu=False)
    assert rounds % 2 == 0
    assert rounds >= ROUNDS_AT_LEAST
    assert rounds * turn_s == pytest.approx(seconds)
    assert 0 < settle_s <= min(SETTLE_ON_CPU_S, turn_s)
    assert turn_lengths(seconds)[2] <= settle_s


def test_turns_are_as_long_as_the_slowest_variant_needs():
    assert turn_lengths(20)[1] == pytest.approx(TURN_S, rel=0.1)
    rounds, turn_s, _ = turn_lengths(20, call_s=1.0)
    assert (rounds, turn_s) == (ROUNDS_AT_LEAST, 2.0)
    assert turn_lengths(60, call_s=1.0)[:2] == (16, 3.75)


@pytest.mark.parametrize(
    ("spread", "turns", "calls", "enough"),
    [
        (0.02, 64, CALLS_AT_LEAST, True),
        (0.02, 64, CALLS_AT_LEAST - 1, False),
        (0.2, 64, CALLS_AT_LEAST, False),
        (0.0, BLOCKS - 1, CALLS_AT_LEAST, False),
        (0.0, BLOCKS, CALLS_AT_LEAST, True),
    ],
)
def test_a_variant_has_served_enough_when_its_median_is_known(spread, turns, calls, enough):
    medians = 5.0 * np.exp(np.random.default_rng(1).normal(0, spread, turns))
    assert is_precise(medians.tolist(), calls) == enough


def test_a_drift_that_lasts_for_many_turns_is_no_precision():
    slow_then_fast = [6.0] * 32 + [5.0] * 32
    assert not is_precise(slow_then_fast, CALLS_AT_LEAST)
    assert is_precise([5.0 * (1 + PRECISE * (turn % 2)) for turn in range(64)], CALLS_AT_LEAST)
