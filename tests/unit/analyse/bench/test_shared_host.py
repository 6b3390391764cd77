"""A host whose speed changes while variants serve: their figures at full speed, and that ranks hold."""

from dataclasses import replace

import numpy as np
import pytest
from support.bench import benchmark, model_calls, served

from gpu_report.analyse.bench import analyse_bench

TURNS, TURN_S = 40, 0.3
STEADY = np.ones(TURNS)


def serving(name, ms, slower, turn_s=TURN_S):
    """Return a variant that fills a turn in each round of a second, in which the host is `slower` times as slow."""
    starts, lengths = [], []
    chance = np.random.default_rng(len(name))
    for number, factor in enumerate(slower):
        total = ms * factor * chance.lognormal(0.0, 0.01, int(turn_s * 1000 / (ms * factor)))
        starts += (number + np.concatenate([[0.0], np.cumsum(total)[:-1]]) / 1000).tolist()
        lengths += total.tolist()
    turns = tuple((float(number), number + 1.1 * turn_s) for number in range(len(slower)))
    return replace(served(name), calls=(model_calls(starts, np.array(lengths)),), turns=turns)


def test_at_full_speed_slow_turns_do_not_count():
    slower = np.where(np.arange(TURNS) % 5 < 4, 2.0, 1.0)  # four rounds of five
    (row,) = analyse_bench(benchmark(serving("n", 10.0, slower))).rows
    assert row.full_speed.p50_ms == pytest.approx(10.0, rel=0.02)
    assert row.full_speed.images_per_s == pytest.approx(1000 / 11.0, rel=0.1)
    assert row.latency.p50.value_ms == pytest.approx(20.0, rel=0.02)
    assert row.images_per_s.value < 0.8 * row.full_speed.images_per_s


def test_p95_at_full_speed_is_of_a_turn_and_needs_twenty_calls_in_it():
    slower = np.where(np.arange(TURNS) % 5 < 4, 2.0, 1.0)
    (row,) = analyse_bench(benchmark(serving("n", 5.0, slower))).rows
    assert row.full_speed.p95_ms == pytest.approx(5.0 * np.exp(1.645 * 0.01), rel=0.01)
    assert row.latency.p95.value_ms == pytest.approx(10.0, rel=0.05)
    (few,) = analyse_bench(benchmark(serving("m", 10.0, slower))).rows  # 15 calls of 20 ms in a turn
    assert few.full_speed.p95_ms is None


def test_variants_are_ranked_by_their_full_speed():
    busy = np.where(np.arange(TURNS) % 5 < 4, 2.0, 1.0)
    result = analyse_bench(benchmark(serving("met a slow host", 10.0, busy), serving("did not", 11.0, STEADY)))
    assert (result.choice, result.quickest) == (0, 0)
    assert result.rivals == (1,)  # round by round it was faster: not certain


def test_tails_are_of_all_calls():
    slower = np.where(np.arange(TURNS) % 10 == 0, 3.0, 1.0)
    (row,) = analyse_bench(benchmark(serving("n", 10.0, slower))).rows
    assert row.latency.p50.value_ms == pytest.approx(10.0, rel=0.01)
    assert row.latency.p99.value_ms == pytest.approx(30.0, rel=0.05)
    assert row.latency.worst_ms >= row.latency.p99.value_ms


def test_a_round_that_is_slow_for_all_makes_no_rivals():
    slower = np.exp(np.abs(np.random.default_rng(2).normal(0, 0.3, TURNS)))  # by far more than the two differ
    result = analyse_bench(benchmark(serving("fast", 10.0, slower, 2.0), serving("slow one", 11.0, slower, 2.0)))
    assert (result.choice, result.rivals) == (0, ())
    overlap = result.rows[1].images_per_s.high > result.rows[0].images_per_s.low
    assert overlap  # each by itself says nothing
