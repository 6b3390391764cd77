"""Two runs that call models: what changed, why, and what keeps them from being compared."""

from dataclasses import replace

import numpy as np
import pytest
from support.compared import analysed
from support.made_calls import latencies, model_calls, served, serving

from gpu_report.analyse import analyse
from gpu_report.analyse.compare import compare, fingerprint_of, unfinished
from gpu_report.analyse.compare.fingerprint import slug


def metric(comparison, name, statistic=None):
    return next(m for m in comparison.metrics if m.metric == name and statistic in {None, m.statistic})


def judgements(comparison):
    return {f"{m.metric}.{m.statistic}": m.judgement for m in comparison.metrics}


def test_energy_of_calls_is_the_same_where_power_was_not_read_for_a_while():
    """For 3 of 22 s."""
    run = served(latencies(1200, 1)).run
    power_w = run.samples["power_w"].mask(run.samples["t_s"].between(15.0, 17.5))
    failed = analyse(replace(run, samples=run.samples.assign(power_w=power_w)))
    energy = metric(compare([served(latencies(1200, 1))], failed), "energy.per_image")
    assert energy.run == pytest.approx(energy.baseline, rel=0.02)


@pytest.fixture(scope="module")
def slower():
    return compare([served(latencies(1200, 1))], served(latencies(1500, 2, mean_ms=18.0)))


def test_slower_calls_are_worse_in_latency_throughput_and_energy(slower):
    assert slower.judgement == "worse"
    assert judgements(slower) == {
        "latency.p50": "worse",
        "latency.p95": "worse",
        "latency.p99": "unknown",  # it needs 2,000 calls of each
        "preprocess.mean": "same",
        "inference.mean": "worse",
        "postprocess.mean": "same",
        "images_per_s.usual": "worse",
        "energy.per_image.mean": "worse",
        "memory_peak.max": "same",
    }
    assert metric(slower, "latency", "p95").counts == (1200, 1500)
    low, high = metric(slower, "latency", "p95").interval_share
    assert low < 0.2 < high


def test_the_verdict_says_from_what_to_what_and_which_part_is_to_blame(slower):
    assert slower.verdict.startswith("p95 latency went from 16.2 ms to 19.4 ms (20 % slower), because inference takes ")
    assert " longer: 12.0 ms → 14.4 ms a call. Also worse: p50 latency " in slower.verdict
    assert slower.verdict.endswith("No setting of the model was changed.")
    assert (slower.cause.kind, slower.cause.share) == ("inference", pytest.approx(0.8))


def test_values_are_those_of_the_report(slower):
    model = slower.run.served[0]
    assert metric(slower, "latency", "p95").run == model.latency.p95.value_ms
    assert metric(slower, "images_per_s").run == pytest.approx(model.images_per_s)
    assert metric(slower, "energy.per_image").run == pytest.approx(model.joules_per_image)
    assert metric(slower, "inference").run == pytest.approx(model.parts.inference_ms)


def test_two_runs_of_the_same_have_no_change():
    found = compare([served(latencies(2500, 1))], served(latencies(2000, 2)))
    assert found.judgement == "same"
    assert set(judgements(found).values()) == {"same"}
    assert found.verdict.startswith("No certain change: p95 latency went from 16.")


def test_a_part_that_grew_is_the_cause_and_a_tail_alone_has_none():
    calm = latencies(1200, 1)
    before = 0.1 * calm
    added = np.full(1200, 4.0) + latencies(1200, 3, mean_ms=0.5)
    grown = compare([served(calm, preprocess=before)], served(calm + added, preprocess=before + added))
    assert grown.cause.kind == "preprocess"
    tail = np.where(np.arange(1200) % 10 == 0, 3.0, 0.999) * calm
    found = compare([served(calm)], served(np.where(np.arange(1200) % 10 == 0, tail, 0.77 * calm)))
    assert metric(found, "latency", "p95").judgement == "worse"
    assert found.cause is None


def test_few_calls_say_how_many_would_be_enough():
    found = compare([served(latencies(500, 1, 0.9))], served(latencies(500, 2, 0.9, mean_ms=16.5)))
    p95 = metric(found, "latency", "p95")
    assert (p95.significant, p95.judgement) == (False, "unknown")
    assert p95.enough > 500
    assert f"About {p95.enough:,} calls of each run would be enough." in found.verdict
    assert not [m for m in found.metrics if m.statistic == "p99"]
    long = compare([served(latencies(1200, 1))], served(latencies(300, 2)))
    assert metric(long, "latency", "p99").note == "p99 needs 2,000 calls, and there are 300"


