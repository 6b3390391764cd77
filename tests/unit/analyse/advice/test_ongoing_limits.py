"""What epochs take now: those of the last state, where something changed for good."""

import pytest

from gpu_report.analyse.advice.judged_epochs import JudgedEpoch
from gpu_report.analyse.advice.ongoing_limits import with_ongoing_limits
from gpu_report.analyse.advice.temporary_limits import limits_of_slower_epochs
from gpu_report.catalogue import SLOW_COST_KEY
from gpu_report.model import Cause, EpochSummary, Evidence, Finding

FAST_S, SLOW_S, REST_S, EPOCHS = 100.0, 180.0, 20.0, 20
ALL_OF_THEM = "mean of all epochs, without the first"


def limit_of(*slow):
    """Return the limit of a cause that makes so many epochs slow, in one finding from the first to the last of them."""
    epochs, t_s = [], 0.0
    for number in range(1, EPOCHS + 1):
        train_s = SLOW_S if number in slow else FAST_S
        summary = EpochSummary(
            1, number, 1, t_s, t_s + train_s + REST_S, None, None, None, {}, None, None, train_s=train_s
        )
        epochs.append(JudgedEpoch(summary, train_s))
        t_s += train_s + REST_S
    spans = [epochs[number - 1].span for number in slow]
    cost = Evidence("lost in all", (SLOW_S - FAST_S) * len(slow), "s", key=SLOW_COST_KEY)
    finding = Finding("x-1", "slow-epoch", "warning", None, spans[0][0], spans[-1][1], "slow", evidence=(cost,),
                      cause=Cause("input-cpu", 0.9, "slow"))  # fmt: skip
    found = with_ongoing_limits(
        lambda of: limits_of_slower_epochs(of, [finding], FAST_S), epochs, [finding], ", without the first"
    )
    (limit,) = found
    return limit


def test_epochs_now_are_the_last_ones_where_their_cause_goes_on_to_the_end():
    limit = limit_of(*range(9, EPOCHS + 1))
    assert (limit.epoch_s_now, limit.epoch_s_at_best, limit.rest_s) == (SLOW_S, FAST_S, pytest.approx(REST_S))
    assert (limit.now_is, limit.since, limit.in_epochs) == ("mean of epochs 9 to 20", 9, (9, None))


@pytest.mark.parametrize("slow", [range(9, 15), range(19, 21), range(1, 21)], ids=["over", "two", "all"])
def test_else_epochs_now_are_all_of_them(slow):
    limit = limit_of(*slow)
    assert limit.epoch_s_now == pytest.approx(FAST_S + (SLOW_S - FAST_S) * len(slow) / EPOCHS)
    assert (limit.now_is, limit.since) == (ALL_OF_THEM, None)
