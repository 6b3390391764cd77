"""When epochs ended, by the scalars of YOLO: also of resumed, repeated and interrupted trainings."""

import math
from pathlib import Path

from support.tensorboard import START_S, yolo_scalars

from gpu_report.tfevents import EventFile, Scalar
from gpu_report.tfevents.yolo_epochs import logged_trainings, moments


def file_of(written, begun_s=START_S, graph_s=None):
    scalars = tuple(Scalar(wall_s, step, tag, value) for tag, value, step, wall_s in written)
    return EventFile(Path("f"), begun_s, graph_s, scalars, ())


def times(training):
    return [(e.epoch, e.trained_wall_s - START_S, e.ended_wall_s and e.ended_wall_s - START_S) for e in training.epochs]


def test_the_train_part_ends_with_the_losses_and_the_epoch_with_the_metrics():
    (training,) = logged_trainings([file_of(yolo_scalars([1, 2], START_S + 20))])
    assert times(training) == [(1, 50, 56), (2, 86, 92)]
    assert training.epochs[1].metrics["train/box_loss"] == 0.5
    assert training.epochs[1].metrics["metrics/mAP50-95(B)"] == 0.2


def test_a_training_begins_with_its_graph_else_with_its_file():
    written = yolo_scalars([1], START_S + 20)
    assert logged_trainings([file_of(written, START_S, START_S + 20)])[0].start_wall_s == START_S + 20
    assert logged_trainings([file_of(written)])[0].start_wall_s == START_S
    assert logged_trainings([file_of(written, START_S + 1e6)])[0].start_wall_s is None


def test_the_final_evaluation_is_no_epoch_at_whichever_step_it_is_written():
    for step in (2, 3):
        written = [*yolo_scalars([1, 2], START_S), ("metrics/mAP50(B)", 0.9, step, START_S + 500)]
        (training,) = logged_trainings([file_of(written)])
        assert times(training) == [(1, 30, 36), (2, 66, 72)]


def test_an_epoch_that_was_interrupted_has_no_end():
    (training,) = logged_trainings([file_of(yolo_scalars([1, 2], START_S)[:-3])])
    assert times(training) == [(1, 30, 36), (2, 66, None)]


def test_steps_that_go_back_are_epochs_that_were_trained_again():
    written = [*yolo_scalars([1, 2, 3], START_S), *yolo_scalars([2, 3], START_S + 108)]
    (training,) = logged_trainings([file_of(written)])
    assert [epoch for epoch, *_ in times(training)] == [1, 2, 3, 2, 3]
    again = logged_trainings([file_of([*yolo_scalars([1], START_S), *yolo_scalars([1], START_S + 36)])])
    assert times(again[0]) == [(1, 30, 36), (1, 66, 72)]


def test_resumed_trainings_are_in_order_of_time_whatever_their_files_are_called():
    late, early = file_of(yolo_scalars([3, 4], START_S + 1000)), file_of(yolo_scalars([1, 2], START_S))
    trainings = logged_trainings([late, early])
    assert [[each.epoch for each in training.epochs] for training in trainings] == [[1, 2], [3, 4]]
    said = [(fields["training"], fields["part"], fields["epoch"]) for _, fields in moments(trainings)]
    assert said[:3] == [(1, "start", None), (1, "train", 1), (1, "epoch", 1)]
    assert said[-1] == (2, "epoch", 4)


def test_losses_that_are_nan_have_a_time_and_no_value():
    written = [(tag, math.nan, step, at) for tag, _, step, at in yolo_scalars([1], START_S)]
    (training,) = logged_trainings([file_of(written)])
    assert times(training) == [(1, 30, 36)]
    assert training.epochs[0].metrics == {}


def test_steps_that_are_no_epoch_are_left_out():
    written = [("train/box_loss", 1.0, step, START_S) for step in (-1, 0, 2**62)]
    assert logged_trainings([file_of(written)]) == []
