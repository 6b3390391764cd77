"""Which rank is missing from a collective: what traces say of each group, with no training behind them."""

from dataclasses import replace

import pytest
from support.runs import make_run

from gpu_report.analyse.signals.code.collectives import PENDING_LEAST_S, find_pending_collective, traces_of_the_end
from gpu_report.model import Collective, Nccl, RankTrace, TracedGroup

LASTS_S = 100


def group(called, t_s=50.0):
    calls = tuple(Collective(n, "all_reduce", t_s, completed=n < 3) for n in range(1, called + 1))
    return TracedGroup("0", (0, 1), called, calls)


def missing(first, second):
    traces = (RankTrace(0, (first,)), RankTrace(1, (second,)))
    run = replace(make_run([90.0] * LASTS_S), nccl=Nccl((), traces))
    held = find_pending_collective(traces_of_the_end(run))
    return held and (held.collective.number, held.missing)


def test_a_rank_that_called_one_less_is_missing():
    assert missing(group(3), group(2)) == (3, (1,))
    assert missing(group(3), group(3)) is None


def test_a_rank_that_called_none_is_missing_from_the_first():
    begun = TracedGroup("0", (0, 1), 1, (Collective(1, "all_reduce", 50.0, completed=False),))
    assert missing(begun, TracedGroup("0", (0, 1), 0, ())) == (1, (1,))


@pytest.mark.parametrize("before_end_s", [0.02, PENDING_LEAST_S / 2])
def test_a_call_of_the_last_moment_waits_for_nobody_yet(before_end_s):
    last = Collective(3, "all_reduce", LASTS_S - before_end_s, completed=False)
    ahead = group(2)
    assert missing(replace(ahead, called=3, last=(*ahead.last, last)), group(2)) is None
