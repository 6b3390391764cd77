"""The figures of a variant, from calls whose length a test knows."""

import dataclasses

import numpy as np
import pytest
from support.bench import TURN_S, benchmark, failed, model_calls, served

from gpu_report.analyse.bench.figures import figures
from gpu_report.model import BoxAgreement


def row(variant, **more):
    return figures(benchmark(variant, **more), variant)


def test_throughput_counts_the_time_between_calls_and_latency_does_not():
    found = row(served(ms=10.0, gap_ms=10.0, batch=8))
    assert found.images_per_s.value == pytest.approx(8 * 50, rel=0.01)
    assert found.latency.p50.value_ms == pytest.approx(10.0)
    assert (found.latency.calls, found.inference_ms) == (4 * 500, 9.0)


def test_calls_outside_of_turns_do_not_count():
    slow = model_calls(TURN_S + 1 + np.arange(50) / 10, np.full(50, 90.0))  # between the first turn and the second
    variant = served(ms=10.0)
    mixed = served(ms=10.0, calls=(*variant.calls, slow))
    assert row(mixed).latency == row(variant).latency


def test_a_call_that_began_in_a_turn_and_ended_after_it_does_not_count():
    variant = served(calls=(model_calls([1.0, 9.995], np.array([10.0, 10.0])),), turns=1)
    assert row(variant).latency.calls == 1


def test_quantiles_are_known_from_enough_calls_on():
    assert row(served(ms=300.0, turns=4)).latency.p95.value_ms is None  # 132 calls
    assert row(served(ms=100.0, turns=4)).latency.p95.value_ms == pytest.approx(100.0)
    assert row(served(ms=100.0, turns=4)).latency.p99.value_ms is None


def test_the_interval_of_throughput_is_that_of_turns():
    steady, few = row(served(turns=12)).images_per_s, row(served(turns=2)).images_per_s
    assert (steady.high - steady.low) < 0.01 * steady.value
    assert (few.low, few.high) == (None, None)


def test_a_slow_first_call_is_warm_up_and_is_told_apart():
    first = model_calls(np.array([-5.0, *(-2.0 + 0.01 * np.arange(100))]), np.array([2000.0, *([10.0] * 100)]))
    variant = served(warm_up=(-6.0, -0.5), calls=(first, *served().calls))
    found = row(variant)
    assert (found.first_call_ms, found.warm_up_calls, found.warm_up_s) == (2000.0, 1, 2.0)
    assert found.latency.worst_ms == 10.0


def test_energy_is_that_of_the_turns():
    t = np.arange(0.0, 100.0, 0.5)
    in_turn = (t % (2 * TURN_S)) < TURN_S
    found = row(served(ms=10.0, turns=4), power_t_s=t, power_w=np.where(in_turn, 300.0, 90.0))
    assert found.joules == pytest.approx(3.0, rel=0.02)  # 300 W for 10 ms


@pytest.mark.parametrize(("read_share", "known"), [(0.4, False), (0.6, True)])
def test_energy_is_known_from_half_of_the_time_on(read_share, known):
    t = np.arange(0.0, TURN_S * read_share, 0.5)
    assert (row(served(turns=1), power_t_s=t, power_w=np.full(len(t), 300.0)).joules is not None) == known


@pytest.mark.parametrize("t", [np.empty(0), np.array([1.0]), np.array([1.0, 2.0, 90.0, 91.0])])
def test_energy_is_unknown_where_power_was_hardly_read(t):
    assert row(served(), power_t_s=t, power_w=np.full(len(t), 300.0)).joules is None


def test_of_a_variant_that_failed_there_are_no_figures():
    found = row(failed("n"))
    assert not found.measured
    assert (found.latency, found.images_per_s, found.warm_up_calls) == (None, None, None)


@pytest.mark.parametrize(
    ("settings", "device", "fell_back"),
    [
        ({"device": "cuda:0", "providers": ["CUDAExecutionProvider", "CPUExecutionProvider"]}, "0", False),
        ({"device": "cuda:0", "providers": ["CPUExecutionProvider"]}, "0", True),
        ({"device": "cuda:0", "providers": ["CPUExecutionProvider", "AzureExecutionProvider"]}, "0", True),
        ({"device": "cpu"}, "0", True),
        ({"device": "cpu", "providers": ["CPUExecutionProvider"]}, "cpu", False),
        (None, "0", False),
    ],
)
def test_a_provider_that_fell_back_to_the_cpu_is_said(settings, device, fell_back):
    found = row(served(settings=settings), device=device)
    assert ("provider fell back" in found.remarks) == fell_back


@pytest.mark.parametrize(("share", "remark"), [(1.0, None), (0.95, None), (0.5, "outputs differ"), (None, "no boxes")])
def test_outputs_that_differ_are_said(share, remark):
    agreed = BoxAgreement("n", 16, 100, share, 0.1)
    assert row(served(agreement=agreed)).remarks == (() if remark is None else (remark,))


@pytest.mark.parametrize(("score", "differs"), [(0.495, False), (0.48, True), (0.52, True), (None, True)])
def test_where_map_is_known_it_decides(score, differs):
    reference = served("n", map50_95=0.5)
    other = served("o", map50_95=score, agreement=BoxAgreement("n", 16, 100, 0.5, 0.1))
    found = figures(benchmark(reference, other), other)
    assert ("outputs differ" in found.remarks) == differs


def test_several_shapes_and_random_weights_are_said():
    calls = model_calls(np.array([1.0, 2.0]), np.array([10.0, 10.0]))
    calls.height[1] = 480.0
    assert row(served(calls=(calls,), random_weights=True)).remarks == ("shapes differ", "random weights")


def drifting(spread, seed, turns=36, calls=30):
    """Return a variant whose turns differ by `spread` for long stretches; calls of a turn hardly do."""
    chance = np.random.default_rng(seed)
    level = np.repeat(chance.normal(0, spread, turns // 6), 6) + chance.normal(0, 0.02, turns)
    total = 10 * np.exp(np.repeat(level, calls) + chance.normal(0, 0.01, turns * calls))
    starts = np.concatenate([turn + np.arange(calls) * 0.02 for turn in range(turns)])
    spans = tuple((float(turn), turn + 0.9) for turn in range(turns))
    return served(turns=turns, calls=(model_calls(starts, total),)), spans


def test_an_interval_is_of_what_another_benchmark_on_a_drifting_host_would_read():
    found = []
    for seed in range(200):
        rows = []
        for each in (seed, 1000 + seed):
            variant, spans = drifting(0.05, each)
            variant = dataclasses.replace(variant, turns=spans)
            rows.append(figures(benchmark(variant), variant).latency.p50)
        found.append(rows[0].low_ms <= rows[1].value_ms <= rows[0].high_ms)
    assert 0.85 <= np.mean(found) <= 0.99
