"""Python's garbage collector as the cause, and what is advised against it."""

import dataclasses

import numpy as np
import pytest
from support.stacks import LOG, TRAINER

from gpu_report.analyse.causes import explain
from gpu_report.analyse.causes.garbage import took_words
from gpu_report.analyse.signals.code.garbage import Garbage
from gpu_report.analyse.signals.code.stack_profile import IdleLocation
from gpu_report.analyse.signals.host.process_waits import GilHold, longest_file_wait
from gpu_report.analyse.signals.interval_signals import IntervalSignals
from gpu_report.analyse.signals.signal_table import NO_SIGNALS, SignalTable
from gpu_report.catalogue import GARBAGE_KEY
from gpu_report.model import ProcessWait, SettingLocation

SPAN = (0.0, 60.0)


def of(garbage, util=20.0, **more):
    t_s = np.arange(1.0, 61.0)
    gpu = SignalTable(t_s, {"gpu_util_pct": np.full(60, util)}, np.ones(60, dtype=bool))
    return IntervalSignals(0, *SPAN, NO_SIGNALS, gpu, garbage=garbage, **more)


def taking(share, line=None, is_called=False):
    return Garbage(40, 60.0 * share, 60.0, line, is_called)


def test_a_collector_that_runs_most_of_the_idle_time_is_the_cause_before_the_lock_that_it_keeps():
    found = explain(of(taking(0.6, LOG, is_called=True), gil_held=GilHold(50.0, 0.2)))
    assert (found.cause.name, found.cause.confidence) == ("main-process", 0.95)
    assert found.cause.explanation == "Python's garbage collector ran 40 times, 36 s of 1 min"
    assert found.evidence[0].value == pytest.approx(60.0)


def test_short_times_are_said_to_a_tenth_of_a_second():
    assert took_words(Garbage(349, 0.21, 2.04)) == "Python's garbage collector ran 349 times, 0.2 s of 2.0 s"


@pytest.mark.parametrize(
    ("share", "util", "waited", "is_cause"),
    [(0.3, 20.0, 0.0, False), (0.3, 50.0, 0.0, True), (0.3, 50.0, 0.4, False), (0.04, 99.0, 0.0, False)],
)
def test_it_is_none_where_the_gpu_waits_for_more_or_data_take_longer(share, util, waited, is_cause):
    found = explain(of(taking(share), util, data_wait_share=waited))
    assert ("garbage collector" in found.cause.explanation) is is_cause


def test_without_a_reading_of_the_gpu_it_takes_half_of_the_time():
    for share, is_cause in ((0.6, True), (0.4, False)):
        found = explain(IntervalSignals(0, *SPAN, NO_SIGNALS, NO_SIGNALS, garbage=taking(share)))
        assert (found.cause.name == "main-process") is is_cause


def test_what_is_advised_goes_by_who_asks_for_it():
    (mine,) = explain(of(taking(0.6, LOG, is_called=True))).advice
    assert mine.short == "Remove `gc.collect()` in `log_images` (callbacks.py:41), or call it once an epoch"
    for other in (taking(0.6, TRAINER, is_called=True), taking(0.6, LOG), taking(0.6)):
        (theirs,) = explain(of(other)).advice
        assert theirs.short == "Call `gc.freeze()` once your data are loaded"
    at = (SettingLocation("frequent_gc", "/home/me/train.py", 8),)
    (setting,) = explain(of(taking(0.6), slow_modes=frozenset({"frequent_gc"}), setting_locations=at)).advice
    assert "Raise `gc.set_threshold`" in setting.text


def test_what_it_takes_beside_another_cause_stands_with_it_in_the_main_process():
    signals = of(taking(0.1), gil_held=GilHold(50.0, 0.9))
    found = explain(signals)
    assert "without releasing the GIL" in found.cause.explanation
    assert [each.value for each in found.evidence if each.key == GARBAGE_KEY] == [pytest.approx(10.0)]
    assert [(each.short, "gc.freeze()" in each.text) for each in found.advice] == [("", True)]
    little = explain(dataclasses.replace(signals, garbage=taking(0.04)))
    assert (little.cause, little.advice) == (found.cause, ())


def test_what_it_takes_of_workers_stands_with_a_loader_that_is_too_slow():
    wait = ProcessWait(2.0, 58.0, 7, "main", "D", "rpc_wait_bit_killable", "read", "/mnt/nfs/a.npy", "nfs4")
    where = IdleLocation(1.0, None, 0.0, None)
    signals = of(
        None,
        workers_garbage=taking(0.2),
        main_file_wait=longest_file_wait([wait], "main", SPAN),
        idle_location=where,
    )
    found = explain(signals)
    assert found.cause.name == "input-storage"
    (number,) = [each for each in found.evidence if each.key == GARBAGE_KEY]
    assert (number.text, number.value) == (
        "time of data-loader workers in Python's garbage collector",
        pytest.approx(20.0),
    )
    assert "gc.freeze()" in found.advice[-1].text
