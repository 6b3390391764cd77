"""Which drops are the way of a training whose batches come in bursts, and which are events."""

import numpy as np
import pytest

from gpu_report.analyse.signals.gpu.utilisation_drops import Drop
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.loader_bursts import drops_between_bursts
from gpu_report.analyse.signals.signal_table import NO_SIGNALS, SignalTable
from gpu_report.analyse.timeline.training_epochs import TrainingEpoch, TrainingEpochs
from gpu_report.analyse.timeline.trainings import Training

HOUR_S = 3600
USUAL = {"workers_cpu_pct": 390.0, "main_cpu_pct": 80.0, "cpu_pct": 40.0}
WAITS = {"workers_cpu_pct": 395.0, "main_cpu_pct": 20.0, "cpu_pct": 38.0}


class Signals:
    """Signals of a host that is as `now` in drops and as USUAL outside them."""

    def __init__(self, drops, now, waited):
        self.t_s = np.arange(1.0, HOUR_S + 1)
        within = np.any([(self.t_s > d.start_t_s) & (self.t_s <= d.end_t_s) for d in drops], axis=0)
        self.columns = {name: np.where(within, now[name], usual) for name, usual in USUAL.items()}
        self.steady, self.waited = ~within, waited

    def of(self, gpu, start_s, end_s):
        host = SignalTable(self.t_s, self.columns, self.steady)
        return IntervalSignals(gpu, start_s, end_s, host, NO_SIGNALS, cores=16, data_wait_share=self.waited)


def training():
    epochs = TrainingEpoch(1, ((100.0, 1700.0),)), TrainingEpoch(2, ((1900.0, 3500.0),))
    return Training(1, (0.0, float(HOUR_S)), epochs=TrainingEpochs(epochs), gpus=frozenset({0}))


def every(period_s, length_s, begin_s=100.0):
    starts = np.arange(begin_s, 3500.0 - length_s, period_s)
    trains = (starts + length_s <= 1700.0) | (starts >= 1900.0)
    return [Drop(0, start, start + length_s, 80.0, 2.0, sustained=False) for start in starts[trains].tolist()]


@pytest.mark.parametrize(
    ("drops", "now", "waited", "are_bursts"),
    [
        (every(40, 15), {}, 0.9, True),
        (every(40, 15), {}, None, True),  # nobody reported it: the main process left its core
        (every(40, 15), {"workers_cpu_pct": 40.0}, 0.9, False),  # workers stood still, or others had the disk
        (every(40, 15), {"cpu_pct": 95.0}, 0.9, False),  # another program came
        (every(40, 15), {"main_cpu_pct": 100.0}, 0.9, False),
        (every(40, 15), {}, 0.1, False),  # in a callback, while the workers fill their queue
        (every(600, 39), {}, 0.9, False),  # now and then
        (every(40, 15, begin_s=2000.0), {}, 0.9, False),  # since then: something happened
        (every(1000, 300), {}, 0.9, False),  # four
    ],
)
def test_drops_between_bursts_recur_all_along_and_change_nothing_on_the_host(drops, now, waited, are_bursts):
    found = drops_between_bursts(drops, [training()], Signals(drops, {**WAITS, **now}, waited))
    assert found == (set(drops) if are_bursts else set())


def test_a_longer_stall_between_them_stays_a_drop():
    bursts, stall = every(40, 15), Drop(0, 1800.0, 1830.0, 80.0, 2.0, sustained=False)
    assert drops_between_bursts([*bursts, stall], [training()], Signals(bursts, WAITS, 0.9)) == set(bursts)
