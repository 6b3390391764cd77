"""What counts as ordinary training."""

import pytest

from gpu_report.analyse.timeline.activity import Activity
from gpu_report.analyse.timeline.epoch_ends import EpochEnd, EpochEnds
from gpu_report.analyse.timeline.steady_state import is_settled, steady_phases, steady_spans, undisturbed_epochs
from gpu_report.analyse.timeseries.interval_cover import interval_cover
from gpu_report.model import FROM_CALLBACKS, EpochRow, Phase

NO_SIGNALS = Activity((), (), frozenset({0}))


def phases(length_s, count=3):
    return [Phase("train", n + 1, n * 30.0, n * 30.0 + length_s, FROM_CALLBACKS) for n in range(count)]


FIRST = EpochEnds((EpochEnd(EpochRow(1, 1, 1, 25.0, 0.0), first=True),))


def test_the_first_epoch_of_a_process_is_not_ordinary_where_others_are_enough():
    assert [phase.epoch for phase in steady_phases(phases(20.0), FIRST)] == [2, 3]
    assert [phase.epoch for phase in steady_phases(phases(4.0), FIRST)] == [1, 2, 3]


def test_an_epoch_that_something_touched_is_not_whole():
    none_first = EpochEnds(())
    assert undisturbed_epochs(phases(20.0), none_first, [(45.0, 48.0)], 1.0) == ((0.0, 20.0), (60.0, 80.0))
    assert undisturbed_epochs(phases(20.0), none_first, [(49.5, 52.0)], 1.0) == (
        (0.0, 20.0),
        (30.0, 50.0),
        (60.0, 80.0),
    )


def test_of_a_first_epoch_only_what_comes_after_warming_up_counts():
    assert undisturbed_epochs(phases(20.0), FIRST, [], 1.0) == ((30.0, 50.0), (60.0, 80.0))
    hours = [Phase("train", 1, 0.0, 7200.0, FROM_CALLBACKS)]
    assert undisturbed_epochs(hours, FIRST, [], 1.0) == ((20.0, 7195.0),)
    assert undisturbed_epochs(phases(4.0), FIRST, [], 0.2) == ((30.0, 34.0), (60.0, 64.0))  # readings enough


def test_the_last_batch_of_an_only_short_epoch_is_left_out_for_a_share_of_it():
    """It is of another size, and its kernels are chosen anew; seen from outside its end is not known so well."""
    only = [Phase("train", 1, 0.0, 14.0, FROM_CALLBACKS)]
    assert undisturbed_epochs(only, FIRST, [], 0.2) == ((pytest.approx(4.2), pytest.approx(9.8)),)
    outside = [Phase("train", 1, 0.0, 14.0, "")]
    assert undisturbed_epochs(outside, FIRST, [], 0.2) == ((pytest.approx(4.2), pytest.approx(9.0)),)


def test_of_epochs_of_hours_what_lies_between_disturbances_counts():
    hours, none_first = [Phase("train", 1, 0.0, 7200.0, FROM_CALLBACKS)], EpochEnds(())
    stalls = [(1000.0, 1020.0), (5000.0, 5300.0)]
    assert undisturbed_epochs(hours, none_first, stalls, 1.0) == ((0.0, 998.0), (1022.0, 4998.0), (5302.0, 7200.0))
    assert undisturbed_epochs(hours, none_first, [(3.0, 7195.0)], 1.0) == ()


@pytest.mark.parametrize(
    ("seconds", "reading_s", "settled"),
    [(5.0, 0.2, True), (4.9, 0.2, False), (9.0, 1.0, False), (10.0, 1.0, True), (10.0, 5.0, True), (7.0, 0.7, True)],
)
def test_a_training_has_settled_once_there_are_readings_enough(seconds, reading_s, settled):
    assert is_settled(seconds, reading_s) == settled


def test_an_epoch_number_is_first_in_its_own_process_only():
    """Epoch 5 is the first of a resumed process, and not of the training before it in another run."""
    rows = [(1, 1, 4, 40.0), (1, 1, 5, 50.0), (2, 1, 5, 150.0), (2, 1, 6, 160.0)]
    ends = [EpochRow(run, segment, epoch, at, at - 10.0) for run, segment, epoch, at in rows]
    found = EpochEnds(tuple(EpochEnd(row, first=row.row_t_s == 150.0) for row in ends))
    assert [found.is_in_first(t_s) for t_s in (39.0, 45.0, 140.0, 149.9, 150.0)] == [False, False, True, True, False]
    closed = found.with_mosaic({1: 5, 2: None}).all
    assert [each.closing for each in closed] == [False, True, False, False]
    assert [each.without_mosaic for each in closed] == [False, True, False, False]


def test_a_stretch_is_disturbed_by_more_than_a_second_in_all():
    held_up = interval_cover([(10.0, 10.6), (10.3, 11.0), (20.0, 20.3)])
    assert held_up.seconds_in((0.0, 100.0)) == pytest.approx(1.3)
    assert held_up.seconds_in_each([(0.0, 15.0), (10.5, 20.1), (30.0, 40.0)]).tolist() == pytest.approx([1.0, 0.6, 0.0])
    assert [held_up.touches(span) for span in ((0.0, 15.0), (0.0, 100.0), (30.0, 40.0))] == [False, True, False]
    assert not interval_cover([]).touches((0.0, 10.0))


def test_calm_is_what_lies_away_from_edges_and_disturbances():
    assert steady_spans(phases(20.0, 2), NO_SIGNALS, 100.0, [(40.0, 42.0)]) == ((1.0, 19.0), (31.0, 38.0), (44.0, 49.0))
    resting = Activity(((0.0, 10.0),), ((90.0, 100.0),), frozenset({0}))
    assert steady_spans([], resting, 100.0, []) == ((12.0, 88.0),)
