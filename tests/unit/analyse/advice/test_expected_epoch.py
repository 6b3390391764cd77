"""A fix and what it wins, of a training whose first epoch is not over, or the only one."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.cut_short import cut_short
from support.samples import SAMPLES

from gpu_report.analyse import analyse
from gpu_report.analyse.advice.expected_epoch import expected_epoch
from gpu_report.analyse.timeline.throughput import Throughput
from gpu_report.analyse.timeline.training_epochs import TrainingEpoch, TrainingEpochs
from gpu_report.analyse.timeline.trainings import Training
from gpu_report.load import load_run
from gpu_report.model import EpochSummary

# The epochs of the whole recordings, and those of the same trainings with enough workers: what a part must foretell.
STARVED = (("ab-workers-2", 16.0, 2.9, 30.0), ("ab-workers-2", 16.0, 2.9, 45.0), ("n-starved", 12.1, 2.9, 20.0))


@pytest.mark.parametrize(("name", "now_s", "fixed_s", "seconds"), STARVED)
def test_a_part_of_the_first_epoch_says_what_more_workers_win(name, now_s, fixed_s, seconds, tmp_path):
    found = analyse(load_run(cut_short(SAMPLES / name, tmp_path / name, seconds)))
    (limit,) = found.speedup_limits
    assert limit.cause == "input-cpu"
    assert limit.fix.startswith("workers=")
    assert limit.epoch_s_now == pytest.approx(now_s, rel=0.15)
    assert limit.epoch_s_at_best <= limit.epoch_s_estimate < 2 * fixed_s
    assert found.verdict.sentences[0].text.startswith("Set `workers=")


def test_while_the_first_batches_are_made_nothing_is_foretold(tmp_path):
    assert not analyse(load_run(cut_short(SAMPLES / "ab-workers-2", tmp_path / "early", 20.0))).speedup_limits


@pytest.mark.parametrize(("train_s", "counts"), [(1500.0, True), (100.0, False)])
def test_without_callbacks_a_first_epoch_counts_that_is_long_against_its_warm_up(train_s, counts):
    first = EpochSummary(1, 1, 1, 10.0, 10.0 + train_s, None, None, None, {}, None, None, train_s=train_s)
    seen_from_outside = SimpleNamespace(undisturbed=(), throughput=None)
    assert expected_epoch(seen_from_outside, Training(1, (0.0, 2000.0)), [first]) == (first if counts else None)


@pytest.mark.parametrize(("per_s", "epoch_s"), [(0.25, 4000.0), (0.05, None)])
def test_an_epoch_is_worked_out_by_a_few_batches_and_by_no_fewer(per_s, epoch_s):
    pace = SimpleNamespace(batches_per_s=lambda _: per_s, data_wait_share=lambda _: 0.1)
    training = Training(1, (0.0, 60.0), settings={"batches": 1000})
    found = expected_epoch(SimpleNamespace(undisturbed=[(10.0, 60.0)], throughput=pace), training, [])
    assert (found and found.train_s) == epoch_s


@pytest.mark.parametrize(("first_s", "expected_s"), [(52.0, 52.0), (90.0, 80.0)])
def test_a_first_epoch_that_was_shorter_than_its_end_foretells_is_what_others_take(first_s, expected_s):
    """A warm-up only adds to it; batches that lay in the queue at its start lie there in each."""
    pace = SimpleNamespace(batches_per_s=lambda _: 1.0, data_wait_share=lambda _: 0.3)
    first = EpochSummary(1, 1, 1, 10.0, 10.0 + first_s, None, None, None, {}, None, None, train_s=first_s)
    training = Training(1, (0.0, 100.0), settings={"batches": 80})
    found = expected_epoch(SimpleNamespace(undisturbed=[(30.0, 60.0)], throughput=pace), training, [first])
    assert found.train_s == expected_s


def reported(*points):
    """Return the throughput of these reports: (time, batches done), after a wait of a second for the first batch."""
    t_s, batches = (np.array(column, dtype=float) for column in zip(*points, strict=True))
    return Throughput(t_s, batches, 32 * batches, t_s - t_s[0], np.where(batches > 0, 1.0, 0.0))


SLOW_END = reported((10, 0), (15, 1), (18, 16), (30, 29))  # a step takes 0.2 s, the last one 9.4 s more


@pytest.mark.parametrize(
    ("throughput", "odd_s"),
    [
        (SLOW_END, 9.4),
        (reported((10, 0), (15, 1), (18, 16), (30, 29), (30, 29)), 9.4),  # said twice
        (reported((10, 0), (15, 1), (18, 16), (21, 29)), 0.0),
        (reported((10, 0), (15, 1), (30, 29)), 0.0),  # nothing says how long a step takes
    ],
)
def test_a_last_batch_of_another_size_is_known_by_what_it_took_longer(throughput, odd_s):
    assert throughput.odd_batch_s((15.0, float(throughput.t_s[-1]))) == pytest.approx(odd_s)


@pytest.mark.parametrize(("images", "train_s"), [(900, 5.6), (928, 15.0)])
def test_a_first_epoch_foretells_others_without_what_its_odd_last_batch_took(images, train_s):
    first = EpochSummary(1, 1, 1, 10.0, 31.0, None, None, None, {}, None, None, train_s=15.0)
    phases = TrainingEpochs((TrainingEpoch(1, ((15.0, 30.0),)),))
    settings = {"batches": 29, "batch": 32, "images": images}
    training = Training(1, (0.0, 31.0), epochs=phases, settings=settings)
    found = expected_epoch(SimpleNamespace(undisturbed=[(18.0, 25.0)], throughput=SLOW_END), training, [first])
    assert found.train_s == pytest.approx(train_s)
