"""How fast a training went within its epochs."""

import dataclasses

import numpy as np
import pytest
from support.runs import make_run, readings

from gpu_report.analyse.timeline.throughput import STRETCH_BATCHES, Throughput, throughput_by_gpu, throughput_of
from gpu_report.model import Gpu, InsideEpoch, InsideRun, Phase, Progress

EPOCHS = (InsideEpoch(1, 1, 10.0, 30.0, 1000, 100, 0.0, 0.0, 0.0), InsideEpoch(2, 1, 40.0, 60.0, 1000, 100, 0, 0, 0))
PHASES = (Phase("train", 1, 10.0, 30.0, "inside"), Phase("validation", 1, 30.0, 40.0, "inside"))


def run_of(*progress, rank=0, epochs=EPOCHS):
    told = tuple(Progress(t_s, done, 0.0) for t_s, done in progress)
    inside = InsideRun(1, rank, 41, "train", {}, PHASES, epochs, progress=told)
    return dataclasses.replace(make_run(readings((0, 10), (90, 60))), inside=(inside,))


def test_between_two_moments_that_were_told_the_pace_is_even():
    throughput = throughput_of(run_of((20.0, 80)))
    assert throughput.images_per_s([(10.0, 20.0)]) == pytest.approx(80)  # 80 batches of 10 images in 10 s
    assert throughput.images_per_s([(20.0, 30.0)]) == pytest.approx(20)
    assert throughput.images_per_s([(15.0, 25.0)]) == pytest.approx(50)


def test_only_seconds_of_training_count():
    throughput = throughput_of(run_of())
    assert throughput.images_per_s([(20.0, 50.0)]) == pytest.approx(50)  # the ten seconds of validation are none
    assert throughput.images_per_s([(12.0, 14.0), (50.0, 52.0)]) == pytest.approx(50)
    assert throughput.images_per_s([(31.0, 39.0)]) is None


def test_the_end_of_an_epoch_whose_last_batch_was_broken_off_is_no_part_of_its_steps():
    cut = (dataclasses.replace(EPOCHS[0], batches=2, images=20),)  # `time=` leaves the loop before the batch's callback
    throughput = throughput_of(run_of((15.0, 1), (20.0, 2), epochs=cut))
    assert throughput.batches_per_s([(10.0, 30.0)]) == pytest.approx(1 / 5)
    assert throughput.batches_per_s([(15.0, 30.0)]) == pytest.approx(1 / 5)
    assert throughput.batches_per_s([(22.0, 30.0)]) is None
    assert throughput.images_per_s([(10.0, 30.0)]) == pytest.approx(1)


def test_a_count_beyond_the_epochs_own_is_not_believed():
    assert throughput_of(run_of((20.0, 5000))).images_per_s([(10.0, 20.0)]) == pytest.approx(50)


@pytest.mark.parametrize("run", [make_run(readings((90, 60))), run_of(rank=1), run_of(epochs=())])
def test_where_nothing_was_told_there_is_no_pace(run):
    assert throughput_of(run) is None


def test_the_wait_for_data_is_told_likewise():
    waiting = tuple(dataclasses.replace(epoch, data_wait_s=10.0) for epoch in EPOCHS)
    throughput = throughput_of(run_of(epochs=waiting))
    assert throughput.data_wait_share([(10.0, 30.0)]) == pytest.approx(0.5)
    assert throughput.data_wait_share([(20.0, 50.0)]) == pytest.approx(0.5)
    assert throughput.data_wait_share([(31.0, 39.0)]) is None


