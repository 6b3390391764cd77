"""Epochs by YOLO's events for TensorBoard, put on the run's clock and beside the rows of results.csv."""

from types import SimpleNamespace

import pytest

from gpu_report.load.yolo.logged_epochs import LoggedEpoch, logged_epochs, rows_of, train_start, with_logged
from gpu_report.model import EpochRow

CLOCK = SimpleNamespace(t=lambda wall_s, mono_s: wall_s)


def event(at_s, part, epoch=None, training=1, **more):
    return {"wall_s": at_s, "mono_s": None, "training": training, "part": part, "epoch": epoch, **more}


EVENTS = [
    event(10.0, "start"),
    *(event(10.0 + 20 * n + 15, "train", n + 1) for n in range(3)),
    *(event(10.0 + 20 * n + 20, "epoch", n + 1, metrics={"a": 1.5, "b": "x", "c": None}) for n in range(3)),
]


def test_each_epoch_begins_where_the_one_before_ended():
    found = logged_epochs(EVENTS, CLOCK)
    assert [(e.epoch, e.start_t_s, e.trained_t_s, e.ended_t_s) for e in found] == [
        (1, 10, 25, 30),
        (2, 30, 45, 50),
        (3, 50, 65, 70),
    ]
    assert found[0].metrics == {"a": 1.5}
    first, *_ = rows_of(1, found)
    assert (first.start_t_s, first.trained_t_s, first.row_t_s) == (10, 25, 30)


def test_an_epoch_without_a_beginning_has_no_more_than_its_rest():
    (row,) = rows_of(1, logged_epochs([event(25.0, "train", 1), event(30.0, "epoch", 1)], CLOCK))
    assert (row.start_t_s, row.trained_t_s, row.row_t_s) == (25, 25, 30)


@pytest.mark.parametrize(
    "broken",
    [
        event(1.0, "train", None),
        event(1.0, "epoch", -1),
        event(1.0, "epoch", "x"),
        event(1.0, "epoch", 10**9),
        event(1.0, "else", 1),
        event(1.0, ["train"], 1),
        {"wall_s": 1.0, "part": "epoch", "epoch": 1},
        event(1.0, "epoch", 1, training="x"),
    ],
)
def test_broken_events_are_no_epoch(broken):
    assert logged_epochs([broken], CLOCK) == []


def test_the_start_of_training_is_where_all_rows_lie_between_train_part_and_end():
    found = logged_epochs(EVENTS, CLOCK)
    times = {1: 19.0, 2: 39.0, 3: 58.5}  # rows 1.0, 1.0 and 1.5 s before the checkpoints' ends, from 10 s on
    assert train_start(times, found) == 11.0
    assert train_start({1: 19.0, 2: 59.0}, found) is None  # of another training
    assert train_start({9: 19.0}, found) is None
    assert train_start({}, []) is None


def test_rows_get_the_edges_of_the_epoch_that_they_lie_in_and_no_other():
    found = logged_epochs(EVENTS, CLOCK)
    rows = [EpochRow(1, 1, 1, 29.0, 10.0), EpochRow(1, 1, 2, 500.0, 480.0)]
    near, far = with_logged(rows, found)
    assert (near.trained_t_s, near.saved_t_s) == (25, 30)
    assert (far.trained_t_s, far.saved_t_s) == (None, None)


def test_edges_never_cross_their_row():
    logged = [LoggedEpoch(1, 1, 10.0, 30.5, 30.9, {})]
    (row,) = with_logged([EpochRow(1, 1, 1, 30.0, 10.0)], logged)
    assert row.start_t_s <= row.trained_t_s <= row.row_t_s <= row.saved_t_s
