"""Where warming up ends."""

import numpy as np
import pytest

from gpu_report.analyse.inference.warm_up import alike, warm_up_calls


def noisy(*levels, seed=0):
    random = np.random.default_rng(seed)
    values = np.concatenate([np.full(count, float(ms)) for ms, count in levels])
    return values * np.exp(0.05 * random.normal(size=len(values)))


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        ([(8000, 1), (15, 300)], 1),
        ([(8000, 1), (30, 8), (15, 300)], 9),
        ([(15, 300)], 0),
        ([(10, 100), (15, 300)], 0),  # it got slower: that is no warm-up
        ([(30, 150), (15, 150)], 0),  # nor is a change half-way
        ([(9000, 1), (30, 150), (15, 150)], 1),  # beside it the first call is one all the same
        ([(15, 3)], 0),
        ([], 0),
    ],
)
def test_it_ends_where_calls_reach_their_level(levels, expected):
    assert warm_up_calls(noisy(*levels) if levels else np.array([])) == expected


def test_noise_alone_is_no_warm_up():
    assert not any(warm_up_calls(noisy((15, 200), seed=seed)) for seed in range(100))


def test_larger_batches_are_no_slower_calls():
    kinds = np.repeat([32.0, 1.0], 100)
    values = np.where(kinds == 32, 70.0, 12.0)
    assert warm_up_calls(alike(values, kinds)) == 0
