"""What the calls of a model come to."""

import dataclasses

import numpy as np
import pytest
from support.calls import make_calls, make_served
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.analyse.inference.call_time import part_seconds
from gpu_report.model import Options


def served(calls, options=None, **more):
    return analyse(make_served(calls, **more), options or Options()).served


def test_latency_parts_and_speed_are_of_the_calls_after_warming_up():
    (found,) = served(make_calls(1500, first_ms=8000.0))
    assert (found.warm_up_calls, found.latency.calls) == (1, 1499)
    assert found.first_ms == pytest.approx(8013, abs=3)
    assert found.latency.p50.value_ms == pytest.approx(13, rel=0.01)
    assert found.latency.p95.low_ms < found.latency.p95.value_ms < found.latency.p95.high_ms
    assert found.parts.inference_ms == pytest.approx(10, rel=0.01)
    assert found.parts.other_ms == pytest.approx(1.0, rel=0.01)
    assert found.images_per_s == pytest.approx(1000 / 14, rel=0.01)
    assert found.images_per_s_in_calls == pytest.approx(1000 / 13, rel=0.01)
    assert found.in_calls_share == pytest.approx(13 / 14, rel=0.01)


def test_the_gpus_work_of_a_call_is_its_busy_time_by_calls():
    (found,) = served(make_calls(1500), util_pct=40.0)
    assert found.gpu_ms == pytest.approx(0.4 * 14, rel=0.02)


def test_nobody_knows_the_work_of_a_call_that_comes_seldom_or_of_two_models_on_one_gpu():
    (seldom,) = served(make_calls(30, gap_ms=1000.0))
    assert seldom.gpu_ms is None
    both = served([make_calls(1500), make_calls(1500, pid=8, model="b.pt")])
    assert [each.gpu_ms for each in both] == [None, None]


def test_energy_and_money_of_one_gpu_are_shared_by_inference_time():
    calls = [make_calls(1000), make_calls(500, pid=8, parts_ms=(1.0, 23.0, 1.0))]
    (first, second) = served(calls, Options(price_per_hour=3.6), quantities={"power_w": [200.0] * 21})
    watts = [each.joules_per_image * each.images_per_s for each in (first, second)]
    assert sum(watts) == pytest.approx(200, rel=0.05)
    assert first.money_per_million == pytest.approx(1e6 * 0.001 * 10 * 14e-3 / (10 + 23 / 28 * 14), rel=0.05)


def test_calls_without_parts_have_a_whole_time_only():
    calls = make_calls(300)
    unknown = np.full(300, np.nan)
    blank = dataclasses.replace(calls, preprocess_ms=unknown, inference_ms=unknown, postprocess_ms=unknown)
    (found,) = served(blank)
    assert found.parts.inference_ms is None
    assert found.parts.total_ms == pytest.approx(13, rel=0.01)


def test_parts_are_of_the_calls_that_have_all_of_them():
    calls = make_calls(300)
    partly = dataclasses.replace(calls, preprocess_ms=np.where(np.arange(300) < 100, np.nan, 3.0))
    (found,) = served(partly)
    assert found.parts.preprocess_ms == pytest.approx(3.0)
    nowhere = dataclasses.replace(calls, preprocess_ms=np.full(300, np.nan))
    assert served(nowhere)[0].parts.preprocess_ms is None


def test_groups_are_of_calls_that_have_something_in_common():
    gaps = np.tile([1.0, 2000.0], 30)
    images = np.tile([1.0, 1.0, 8.0], 20)
    (found,) = served(make_calls(60, gap_ms=gaps, images=images))
    assert [group.label for group in found.groups_by("batch")] == ["1 image", "8 images"]
    assert [group.label for group in found.groups_by("gap")] == ["under 10 ms", "1 s to 10 s"]
    assert found.groups_by("shape") == ()  # all have the same


def test_calls_are_grouped_by_the_clock_at_their_beginning():
    clock = [1980.0] * 14 + [600.0] * 30
    (found,) = served(make_calls(1500), quantities={"sm_clock_mhz": clock[:28]})
    groups = found.groups_by("sm-clock")
    assert [group.label for group in groups] == ["under 990 MHz", "1,881 MHz or more"]


def test_parts_of_overlapping_calls_are_added_up_in_each_span():
    calls = make_calls(2, parts_ms=(100.0, 400.0, 100.0), gap_ms=399.0, start_s=0.0, noise=0.0)  # 601 ms each
    sums = part_seconds([calls, calls], np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    assert sums["inference"] == pytest.approx([0.8, 0.8])
    assert sums["preprocess"] == pytest.approx([0.2, 0.2])
    assert sum(map(sum, sums.values())) == pytest.approx(4 * 0.601)


def test_a_run_is_of_inference_where_nothing_trained():
    calls = make_calls(300)
    assert analyse(make_served(calls)).is_inference
    trained = dataclasses.replace(make_run(readings((90.0, 60.0)), rows=[(1, 20.0), (2, 40.0)]), calls=(calls,))
    found = analyse(trained)
    assert not found.is_inference
    assert len(found.served) == 1


def test_the_ledger_of_calls_adds_up_and_books_what_lies_between_them():
    analysis = analyse(make_served(make_calls(1500, parts_ms=(4.0, 10.0, 2.0)), util_pct=25.0))
    seconds = {row.name: row.gpu_seconds for row in analysis.ledger}
    assert sum(seconds.values()) == pytest.approx(analysis.run.duration_s)
    length_s = analysis.served[0].end_s - analysis.served[0].start_s
    assert seconds["preprocessing"] == pytest.approx(4 / 18 * length_s, rel=0.1)
    assert seconds["small-calls"] == pytest.approx((10 / 18 - 0.25) * length_s, rel=0.1)
    assert seconds["startup"] == pytest.approx(5.0, abs=1.1)
    assert not {"unexplained", "short gaps"} & set(seconds)
