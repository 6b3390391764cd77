"""What a rank that the others wait for costs each epoch."""

import dataclasses

import pytest
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.advice.waits_for_ranks import waited_for
from gpu_report.analyse.build_context import build_context
from gpu_report.model import Cause, Finding, InsideEpoch, InsideRun, JobPart, Options, Phase

EPOCHS, EPOCH_S, TRAIN_S, START_S = 6, 60.0, 58.0, 10.0
WORKS = (80, 20), (80, 15), (80, 25)
WAITS = (80, 20), (100, 15), (80, 25)  # utilisation of an epoch: for 15 s of it the GPU spins at the power of rest
WATTS = [90.0] * 10 + ([500.0] * 20 + [121.0] * 15 + [500.0] * 25) * EPOCHS


def run_of(*gpus):
    """Return a training by callbacks on several GPUs, each with its parts of every epoch."""
    util = [readings((0, START_S), *[part for _ in range(EPOCHS) for part in parts]) for parts in gpus]
    starts = [(epoch, START_S + EPOCH_S * (epoch - 1)) for epoch in range(1, EPOCHS + 1)]
    phases = [
        phase
        for epoch, at in starts
        for phase in (
            Phase("train", epoch, at, at + TRAIN_S, "inside"),
            Phase("validation", epoch, at + TRAIN_S, at + EPOCH_S, "inside"),
        )
    ]
    epochs = [InsideEpoch(n, 1, at, at + TRAIN_S, 1000, 100, 0.1, 0.1, 0.1, 1.0, 0.01) for n, at in starts]
    inside = InsideRun(1, 0, 1, "train", {"world_size": len(gpus)}, tuple(phases), tuple(epochs))
    return dataclasses.replace(make_run(util, quantities={"power_w": WATTS}), inside=(inside,))


def saved_s(run):
    return [each.saves_at_most_s for each in analyse(run).speedup_limits if each.cause == "waiting-for-peer"]


def test_waits_of_each_epoch_have_a_limit():
    assert saved_s(run_of(WAITS, WORKS)) == [pytest.approx(15, abs=0.5)]


def test_while_a_second_gpu_works_too_no_time_is_won():
    """The third waits for the first 5 of the 15 s only."""
    third = (80, 20), (100, 5), (80, 35)
    assert saved_s(run_of(WAITS, WORKS, WAITS)) == [pytest.approx(15, abs=0.5)]
    found = waited_by(run_of(WAITS, WORKS, third))
    assert sum(end - start for start, end in found["waiting-for-peer"]) == 0  # a wait of 5 s is none


def waited_by(run, *more):
    context = build_context(run, Options())
    took = [f for f in analyse(run).findings if f.rule == "waiting-for-peer"]
    return waited_for(context, context.trainings[0], [*(each for f in took for each in f.each), *more])


def test_what_made_the_rank_late_has_its_waits():
    late = Finding("", "slow-rank", "warning", 1, 90.0, 105.0, "was late", cause=Cause("cpu-limit", "likely", "cores"))
    found = waited_by(run_of(WAITS, WORKS), late)
    assert found["cpu-limit"] == [(90.0, 105.0)]
    assert sum(end - start for start, end in found["waiting-for-peer"]) == pytest.approx(15 * (EPOCHS - 1), abs=3)


def test_of_several_nodes_all_gpus_of_this_one_have_to_wait():
    part = JobPart(nodes=2, world_size=4, node_rank=0)
    for gpus, seconds in (((WAITS, WORKS), 0), ((WAITS, WAITS), 15 * EPOCHS)):
        found = waited_by(dataclasses.replace(run_of(*gpus), job=part))
        assert sum(end - start for start, end in found["waiting-for-peer"]) == pytest.approx(seconds, abs=3)


@pytest.mark.parametrize("late", [WORKS, ((80, 20), (0, 15), (80, 25))], ids=["slower", "stops"])
def test_gaps_are_what_is_idle_beside_the_waits(late):
    """GPU 1 works at 80 % for the other 43 s, and GPU 0 as well: what they wait for has a limit of its own."""
    limits = analyse(run_of(WAITS, late)).speedup_limits
    (gaps,) = [each for each in limits if each.cause == "short gaps"]
    assert gaps.saves_at_most_s == pytest.approx(0.2 * 43, abs=0.5)
    assert sum(each.saves_at_most_s for each in limits) == pytest.approx(15 + 0.2 * 43, abs=1)
