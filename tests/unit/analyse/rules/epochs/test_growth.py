"""Which function makes epochs longer and longer: the one that the GPU waits for ever longer."""

from types import SimpleNamespace

import numpy as np
import pytest
from support.runs import make_run

from gpu_report.analyse.rules.epochs.comparable_epochs import TrainedEpoch
from gpu_report.analyse.rules.epochs.growth import advice_on_growth
from gpu_report.analyse.timeseries.trend import Trend
from gpu_report.model import Frame

LOG, FORWARD = Frame("/g/train.py", 53, "log"), Frame("/v/torch/conv.py", 9, "forward")
EPOCHS = [TrainedEpoch((1, 1, True), n, (10.0 * n, 10.0 * n + 10), 10.0, 0.0, alike=True) for n in range(6)]
GROWN = Trend(10.0, 14.0, 6)


class Noted:
    """A process that in each epoch was in `log` for so long while the GPU was idle, and in `forward` for 1 s."""

    def __init__(self, log_s, *, waits=False, is_worker=False):
        self.process = SimpleNamespace(is_worker=is_worker)
        self.idle_s, self.waits = np.repeat(np.array(log_s, dtype=float), 2), np.repeat(waits, 12)
        self.idle_s[1::2] = 1.0

    def within(self, spans):
        rows = np.array([2 * int(start / 10) + place for start, _ in spans for place in (0, 1)])
        return rows, np.ones(len(rows))

    @staticmethod
    def by_line(rows, weights):
        return {LOG: float(weights[rows % 2 == 0].sum()), FORWARD: float(weights[rows % 2 == 1].sum())}


def advice(*stacks, grown=GROWN):
    signals = SimpleNamespace(idle_stacks=stacks)
    context = SimpleNamespace(signals=signals, used_series=[], run=make_run([90.0] * 60))
    return advice_on_growth(context, EPOCHS, grown, "Find what grows in the main process")


def test_the_function_that_made_most_of_it_is_named_with_its_seconds():
    text = "Look at `log` (train.py:53): the GPU waited 1.5 s an epoch for it at first, 5.5 s at last"
    noted = advice(Noted([1, 2, 3, 4, 5, 6]))
    assert (noted.text, noted.short) == (text, "Look at `log` (train.py:53)")
    assert advice(Noted([1, 2, 3, 4, 5, 6], is_worker=True)).text == text


@pytest.mark.parametrize(
    "stacks", [(), (Noted([3.0] * 6),), (Noted([1, 1.2, 1.4, 1.6, 1.8, 2]),), (Noted([1, 2, 3, 4, 5, 6], waits=True),)]
)
def test_none_is_where_none_grew_as_much_or_the_loader_was_waited_for(stacks):
    assert advice(*stacks).short == "Find what grows in the main process"


def test_what_changed_once_is_looked_for_where_it_changed():
    assert advice(grown=Trend(10.0, 14.0, 6, is_gradual=False)).short == "Find what slowed training"
    since = advice(grown=Trend(10.0, 14.0, 6, is_gradual=False, step=3))
    assert since.short == "Find what slowed training from epoch 3 on"
