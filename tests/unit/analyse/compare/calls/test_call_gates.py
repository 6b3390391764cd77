"""Gates on latency, throughput and energy of calls: what fails, what passes, what cannot be said."""

import re

import pytest
from support.compared import analysed
from support.made_calls import latencies, model_calls, served, serving

from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import default_gates, parse_gate, parse_gates
from gpu_report.errors import UsageError


def result(baseline, run, gate):
    (found,) = compare([baseline] if baseline else (), run, parse_gates([gate], [])).gates
    return found


@pytest.mark.parametrize(
    ("text", "metric", "statistic", "kind", "limit"),
    [
        ("latency.p95:+5%", "latency", "p95", "share", 0.05),
        ("latency:+5%", "latency", "p95", "share", 0.05),
        ("latency.p99:20ms", "latency", "p99", "most", 20.0),
        ("latency.p50:+0.5s", "latency", "p50", "amount", 500.0),
        ("energy.per_image:+10%", "energy.per_image", "mean", "share", 0.1),
        ("energy.per_image:2J", "energy.per_image", "mean", "most", 2.0),
        ("inference:+10%", "inference", "mean", "share", 0.1),
    ],
)
def test_what_a_gate_on_calls_means(text, metric, statistic, kind, limit):
    gate = parse_gate(text)
    assert (gate.metric, gate.statistic, gate.kind) == (metric, statistic, kind)
    assert gate.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    "text", ["latency.p5:+5%", "latency:-5%", "latency:+5", "epoch_time.p99:+5%", "energy.per_image:-5%"]
)
def test_what_no_gate_on_calls_is(text):
    with pytest.raises(UsageError):
        parse_gate(text)


@pytest.mark.parametrize(
    ("gate", "outcome"),
    [
        ("latency.p95:+5%", "failed"),
        ("latency.p50:+5%", "failed"),
        ("latency.p95:+30%", "passed"),
        ("latency.p95:+1ms", "failed"),
        ("images_per_s:-5%", "failed"),
        ("energy.per_image:+10%", "failed"),
        ("memory_peak:+10%", "passed"),
        ("latency.p95:30ms", "passed"),
        ("latency.p95:10ms", "failed"),
        ("epoch_time:+5%", "not measured"),
        ("util:40%", "not measured"),
    ],
)
def test_gates_on_calls_that_take_a_fifth_longer(gate, outcome):
    found = result(served(latencies(1200, 1)), served(latencies(1200, 2, mean_ms=18.0)), gate)
    assert found.outcome == outcome, found.summary


def test_a_gate_says_both_values_and_its_limit():
    found = result(served(latencies(1200, 1)), served(latencies(1200, 2, mean_ms=18.0)), "latency.p95:+5%")
    assert found.summary == "p95 latency 16.2 ms → 19.4 ms (+20 %), limit: +5.0 %"


def test_a_change_that_may_be_chance_is_undecided_and_says_how_many_calls_would_do():
    noisy = [served(latencies(500, seed, 0.9, mean_ms=mean)) for seed, mean in ((1, 15.0), (2, 16.5))]
    found = compare(noisy[:1], noisy[1], parse_gates(["latency.p95:+5%"], []))
    assert found.exit_code == 3
    assert found.gates[0].undecided
    assert "calls of each run would be enough" in found.gates[0].summary


@pytest.mark.parametrize(
    ("gate", "outcome"),
    [
        ("latency.p95:30ms", "passed"),
        ("latency.p95:16.3ms", "undecided"),  # over its value, and within its interval
        ("latency.p95:16.1ms", "undecided"),
        ("latency.p95:14ms", "failed"),
        ("images_per_s:20images/s", "passed"),
        ("images_per_s:90images/s", "failed"),
        ("memory_peak:1GiB", "passed"),  # of the whole run: it has no interval
    ],
)
def test_a_limit_within_the_interval_of_a_value_is_undecided(gate, outcome):
    found = result(None, served(latencies(1200, 1)), gate)
    assert ("undecided" if found.undecided else found.outcome) == outcome, found.summary


def test_what_only_the_worst_call_shows_to_be_within_a_limit_is_no_pass():
    found = compare((), served(latencies(210, 1, 0.9)), parse_gates(["latency.p95:1s"], []))
    assert found.exit_code == 3
    assert "or more; about" in found.gates[0].summary


def test_a_limit_that_is_undecided_says_how_many_calls_would_do():
    calls = latencies(1200, 1)
    found = result(None, served(calls), "latency.p50:15.05ms")
    assert found.why == "too few calls"
    assert re.search(r"may be 1[45]\S* to 15\S* ms; about [\d,]+ calls would be enough$", found.summary), found.summary


def test_too_few_calls_for_a_percentile_are_exit_3_with_how_many_are_needed():
    pair = served(latencies(150, 1)), served(latencies(150, 2))
    found = compare(pair[:1], pair[1], parse_gates(["latency.p95:+5%"], []))
    assert found.exit_code == 3
    assert found.gates[0].summary == "p95 latency: p95 needs 400 calls, and there are 150"
    alone = result(None, pair[0], "latency.p95:20ms")
    assert (alone.outcome, alone.summary) == (
        "not measured",
        "p95 latency is not known: p95 needs 200 calls, and there are 150",
    )


def test_of_several_models_the_worst_counts():
    def run(mean_ms):
        calls = [
            model_calls(latencies(900, at, mean_ms=mean), model=name, pid=100 + at)
            for at, (name, mean) in enumerate((("a.pt", 15.0), ("b.pt", mean_ms), ("c.pt", 15.0)))
        ]
        return serving(*calls)

    found = result(run(40.0), run(60.0), "latency.p95:+5%")
    assert found.outcome == "failed"
    assert found.summary.startswith("p95 latency of b ")
    assert result(run(40.0), run(40.5), "latency.p95:+5%").outcome == "passed"
    assert result(None, run(40.0), "images_per_s:30images/s").summary.startswith("images per second of b ")


def test_a_gate_on_calls_is_not_measured_of_trainings():
    found = result(analysed("m-healthy"), analysed("m-healthy"), "latency.p95:+5%")
    assert found.outcome == "not measured"


def test_the_defaults_of_calls_are_measured_of_calls():
    run = served(latencies(1200, 1))
    for baseline in (True, False):
        gates = default_gates(baseline=baseline, of_calls=True)
        found = compare([served(latencies(900, 2))] if baseline else (), run, gates)
        unmeasured = [each.gate.text for each in found.gates if each.outcome == "not measured"]
        assert (found.outcome, unmeasured) == ("passed", [])
