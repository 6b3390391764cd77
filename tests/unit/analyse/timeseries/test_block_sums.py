"""Sums over many ranges that overlap, of which only blocks are kept."""

import numpy as np
import pytest

from gpu_report.analyse.timeseries.block_sums import BLOCK, BlockSums

COUNT = 5 * BLOCK + 7
VALUES = np.random.default_rng(6).uniform(0.0, 1.0, COUNT)
EDGES = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5, 5 * BLOCK, COUNT]


@pytest.mark.parametrize("first", EDGES)
@pytest.mark.parametrize("end", EDGES)
def test_the_sum_over_any_range_is_that_of_its_values(first, end):
    sums = BlockSums(COUNT, lambda a, b: VALUES[a:b])
    assert sums.between(first, end) == pytest.approx(VALUES[first:end].sum())


def test_a_long_range_looks_at_its_edges_only():
    looked = []

    def values(first, end):
        looked.append(end - first)
        return VALUES[first:end]

    sums = BlockSums(COUNT, values)
    looked.clear()
    sums.between(3, COUNT - 3)
    assert sum(looked) < 2 * BLOCK


def test_there_may_be_nothing_to_add_up():
    assert BlockSums(0, lambda a, b: VALUES[a:b][:0]).between(0, 0) == 0.0
