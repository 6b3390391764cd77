"""The levels of training and validation, found around rows of which only the order of the parts is known."""

import numpy as np
import pytest

from gpu_report.analyse.timeline.epoch_end_fit import CLEARER, _leave_no_training, _lengths
from gpu_report.analyse.timeline.epoch_levels import GpuSignal, find_levels

EPOCHS = 20


def found(
    train_s,
    validation_s,
    *,
    checkpoint_s=0.5,
    train=90.0,
    validation=40.0,
    interval_s=1.0,
    noise=4.0,
    spread=0.0,
    stall=None,
):
    """Return what is found of epochs like these, and the seconds of an epoch."""
    random = np.random.default_rng(0)
    lengths = [
        (checkpoint_s, train_s, max(validation_s * (1 + spread * random.standard_normal()), 0.1)) for _ in range(EPOCHS)
    ]
    edges = np.cumsum([0.0, *(part for epoch in lengths for part in epoch)])
    rows = edges[3::3]
    t_s = np.arange(0, edges[-1], interval_s)
    values = np.array([0.0, train, validation])[(np.searchsorted(edges, t_s, side="right") - 1) % 3]
    values = np.clip(values + noise * random.standard_normal(len(t_s)), 0, 100)
    if stall:
        values[(t_s > stall[0]) & (t_s < stall[1])] = 1.0
    signal = GpuSignal.of(0, t_s, values, is_utilisation=True)
    starts = np.concatenate([[0.0], rows[:-1]])
    return find_levels(starts, rows, [signal], _lengths(float(np.median(rows - starts))))


@pytest.mark.parametrize(("train", "validation"), [(90.0, 40.0), (30.0, 80.0), (60.0, 75.0)])
@pytest.mark.parametrize(("train_s", "validation_s"), [(60.0, 6.0), (60.0, 60.0), (20.0, 80.0)])
def test_a_validation_is_found_busier_or_less_and_of_any_length(train_s, validation_s, train, validation):
    seen = found(train_s, validation_s, train=train, validation=validation)
    assert seen.validation_s == pytest.approx(validation_s, rel=0.1)
    (levels,) = seen.levels
    assert (levels.train, levels.validation) == pytest.approx((train, validation), abs=4)
    assert levels.separation > 2
    assert not seen.at_most


@pytest.mark.parametrize("slower", [0, 3])
def test_a_short_validation_of_a_long_epoch_is_found_and_clear_where_some_epochs_are_slower(slower):
    """Three of seven epochs take half as long again and are less busy: their training waits for something."""
    random, edges = np.random.default_rng(0), [0.0]
    for epoch in range(7):
        train_s = 1200.0 * (1.5 if epoch >= 7 - slower else 1.0) * (1 + 0.004 * random.standard_normal())
        edges += np.cumsum([edges[-1] + 2.0, train_s, 45.0]).tolist()
    t_s = np.arange(0, edges[-1])
    part = np.searchsorted(edges, t_s, side="right") - 1
    train = np.where(part // 3 >= 7 - slower, 63.0, 94.0)
    values = np.select([part % 3 == 0, part % 3 == 1], [0.0, train], 55.0)
    signal = GpuSignal.of(0, t_s, values + 4.0 * random.standard_normal(len(t_s)), is_utilisation=True)
    rows = np.array(edges[3::3])
    seen = find_levels(np.array(edges[:-1:3]), rows, [signal], _lengths(1250.0))
    assert seen.validation_s == pytest.approx(45.0, rel=0.1)
    assert seen.clearer > CLEARER


def test_lengths_that_vary_by_a_third_are_found_all_the_same():
    assert found(60.0, 60.0, spread=0.3).validation_s == pytest.approx(60.0, rel=0.15)


def test_a_stall_in_one_epoch_is_not_the_validation_of_all():
    assert found(60.0, 6.0, stall=(200.0, 240.0)).validation_s == pytest.approx(6.0, rel=0.15)


def test_a_checkpoint_of_some_seconds_is_no_part_of_training():
    seen = found(60.0, 10.0, checkpoint_s=8.0, interval_s=0.5)
    assert (seen.checkpoint_s, seen.validation_s) == pytest.approx((8.0, 10.0), rel=0.1)


def test_what_reads_the_same_is_not_told_apart():
    (levels,) = found(60.0, 20.0, train=80.0, validation=80.0, checkpoint_s=0.1).levels
    assert not levels.separation > 2


def test_a_validation_as_long_as_can_be_is_said_to_be():
    assert found(4.0, 60.0).at_most


def test_readings_further_apart_than_a_third_of_an_epoch_do_not_see_it():
    signal = GpuSignal.of(0, np.arange(0.0, 100.0, 5.0), np.zeros(20))
    assert signal.sees(15.0)
    assert not signal.sees(14.0)


@pytest.mark.filterwarnings("error")
def test_an_epoch_of_no_length_says_nothing_of_how_much_the_others_train():
    """Two rows of one moment, in a broken results.csv."""
    lengths = np.array([10.0] * 6 + [0.0] * 7)
    assert _leave_no_training(lengths, np.array([9.9] * 6 + [0.5] * 7))
    assert not _leave_no_training(lengths, np.array([5.0] * 6 + [0.5] * 7))
