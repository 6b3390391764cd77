"""Played trainings: their timetable, their readings, and that the loader takes them for a recording without a fault."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from support.played_folder import write_played
from support.played_training import Played, Stall, play

from gpu_report.load import load_run

SHORT = Played(epochs=3, train_s=20, validation_s=5, checkpoint_s=1)


def test_parts_follow_each_other_and_epochs_lie_in_them():
    training = play(SHORT)
    assert all(one.end_s == other.start_s for one, other in pairwise(training.parts))
    assert training.seconds_of("checkpoint") == pytest.approx(3)
    assert [epoch.validation_s for epoch in training.epochs] == [
        part.start_s for part in training.parts if part.name == "validation"
    ]


def test_a_stall_prolongs_the_training_of_its_epoch():
    training, stalled = play(SHORT), play(replace(SHORT, stall=Stall(2, 0.5, 30)))
    assert stalled.duration_s == pytest.approx(training.duration_s + 30)
    start_s, end_s = stalled.stalled
    assert (start_s, end_s) == pytest.approx((stalled.epochs[1].start_s + 10, stalled.epochs[1].start_s + 40), abs=1)
    t_s, util_pct = stalled.ticks.t_s, stalled.ticks.util_pct[0]
    assert util_pct[(t_s >= start_s) & (t_s < end_s)].max() < 5 < util_pct[(t_s >= end_s) & (t_s < end_s + 5)].min()


def test_the_same_parameters_give_the_same_readings_and_another_seed_others():
    one, again, other = (play(Played(epochs=2, seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(one.ticks.util_pct, again.ticks.util_pct)
    assert not np.array_equal(one.ticks.util_pct[:, :100], other.ticks.util_pct[:, :100])


def test_ranks_that_wait_for_the_first_read_full_and_draw_little():
    training = play(Played(epochs=2, gpus=2, peers_spin=True))
    start_s = training.epochs[0].validation_s
    rows = (training.ticks.t_s > start_s) & (training.ticks.t_s < training.epochs[0].row_s)
    assert training.ticks.util_pct[1][rows].min() == 100 > training.ticks.util_pct[0][rows].max()
    assert training.power_w[rows, 1].max() < 0.5 * training.played.train_w


@pytest.mark.parametrize("everything", [False, True])
def test_the_loader_finds_nothing_wrong(tmp_path, everything):
    optional = dict.fromkeys(("ring", "inside", "gpm", "host", "processes"), everything)
    played = Played(epochs=2, gpus=2, interval_s=2.0, **optional)
    training = write_played(tmp_path / "run", played)
    run = load_run(tmp_path / "run")
    assert run.problems == ()
    assert run.duration_s == pytest.approx(training.duration_s, abs=0.1)
    assert [row.row_t_s for row in run.epoch_rows] == pytest.approx([e.row_s for e in training.epochs], abs=0.1)
    assert len(run.samples) == 2 * len(training.ticks.t_s)
    assert (len(run.ring) > 0, len(run.host) > 0, len(run.inside) > 0) == (everything, everything, everything)
    assert run.samples["sm_active_pct"].notna().any() == everything


def test_utilisation_that_cannot_be_read_is_missing(tmp_path):
    write_played(tmp_path / "run", Played(epochs=2, has_utilisation=False))
    assert load_run(tmp_path / "run").samples["gpu_util_pct"].isna().all()
