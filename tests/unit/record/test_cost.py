import time

import pytest

from gpu_report.record.cost import Cost


def test_ticks_are_summed_up():
    cost = Cost(interval_s=1.0)
    for number in range(100):
        cost.tick(late_s=0.2 if number == 7 else 0.001, took_s=0.001 * (number + 1))
    cost.skipped(2)
    summary = cost.summary(errors=3)
    assert summary["tick_p50_ms"] == pytest.approx(51, rel=0.06)
    assert summary["tick_p99_ms"] == pytest.approx(100, rel=0.06)
    assert (summary["late_ticks"], summary["errors"]) == (3, 3)
    assert summary["rss_mib"] > 5


def test_cpu_time_is_a_share_of_one_core():
    began_s, cost = time.monotonic(), Cost(interval_s=1.0)
    until_s = time.process_time() + 0.2
    while time.process_time() < until_s:
        pass
    expected = 100 * 0.2 / (time.monotonic() - began_s)  # other processes may have had the core meanwhile
    assert cost.summary(errors=0)["cpu_pct"] == pytest.approx(expected, rel=0.25)


def test_without_a_tick_there_are_no_percentiles():
    assert Cost(interval_s=1.0).summary(errors=0)["tick_p50_ms"] is None