def test_a_wait_that_lies_in_a_stretch_is_told_once_it_is_over():
    run = run_of()
    (inside,) = run.inside
    told = (Progress(13.0, 10, 0.0), Progress(26.0, 20, 9.0))
    waited = (dataclasses.replace(EPOCHS[0], data_wait_s=9.0), EPOCHS[1])
    throughput = throughput_of(
        dataclasses.replace(run, inside=(dataclasses.replace(inside, progress=told, epochs=waited),))
    )
    assert throughput.data_wait_s((15.0, 24.0)) == 9.0  # whole, though the stretch is a part of what was told at once
    assert throughput.data_wait_s((27.0, 29.0)) == 0.0
    assert throughput.data_wait_s((0.0, 500.0)) == 9.0
    some, all_of_it = (
        throughput.without([((15.0, 24.0), 6.0)]),
        throughput.without([((15.0, 24.0), 6.0), ((16.0, 20.0), 60.0)]),
    )
    assert (some.data_wait_s((0.0, 500.0)), all_of_it.data_wait_s((0.0, 500.0))) == pytest.approx((3.0, 0.0))
    assert throughput.without([((27.0, 29.0), 5.0)]).data_wait_s((0.0, 500.0)) == 9.0


def test_each_training_has_batches_of_its_own_size():
    run = run_of()
    (one,) = run.inside
    later = tuple(
        dataclasses.replace(e, start_t_s=e.start_t_s + 50, end_t_s=e.end_t_s + 50, images=4000) for e in EPOCHS
    )
    throughput = throughput_of(dataclasses.replace(run, inside=(one, dataclasses.replace(one, epochs=later))))
    assert throughput.images_per_s([(10.0, 30.0)]) == pytest.approx(50)
    assert throughput.images_per_s([(60.0, 80.0)]) == pytest.approx(200)


def test_two_trainings_at_once_have_no_common_pace():
    run = run_of()
    (one,) = run.inside
    beside = tuple(dataclasses.replace(e, start_t_s=e.start_t_s + 5, end_t_s=e.end_t_s + 5) for e in EPOCHS)
    assert throughput_of(dataclasses.replace(run, inside=(one, dataclasses.replace(one, epochs=beside)))) is None
    later = tuple(dataclasses.replace(e, start_t_s=e.start_t_s + 50, end_t_s=e.end_t_s + 50) for e in EPOCHS)
    assert throughput_of(dataclasses.replace(run, inside=(one, dataclasses.replace(one, epochs=later)))) is not None


def rank(number, wait_s, epochs=2):
    told = tuple(dataclasses.replace(epoch, data_wait_s=wait_s) for epoch in EPOCHS[:epochs])
    return InsideRun(1, number, 41 + number, "train", {"gpu_uuid": f"GPU-{number}"}, PHASES, told)


def of_two(*ranks):
    gpus = (Gpu(0, uuid="GPU-0"), Gpu(1, uuid="GPU-1"))
    return dataclasses.replace(make_run(readings((0, 10), (90, 60))), inside=ranks, gpus=gpus)


def test_of_several_ranks_the_one_that_waits_longest_decides_and_each_gpu_has_its_own():
    run = of_two(rank(0, 0.0), rank(1, 10.0))
    assert throughput_of(run).data_wait_share([(10.0, 30.0)]) == pytest.approx(0.5)
    by_gpu = throughput_by_gpu(run)
    assert [by_gpu[gpu].data_wait_share([(10.0, 30.0)]) for gpu in (0, 1)] == pytest.approx([0.0, 0.5])
    assert throughput_by_gpu(of_two(rank(0, 1.0))) == {}


def test_a_rank_of_which_the_middle_is_not_kept_decides_nothing():
    assert throughput_of(of_two(rank(0, 1.0), rank(1, 10.0, epochs=1))).data_wait_share([(10.0, 30.0)]) == 0.05


RUNNING = InsideEpoch(1, 1, 10.0, None, None, 1, 2.0, 2.0, 2.0)  # as reported after its first batch


