"""Parts of epochs that last for long, in which training went slower."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run

from gpu_report.analyse import analyse
from gpu_report.catalogue import SLOW_COST_KEY
from gpu_report.model import InsideEpoch, InsideRun, Phase, Progress, YoloRun

EPOCH_S, VALIDATION_S, STEP_S = 3000, 40, 0.5


def trained(*slow, times=2.0, epochs=3, clock_mhz=None, waits=False):
    """Return a training of a few long epochs, whose steps took `times` as long in the spans `slow` (s).

    By `waits` for data, or not.
    """
    phases, told, progress, t_s = [Phase("startup", None, 0.0, 10.0, "inside")], [], [], 10.0
    for number in range(1, epochs + 1):
        start_s, done, waited_s = t_s, 0.0, 0.0
        while done < EPOCH_S / STEP_S:
            longer = times if any(a <= t_s < b for a, b in slow) else 1.0
            done, waited_s = done + 10 / STEP_S / longer, waited_s + 10 * (1 - 1 / longer) * waits
            t_s += 10
            progress.append(Progress(t_s - 0.001, min(round(done), round(EPOCH_S / STEP_S)), waited_s))
        phases += [Phase("train", number, start_s, t_s, "inside")]
        phases += [Phase("validation", number, t_s, t_s + VALIDATION_S, "inside")]
        told.append(InsideEpoch(number, 1, start_s, t_s, 96_000, round(EPOCH_S / STEP_S), 0.0, 0.0, 0.0))
        t_s += VALIDATION_S
    seconds = np.arange(round(t_s) + 5)
    in_slow = np.any([(seconds >= a) & (seconds < b) for a, b in slow], axis=0) if slow else seconds < 0
    clock = np.where(in_slow, clock_mhz or 1500.0, 1500.0)
    run = make_run(np.where(seconds >= 10, 95.0, 0.0).tolist(), quantities={"sm_clock_mhz": clock.tolist()})
    inside = InsideRun(1, 0, 41, "train", {}, tuple(phases), tuple(told), "finished", progress=tuple(progress))
    return dataclasses.replace(run, inside=(inside,), yolo_runs=(YoloRun(1, None, {}, "recorded", None),))


def test_epochs_of_which_only_the_ends_are_known_have_no_parts():
    run = trained((4000, 5800))
    assert slow_in(dataclasses.replace(run, inside=(dataclasses.replace(run.inside[0], progress=()),))) == []


def slow_in(run):
    return [f for f in analyse(run).findings if f.rule == "slow-epoch"]


def test_half_an_hour_of_a_long_epoch_is_told():
    (found,) = slow_in(trained((4000, 5800)))
    assert found.span == pytest.approx((4000, 5800), abs=130)
    assert found.number(SLOW_COST_KEY) == pytest.approx(900, rel=0.05)


def test_half_an_hour_at_a_lower_clock_is_told_as_that_alone():
    run = trained((4000, 5800), clock_mhz=750.0)
    (found,) = [f for f in analyse(run).findings if f.rule == "lower-clock"]
    assert found.span == pytest.approx((4000, 5800), abs=10)
    assert found.summary == "The SM clock of GPU 0 fell from 1,500 to 750 MHz for 30 min"
    assert slow_in(run) == []


def test_several_such_stretches_are_one_finding():
    (found,) = slow_in(trained((4000, 5000), (6500, 7500), (8000, 9000), epochs=4))
    assert len(found.occurrences) == 3


def test_what_slows_most_of_a_training_is_held_against_what_it_can_do():
    (found,) = slow_in(trained((3500, 14_000)))
    assert found.number(SLOW_COST_KEY) == pytest.approx((found.duration_s - 80) / 2, rel=0.05)


@pytest.mark.parametrize(
    ("slow", "times"),
    [((), 1.0), (((4000, 4200),), 2.0), (((4000, 7000),), 1.15), (((0, 3000),), 2.0)],
    ids=["even", "for minutes", "by a little", "the first epoch, whose images no memory held"],
)
def test_what_is_short_little_or_the_beginning_is_no_event(slow, times):
    assert slow_in(trained(*slow, times=times)) == []


@pytest.mark.parametrize(("waits", "told"), [(True, 1), (False, 0)])
def test_less_is_told_where_it_was_waited_for_data(waits, told):
    found = slow_in(trained((3500, 6000), times=1.18, epochs=3, waits=waits))
    assert len(found) == told
    assert all(each.number(SLOW_COST_KEY) == pytest.approx(2500 * 0.18 / 1.18, rel=0.1) for each in found)