def test_a_larger_batch_is_named_as_the_reason_and_may_be_both_better_and_worse():
    small, large = served(latencies(1200, 1)), served(latencies(600, 2, mean_ms=60.0), images=8)
    found = compare([small], large)
    assert found.judgement == "mixed"
    assert "Likely reason: images a call 1 → 8." in found.verdict


@pytest.mark.parametrize(
    ("before", "after", "obstacle"),
    [
        ({"model": "yolo26n.pt"}, {"model": "yolo26m.pt"}, "model: yolo26n in the baseline, yolo26m in the run"),
        ({"imgsz": [640, 640]}, {"imgsz": [1280, 1280]}, "imgsz: 640 in the baseline, 1280 in the run"),
    ],
)
def test_other_work_is_not_comparable(before, after, obstacle):
    found = compare([served(latencies(500, 1), **before)], served(latencies(500, 2), **after))
    assert [each.text for each in found.obstacles] == [obstacle]
    assert (found.outcome, found.exit_code) == ("not measured", 3)
    assert {m.judgement for m in found.metrics} == {"unknown"}


def test_images_of_another_size_and_another_gpu_are_not_comparable():
    calls = model_calls(latencies(500, 2))
    wide = serving(replace(calls, width=2 * calls.width))
    assert compare([serving(calls)], wide).obstacles[0].name == "pixels of an image"
    assert compare([serving(calls)], serving(calls, name="NVIDIA L4")).obstacles[0].name == "GPU model"
    nearly = serving(replace(calls, width=1.02 * calls.width))
    assert not compare([serving(calls)], nearly).obstacles


def test_a_training_and_calls_are_not_comparable_either_way():
    calls, training = served(latencies(500, 1)), analysed("m-healthy")
    called = calls, "only calls models"
    trained = training, "trains"
    for (baseline, before), (run, does) in ((called, trained), (trained, called)):
        found = compare([baseline], run)
        assert found.verdict == f"Not comparable. The run {does}, and the baseline {before}."
        assert found.exit_code == 3
        assert [(each.name, each.kind) for each in found.differences] == [("kind of run", "hard")]


def test_a_training_among_baselines_of_calls_is_left_out():
    found = compare([served(latencies(500, 1)), analysed("m-healthy")], served(latencies(500, 2)))
    assert len(found.baselines) == 1
    assert not found.obstacles
    assert "1 of 2 baselines cannot be compared and are left out." in found.notes


def test_too_few_calls_are_an_obstacle_and_no_baseline():
    few = served(latencies(12, 1))
    found = compare([served(latencies(500, 1))], few)
    assert found.verdict.startswith("Too few calls in the run: 12 calls")
    assert found.exit_code == 3
    assert unfinished(few).startswith("It has too few calls: 12 calls")
    assert not unfinished(served(latencies(500, 1)))


def test_several_baselines_have_a_band():
    baselines = [served(latencies(600, seed, mean_ms=mean)) for seed, mean in enumerate((15.0, 15.9, 17.0))]
    found = compare(baselines, served(latencies(600, 9, mean_ms=17.5)))
    p95 = metric(found, "latency", "p95")
    assert (len(p95.each), p95.in_band, p95.judgement) == (3, True, "unknown")
    assert "but the baselines differ by as much" in found.verdict
    assert metric(compare(baselines, served(latencies(600, 9, mean_ms=40.0))), "latency", "p95").judgement == "worse"


def test_several_models_are_named():
    def run(mean_ms):
        n, m = (
            model_calls(latencies(900, at, mean_ms=mean), model=f"{name}.pt", pid=100 + at)
            for at, (name, mean) in enumerate((("yolo26n", 15.0), ("yolo26m", mean_ms)))
        )
        return serving(n, m)

    found = compare([run(40.0)], run(60.0))
    judged = {m.model: m.judgement for m in found.metrics if m.metric == "latency" and m.statistic == "p95"}
    assert judged == {"yolo26n": "same", "yolo26m": "worse"}
    assert "p95 latency of yolo26m" in found.verdict
    assert len([m for m in found.metrics if m.metric == "memory_peak"]) == 1


def test_a_run_alone_says_its_figures():
    found = compare((), served(latencies(1200, 1)))
    assert found.verdict == "A call took 15.0 ms (p50), 16.2 ms (p95), 16.8 ms (p99): 62.6 images/s in all."
    assert found.judgement is None


def test_the_set_up_of_calls_is_a_folder_of_its_own():
    known = fingerprint_of(served(latencies(500, 1)))
    assert slug(known) == "NVIDIA-H200-x1-yolo26n-640px-calls"
    assert known.arguments["half"] == "False"
