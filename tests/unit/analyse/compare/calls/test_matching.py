"""Models of two runs are the same by name, format, precision and batch, else by less of that."""

import pytest
from support.made_calls import latencies, model_calls, serving

from gpu_report.analyse.compare.calls.matching import matched, unmatched
from gpu_report.analyse.compare.calls.samples import call_samples

N, M, HALF = {"model": "a/yolo26n.pt"}, {"model": "yolo26m.pt"}, {"model": "yolo26n.pt", "half": True}
ENGINE = {"model": "yolo26n.engine", "format": "engine"}


def samples(*models, count=60):
    calls = [model_calls(latencies(count, at), pid=100 + at, **each) for at, each in enumerate(models)]
    return call_samples(serving(*calls))


def test_a_model_is_matched_with_itself_whatever_order_they_are_in():
    (first, second) = matched([samples(M, N)], samples(N, M))
    assert [each.run.name for each in (first, second)] == [each.baselines[0].name for each in (first, second)]
    assert {first.model, second.model} == {"yolo26n", "yolo26m"}


def test_the_same_model_in_two_processes_is_one():
    (one,) = samples(N, N)
    assert len(one.latency_ms) == 120
    assert len(one.served) == 2


@pytest.mark.parametrize("other", [HALF, ENGINE, {"model": "yolo26n_openvino_model", "format": "openvino"}])
def test_a_model_in_another_format_or_precision_is_compared_where_it_is_the_only_one_of_its_name(other):
    found = matched([samples(N, M)], samples(other, M))
    assert {each.run.name: each.baselines[0].name for each in found} == {"yolo26n": "yolo26n", "yolo26m": "yolo26m"}


def test_two_precisions_of_a_model_are_told_apart():
    found = matched([samples(N, HALF)], samples(HALF, N))
    assert all(each.run.key == each.baselines[0].key for each in found)
    assert {each.model for each in found} == {"yolo26n (pt, batch 1)", "yolo26n (pt, half, batch 1)"}


def test_a_model_that_one_run_alone_has_is_said():
    before, after = samples(N, M), samples(N, {"model": "yolo26s.pt"})
    assert [each.run.name for each in matched([before], after)] == ["yolo26n"]
    assert unmatched(before, after) == (
        "yolo26s is in the run only, and is not compared.",
        "yolo26m is in the baseline only, and is not compared.",
    )


def test_of_several_baselines_those_that_have_a_model_are_its_own():
    by_name = {each.run.name: each for each in matched([samples(N), samples(M, N)], samples(N, M))}
    assert (len(by_name["yolo26n"].baselines), len(by_name["yolo26m"].baselines)) == (2, 1)