def test_an_epoch_that_goes_on_counts_to_its_last_report():
    run = run_of((15.0, 10), (20.0, 40), epochs=(RUNNING,))
    (inside,) = run.inside
    run = dataclasses.replace(run, inside=(dataclasses.replace(inside, settings={"batch": 16}),))
    throughput = throughput_of(run)
    assert throughput.batches_per_s([(15.0, 20.0)]) == pytest.approx(6)
    assert throughput.images_per_s([(15.0, 20.0)]) == pytest.approx(96)
    assert throughput.batches_per_s([(21.0, 30.0)]) is None


def test_what_an_exception_reported_in_the_end_is_left_out():
    run = run_of((15.0, 10), (20.0, 11), epochs=(RUNNING,))  # it waited from 15.5 s on, which nobody reported
    (inside,) = run.inside
    inside = dataclasses.replace(inside, settings={"batch": 16}, ended="exception")
    assert throughput_of(dataclasses.replace(run, inside=(inside,))).t_s.tolist() == [10.0, 15.0]


def test_the_pace_of_a_batch_is_that_of_the_fastest_stretch():
    """An epoch's last batch of another size took 8 s (H100): the mean of 28 was 0.46 s, and they took 0.18 s each."""
    at, done = np.array([0.0, 15.8, 18.9, 28.6]), np.array([0.0, 1.0, 18.0, 29.0])
    throughput = Throughput(at, done, 32 * done, at, np.zeros(4))
    assert throughput.least_batch_s([(16.0, 28.0)]) == pytest.approx(3.1 / 17)
    assert throughput.least_batch_s([(20.0, 28.0)]) == pytest.approx(9.7 / 11)
    assert throughput.least_batch_s([(1.0, 15.0)]) is None  # of one batch
    assert throughput.least_batch_s([]) is None


def test_the_fastest_stretch_is_of_those_that_spans_touch():
    at_random = np.random.default_rng(2)
    at, done = np.cumsum(at_random.integers(0, 4, 60)).astype(float), np.cumsum(at_random.integers(0, 40, 60))
    trained = np.cumsum(at_random.random(60))
    throughput = Throughput(at, done.astype(float), 32.0 * done, trained, np.zeros(60))
    for start in range(-5, 130, 3):
        for spans in ([(start, start + 2.5)], [(start, start + 1.0), (start + 6.0, start + 7.0)]):
            touched = [
                (trained[n + 1] - trained[n]) / (done[n + 1] - done[n])
                for n in range(59)
                if done[n + 1] - done[n] >= STRETCH_BATCHES and any(max(a, at[n]) < min(b, at[n + 1]) for a, b in spans)
            ]
            assert throughput.least_batch_s(spans) == (min(touched) if touched else None)


@pytest.mark.parametrize(
    ("reported", "warm_s"),
    [
        (((14.0, 1), (18.0, 2), (22.0, 4), (24.0, 24), (26.0, 44), (28.0, 64)), 22.0),  # each new size is tuned for
        (((14.0, 20), (18.0, 40), (22.0, 60), (26.0, 80)), 10.0),
        (((14.0, 20), (18.0, 21), (22.0, 41), (26.0, 61)), 10.0),  # slow in the middle: that is no warming up
        (((28.0, 90),), 10.0),  # too few reports to tell
        ((), 10.0),
    ],
)
def test_a_first_epoch_is_warm_once_its_batches_take_what_most_of_them_take(reported, warm_s):
    assert throughput_of(run_of(*reported)).warm_at_s((10.0, 30.0)) == warm_s


def test_waiting_for_the_first_data_is_no_warming_up():
    waits = ((14.0, 1, 3.8), (18.0, 21, 3.8), (22.0, 41, 3.8), (26.0, 61, 3.8))
    told = tuple(Progress(t_s, done, waited_s) for t_s, done, waited_s in waits)
    inside = InsideRun(1, 0, 41, "train", {}, PHASES, EPOCHS[:1], progress=told)
    run = dataclasses.replace(make_run(readings((0, 10), (90, 60))), inside=(inside,))
    assert throughput_of(run).warm_at_s((10.0, 30.0)) == 10.0
