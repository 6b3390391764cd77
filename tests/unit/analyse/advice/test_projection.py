"""A fix for a whole training: the epochs that are left, or all, at what an epoch takes with its validation."""

from types import SimpleNamespace

import pytest

from gpu_report.analyse.advice.projection import as_recorded, project
from gpu_report.model import Advice, Ending, Finding, Options, SpeedupLimit, epoch_now_s

NOW = SpeedupLimit("input-cpu", 12.0, 2.0, "", epoch_s_estimate=3.0, fix="workers=8", rest_s=1.5)
OTHER = SpeedupLimit("trainer-blocked", 14.0, 10.0, "", rest_s=1.5)


def projected(*limits, ending=None, price=None, time=None):
    context = SimpleNamespace(options=Options(price_per_hour=price))
    return project(context, SimpleNamespace(gpus=(0, 1), settings={"time": time}, args={}), limits, ending)


def test_an_epoch_is_told_with_its_validation():
    found = projected(NOW)
    assert (found.epoch_s_now, found.epoch_s_expected, found.fix) == (13.5, 4.5, "workers=8")
    assert (found.seconds, found.money) == (None, None)


def test_all_limits_are_compared_with_one_epoch():
    assert epoch_now_s((NOW, OTHER)) == 15.5
    found = projected(NOW, OTHER)
    assert (found.epoch_s_now, found.epoch_s_expected) == (15.5, 6.5)
    assert epoch_now_s(()) is None


def test_a_training_that_ends_after_a_time_makes_more_epochs_and_takes_as_long():
    ending = Ending("finished", 100.0, 8, 300)
    assert projected(NOW, ending=ending).epochs == 300
    timed = projected(NOW, ending=ending, time=0.5)
    assert (timed.epochs, timed.seconds, timed.epoch_s_expected) == (None, None, 4.5)


def test_without_an_estimate_there_is_none():
    assert projected(OTHER) is None
    assert projected() is None


@pytest.mark.parametrize(
    ("ending", "epochs", "left"),
    [
        (Ending("finished", 9.0, epoch=100, epochs=100), 100, False),
        (Ending("early stop", 9.0, epoch=30, epochs=100), 30, False),
        (Ending("failed", 9.0, epoch=7, epochs=40), 34, True),  # the seventh is to be done again
        (Ending("unknown", 9.0, epoch=9, epochs=400, whole_epochs=True), 391, True),
        (Ending("unknown", 9.0, epoch=9), None, False),
        (None, None, False),
    ],
)
def test_the_epochs_are_those_left_or_all(ending, epochs, left):
    found = projected(NOW, ending=ending)
    assert (found.epochs, found.left) == (epochs, left)


@pytest.mark.parametrize(("after", "epochs"), [(1, 39), (5, 35), (None, 34)])
def test_epochs_after_the_last_saved_weights_are_left_too(after, epochs):
    resume = Advice("Resume", resume="yolo train resume", resume_after=after)
    ended = Finding("ended-1", "run-ended", "info", None, 9.0, 9.0, "Stopped", advice=(resume,))
    training = SimpleNamespace(gpus=(0,), settings={}, args={})
    ending = Ending("interrupted", 9.0, epoch=7, epochs=40)
    assert project(SimpleNamespace(options=Options()), training, (NOW,), ending, [ended]).epochs == epochs


def test_money_is_that_of_all_gpus():
    found = projected(NOW, ending=Ending("finished", 9.0, epoch=100, epochs=100), price=3.6)
    assert found.seconds == (1350.0, 450.0)
    assert found.money == pytest.approx((2.70, 0.90))


def recorded(*lengths_s):
    """Return the epochs of a training with these lengths."""
    ends = [sum(lengths_s[: n + 1]) for n in range(len(lengths_s))]
    spans = zip([0.0, *ends], ends, strict=False)
    return [SimpleNamespace(run=1, train_s=b - a - 1, start_t_s=a, end_t_s=b) for a, b in spans]


def test_of_a_recorded_training_with_faster_epochs_all_take_what_they_took():
    """Half of them were as fast as the fix makes the others: it saves nothing there."""
    whole = projected(NOW, ending=Ending("finished", 72.0, 8, 8))
    assert whole.seconds == (8 * 13.5, 8 * 4.5)
    assert as_recorded(whole, recorded(*[4.5] * 4, *[13.5] * 4)).seconds == (72.0, 36.0)
    assert as_recorded(whole, recorded(*[13.0] * 8)).seconds == whole.seconds  # alike
    assert as_recorded(whole, recorded(*[4.5] * 4, *[13.5] * 3)).seconds == whole.seconds  # not all were recorded
    assert as_recorded(None, recorded(4.5)) is None
