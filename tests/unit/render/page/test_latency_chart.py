"""Latency over time and as a distribution: what is drawn of each call, and how large that gets."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.served import made_calls, served_model

from gpu_report.render.page.sections.latency_chart import BINS, WORST, Axis, bucketed, chart, latency_data, ticks
from gpu_report.render.run_clock import WallClock
from gpu_report.render.samples.columns import Blob

CLOCK = WallClock(1_795_223_424.0)


def test_each_bucket_has_the_shortest_the_median_and_the_longest_of_its_calls() -> None:
    random = np.random.default_rng(3)
    start, total = np.sort(random.uniform(0, 60, 400)), random.uniform(5, 50, 400)
    found = bucketed(start, total, 60.0, 30)
    assert found.count.sum() == 400
    for n, place in enumerate(found.place.tolist()):
        own = total[(start / 60 * 30).astype(int) == place]
        expected = (len(own), own.min(), np.median(own), own.max())
        assert (found.count[n], found.low_ms[n], found.median_ms[n], found.high_ms[n]) == pytest.approx(expected)


def test_one_slow_call_among_many_is_drawn_and_marked() -> None:
    calls = made_calls(50_000)
    calls.total_ms[40_000] = 1234.0
    drawn = chart(served_model(calls), 900.0, CLOCK)
    assert drawn is not None
    assert "1,234\u00a0ms" in drawn.label
    assert drawn.worst.count("M") == WORST
    highest = min(float(y) for y in re.findall(r"M\d+,(\d+)", drawn.worst))
    assert highest < 20
    assert f",{highest:.0f}" in drawn.ranges


def test_where_calls_lie_in_a_small_part_of_the_run_nothing_else_is_shown() -> None:
    calls = made_calls()
    first, last = float(calls.start_s[0]), float(calls.end_s[-1])
    brief = chart(served_model(calls), 10 * last, CLOCK)
    assert brief is not None
    assert (brief.start.t_s, brief.end.t_s) == (pytest.approx(first, abs=0.01), pytest.approx(last, abs=0.01))
    whole = chart(served_model(calls), last, CLOCK)
    assert whole is not None
    assert (whole.start.t_s, whole.end.t_s) == (0.0, pytest.approx(last, abs=0.01))
    start_s = 10 * last - first - 0.3  # the first of them begins in the run's last 0.3 s
    ending = replace(calls, start_s=calls.start_s + start_s)
    late = chart(served_model(ending), 10 * last, CLOCK)
    assert late is not None
    assert (late.start.t_s, late.end.t_s) == (pytest.approx(10 * last - 1), pytest.approx(10 * last))


def test_a_chart_of_very_many_calls_is_no_larger_than_one_of_a_few_thousand() -> None:
    sizes = []
    for count in (4_000, 200_000):
        served, blob = served_model(made_calls(count)), Blob()
        duration_s = float(served.calls.end_s[-1])
        drawn = chart(served, duration_s, CLOCK)
        assert drawn is not None
        latency_data(served, duration_s, blob)
        sizes.append(len(drawn.ranges) + len(drawn.medians) + len(blob.take()))
    assert sizes[1] < 1.5 * sizes[0] < 45_000


def test_calls_of_the_warm_up_are_a_band_and_no_part_of_the_rest() -> None:
    drawn = chart(served_model(), 60.0, CLOCK)
    assert drawn is not None
    assert drawn.warm_up == (500.0, pytest.approx(135.0, abs=1))  # from 30.0 s on, 8.1 s long
    assert "8,000" not in drawn.label
    assert min(int(x) for x in re.findall(r"M(\d+),", drawn.ranges)) >= 635


def test_the_line_of_medians_goes_from_the_first_call_to_the_last_and_breaks_at_a_pause() -> None:
    calls = made_calls()
    calls.start_s[1000:] += 20.0
    calls.total_ms[1000:] *= 2
    served = served_model(calls)
    drawn = chart(served, 100.0, CLOCK)
    assert drawn is not None
    lines = [re.findall(r"([\d.]+),(\d+)H([\d.]+)", line) for line in drawn.medians.split("M")[1:]]
    assert drawn.medians.startswith("M")
    assert len(lines) == 2
    ends = float(lines[0][0][0]), float(lines[-1][-1][2])
    assert ends == pytest.approx((10 * served.start_s, 10 * float(calls.start_s[-1])), abs=0.2)
    assert min(int(y) for _, y, _ in lines[0]) > max(int(y) for _, y, _ in lines[1])


def test_the_distribution_counts_each_call_once() -> None:
    drawn = chart(served_model(), 100.0, CLOCK)
    assert drawn is not None
    counts = [int(bar.title.rpartition(": ")[2].split()[0].replace(",", "")) for bar in drawn.bins]
    assert sum(counts) == 1997
    assert len(counts) <= BINS
    assert [name for name, _ in drawn.quantiles] == ["p50", "p95", "p99"]
    assert [y for _, y in drawn.quantiles] == sorted((y for _, y in drawn.quantiles), reverse=True)


def test_a_few_calls_have_no_line_of_medians_and_none_no_chart() -> None:
    few = chart(served_model(made_calls(12)), 100.0, CLOCK)
    assert few is not None
    assert few.ranges
    assert not few.medians
    one = chart(served_model(made_calls(4)), 100.0, CLOCK)
    assert one is not None
    assert one.ranges.count("h0") == 1
    served = served_model()
    none = served_model(served.calls, warm_up_calls=len(served.calls.start_s))
    assert chart(none, 100.0, CLOCK) is None
    assert latency_data(none, 100.0, Blob()) == []


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((13.0, 19.0), [14, 16, 18]),
        ((9.9, 18.9), [10, 12, 14, 16, 18]),
        ((12.0, 95.0), [15, 20, 30, 50, 70]),
        ((8.0, 4000.0), [10, 100, 1000]),
        ((0.4, 9000.0), [1, 10, 100, 1000]),
    ],
)
def test_the_axis_has_a_few_round_latencies(ends: tuple[float, float], expected: list[float]) -> None:
    assert ticks(Axis(*ends)) == pytest.approx(expected)
