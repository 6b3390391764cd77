"""What to choose."""

import numpy as np
import pytest
from support.bench import benchmark, failed, model_calls, served

from gpu_report.analyse.bench import analyse_bench
from gpu_report.analyse.bench.choice import parse_limit
from gpu_report.errors import UsageError
from gpu_report.model import BoxAgreement, LatencyLimit

SMALL, LARGE = served("small", ms=4.0), served("large", ms=20.0, batch=8)  # 250 and 400 images/s


def chosen(*variants, limit=None):
    result = analyse_bench(benchmark(*variants), None if limit is None else parse_limit(limit))
    name = None if result.choice is None else result.rows[result.choice].variant.name
    return name, result


def test_without_a_limit_it_is_the_most_images_a_second_and_the_quickest_is_named_too():
    name, result = chosen(SMALL, LARGE, failed("broken"))
    assert name == "large"
    assert result.rows[result.quickest].variant.name == "small"


@pytest.mark.parametrize(("limit", "name"), [("p95:10ms", "small"), ("p50:20.5ms", "large"), ("p99:1ms", None)])
def test_a_limit_leaves_the_fastest_that_keeps_it(limit, name):
    assert chosen(SMALL, LARGE, limit=limit)[0] == name


def test_rows_are_in_order_of_rank_and_what_cannot_be_chosen_comes_last():
    wrong = served("wrong", ms=1.0, agreement=BoxAgreement("small", 16, 100, 0.1, None))
    name, result = chosen(failed("broken"), wrong, SMALL, LARGE)
    assert [row.variant.name for row in result.rows] == ["large", "small", "wrong", "broken"]
    assert (name, result.choice) == ("large", 0)


def test_a_quantile_that_is_not_known_keeps_no_limit():
    assert chosen(served("few", ms=300.0), limit="p95:1000ms")[0] is None


def test_one_whose_outputs_differ_is_not_chosen():
    wrong = served("wrong", ms=1.0, agreement=BoxAgreement("small", 16, 100, 0.1, None))
    assert chosen(SMALL, wrong)[0] == "small"
    assert chosen(wrong)[0] is None


@pytest.mark.parametrize("stage", ["serve", "check"])
def test_one_that_failed_after_it_served_is_not_chosen(stage):
    broken = served("broken", ms=1.0, failed_in=stage, reason="CUDA error: illegal memory access")
    name, result = chosen(SMALL, broken)
    assert (name, result.rows[result.quickest].variant.name, result.rivals) == ("small", "small", ())
    assert chosen(broken, limit="p95:10ms")[0] is None


def test_a_choice_whose_interval_reaches_over_the_limit_is_not_sure():
    chance = np.random.default_rng(1)
    total = chance.lognormal(np.log(10), 0.3, 250)
    variant = served("noisy", turns=1, calls=(model_calls(np.arange(250) / 30, total),))
    _, result = chosen(variant)
    p95 = result.rows[0].latency.p95
    assert p95.low_ms < p95.value_ms < p95.high_ms
    for ms, sure in (((p95.value_ms + p95.high_ms) / 2, False), (p95.high_ms + 1, True)):
        result = analyse_bench(benchmark(variant), LatencyLimit("p95", ms))
        assert (result.choice, result.sure) == (0, sure)


def test_the_one_named_first_wins_where_both_are_equal():
    assert chosen(served("a"), served("b"))[0] == "a"


def test_of_failures_nothing_is_chosen():
    _, result = chosen(failed("a"), failed("b"))
    assert (result.choice, result.quickest, result.sure) == (None, None, False)


@pytest.mark.parametrize("text", ["p95", "p95:10", "p90:10ms", "10ms", "p95:0ms", "p95:-1ms", "p95:nanms", ""])
def test_what_is_no_limit_is_wrong_use(text):
    with pytest.raises(UsageError, match="--limit p95:10ms"):
        parse_limit(text)


def test_a_limit_is_written_as_it_was_read():
    assert parse_limit("p99:2.5ms").text == "p99:2.5ms"


def test_variants_whose_intervals_overlap_are_rivals_of_the_choice():
    _, result = chosen(served("a"), served("b"), served("slow", ms=20.0))
    assert (result.choice, result.rivals, result.sure) == (0, (1,), False)
