"""A training whose own memory grows until its images are read from disk again."""

import numpy as np
import pytest

from gpu_report.analyse.causes.own_memory import images_evicted
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signal_table import SignalTable

NAN = float("nan")
MEMORY = {"memory_available_mib": (20_000.0, 5_000.0), "trainer_memory_mib": (12_000.0, 26_000.0)}


@pytest.mark.parametrize(
    ("changed", "is_own"),
    [
        ({}, True),
        ({"trainer_memory_mib": (12_000.0, 14_000.0)}, False),  # others took it
        ({"memory_available_mib": (20_000.0, 17_000.0)}, False),
        ({"memory_available_mib": (NAN, NAN)}, False),
        ({"trainer_read_mib_s": (9.0, 9.0)}, False),
        ({"trainer_read_mib_s": (6.0, 9.0)}, True),  # it grew before, too
    ],
)
def test_a_training_whose_memory_grows_leaves_no_room_for_its_images(changed, is_own):
    rows, then = np.arange(40.0), np.arange(40) >= 20
    ends = {"trainer_read_mib_s": (1.0, 9.0), **MEMORY, **changed}
    host = SignalTable(rows, {name: np.where(then, now, was) for name, (was, now) in ends.items()}, ~then)
    found = images_evicted(IntervalSignals(0, 20.0, 40.0, host, host))
    assert (found is not None) == is_own
    if found is not None:
        assert found.short == "Find what grows in the training's memory, which leaves no room for the images"
        assert ": it grew from 12 to 25 GiB, reads from the disk from " in found.text
        assert "; available memory fell from 20 to 5 GiB. " in found.text
