"""The order of turns: a drift hits all variants alike."""

import numpy as np
import pytest

from gpu_report.bench.rounds import ROUNDS_AT_LEAST, SETTLE_S, orders, turn_lengths


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
    rounds, turn_s, settle_s = turn_lengths(seconds)
    assert rounds % 2 == 0
    assert rounds >= ROUNDS_AT_LEAST
    assert rounds * turn_s == pytest.approx(seconds)
    assert 0 < settle_s <= min(SETTLE_S, turn_s / 2)
