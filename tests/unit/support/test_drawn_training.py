"""Drawn trainings keep within what they promise; cheap, for nothing is played."""

from dataclasses import replace

import pytest
from support import drawn_training as draws
from support.played_training import Played

SEEDS = range(300)


@pytest.mark.parametrize("draw", [draws.healthy, draws.starved, draws.stalled])
def test_they_are_long_enough_and_no_longer_than_is_fast(draw):
    for played in map(draw, SEEDS):
        epoch_s = played.train_s + played.validation_s
        assert played.epochs >= min(30, 3600 / epoch_s)
        assert played.epochs * epoch_s / played.interval_s * played.gpus <= 30_000
        assert 2 <= epoch_s <= 7200
        assert 0.05 <= played.validation_s / played.train_s <= 5


def test_a_seed_gives_the_same_training_and_another_one_another():
    assert draws.healthy(1) == draws.healthy(1) != draws.healthy(2)


def test_they_are_as_busy_as_their_kind():
    assert min(played.train_pct for played in map(draws.healthy, SEEDS)) > 60
    assert (
        max(played.train_pct for played in map(draws.starved, SEEDS))
        < 40
        < min(played.train_pct for played in map(draws.stalled, SEEDS))
    )


def test_a_stall_can_be_seen_and_has_training_before_it():
    for played in map(draws.stalled, SEEDS):
        stall, epoch_s = played.stall, played.train_s + played.validation_s
        assert stall.seconds >= max(10, 3 * played.interval_s, 0.03 * played.epochs * epoch_s)
        assert (stall.epoch - 1) * played.train_s >= max(60, 6 * played.interval_s)


SEEN = Played(epochs=50, train_s=10, validation_s=10, train_pct=30, validation_pct=80, interval_s=2.0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, True),
        ({"interval_s": 5.0}, False),
        ({"interval_s": 5.0, "inside": True}, True),
        ({"interval_s": 5.0, "ring": True}, True),
        ({"interval_s": 5.0, "validation_pct": 20}, True),
        ({"interval_s": 60.0, "inside": True}, False),
        ({"epochs": 2}, False),
    ],
)
def test_whether_a_recording_can_show_how_busy_a_training_was(change, told):
    assert draws.is_told(replace(SEEN, **change)) is told
