"""What the outputs of a benchmark say: all the same, in plain words, and nothing alive from outside."""

import json
import re

import pytest
from support.bench import benchmark, failed, served
from support.plain_words import banned

from gpu_report.analyse.bench import analyse_bench
from gpu_report.model import BoxAgreement, HostLoop, LatencyLimit
from gpu_report.render.bench.bench_json import render_bench_json
from gpu_report.render.bench.chart import chart
from gpu_report.render.bench.markdown import render_bench_markdown
from gpu_report.render.bench.page import compose_bench, render_bench_html
from gpu_report.render.bench.rows import headline, notes, second_sentence
from gpu_report.render.bench.terminal import render_bench_text

HOSTILE = '</script><script>window.planted=1</script><img src=x onerror="window.planted=1">'
MOST_WORDS = 20
OTHER = BoxAgreement("b", 1, 1, 0.0, None)
AGREED = BoxAgreement("n PyTorch FP32, batch 1", 16, 500, 0.98, 0.004)


def result(*variants, limit=None, **more):
    return analyse_bench(benchmark(*variants, **more), limit)


@pytest.fixture
def usual():
    return result(
        served("n PyTorch FP32, batch 1", ms=4.0, short="n", load_s=2.0, size_mib=5.0),
        served("n ONNX FP16, batch 8", ms=20.0, batch=8, short="n", half=True, build_s=7.0, agreement=AGREED),
        served("m TensorRT FP16, batch 8", ms=30.0, batch=8, short="m", half=True, build_s=700.0, reused=True),
        failed("m TensorRT FP32, batch 8", "build", "RuntimeError: built for another GPU", short="m"),
        limit=LatencyLimit("p95", 25.0),
    )


def test_the_choice_comes_first_everywhere(usual):
    said = "Choose n ONNX FP16, batch 8: 400 images/s at full speed, p95 of all calls 20.0 ms (limit 25 ms)."
    assert headline(usual) == said
    assert render_bench_text(usual, width=100).startswith(said)
    assert f"**{said}**" in render_bench_markdown(usual)
    assert re.sub("\u00a0", " ", compose_bench(usual).verdict) == said
    assert json.loads(render_bench_json(usual))["choice"] == "n ONNX FP16, batch 8"


def test_a_variant_that_failed_is_a_row_with_its_reason_everywhere(usual):
    for text in (render_bench_text(usual, width=200), render_bench_markdown(usual), render_bench_html(usual)):
        assert "m TensorRT FP32, batch 8" in text
        assert "the export failed: RuntimeError: built for another GPU" in text
    last = json.loads(render_bench_json(usual))["variants"][-1]
    assert last["failed"] == {"stage": "build", "reason": "RuntimeError: built for another GPU"}
    assert (last["latency"], last["images_per_s"]) == (None, None)


def test_json_has_every_figure_as_a_number(usual):
    first = json.loads(render_bench_json(usual))["variants"][0]
    assert first["latency"]["p95"]["value_ms"] == 20.0
    assert first["images_per_s"]["value"] == pytest.approx(400.0, abs=0.1)
    assert first["outputs"]["same_share"] == 0.98
    assert first["build_s"] == 7.0


@pytest.mark.parametrize(
    ("variants", "limit", "says"),
    [
        ([served("a", ms=4.0)], None, "Most images per second at full speed: a, 250 images/s."),
        (
            [served("a", ms=4.0)],
            LatencyLimit("p95", 1.0),
            "No variant keeps p95 within 1 ms. The lowest p95 of all calls is 4.00 ms",
        ),
        (
            [served("a", ms=900.0), served("b", ms=1000.0)],
            LatencyLimit("p99", 950.0),
            "p99 is unknown: it needs 1,000 calls of each variant. Use `--seconds 1200`. Fastest at full speed: a, 1.1",
        ),
        (  # half of the calls take longer already: more of them change nothing
            [served("a", ms=900.0), served("b", ms=1000.0)],
            LatencyLimit("p99", 1.0),
            "No variant keeps p99 within 1 ms. The lowest p50 of all calls is 900 ms, of a.",
        ),
        ([failed("a")], LatencyLimit("p95", 1.0), "No variant could be measured."),
        ([served("a", agreement=OTHER)], None, "No variant can be chosen: each one failed, or its outputs differ."),
        ([served("a", agreement=OTHER)], LatencyLimit("p95", 1.0), "No variant can be chosen"),
        (
            [served("a", ms=20.0), served("b", ms=5.0, agreement=OTHER), served("c", ms=4.0, failed_in="check")],
            LatencyLimit("p95", 10.0),
            "No variant keeps p95 within 10 ms. The lowest p95 of all calls is 20.0 ms, of a.",
        ),
    ],
)
def test_where_nothing_can_be_chosen_it_says_why(variants, limit, says):
    assert headline(result(*variants, limit=limit)).startswith(says)


@pytest.mark.parametrize("limit", [None, LatencyLimit("p95", 20.0), LatencyLimit("p95", 5.0)])
@pytest.mark.parametrize("variants", [(served("a"),), (served("a"), served("b")), (served("a"), served("b", ms=20.0))])
def test_json_is_sure_of_the_choice_where_the_page_does_not_doubt_it(variants, limit):
    found = result(*variants, limit=limit)
    certain = found.choice is not None and "Not certain" not in second_sentence(found)
    assert json.loads(render_bench_json(found))["choice_is_sure"] == certain


def test_a_median_is_said_to_be_of_full_speed_or_of_all_calls():
    both = result(served("a", ms=4.0), served("b", ms=20.0, batch=8))
    assert second_sentence(both) == "Lowest latency at full speed: a, p50 4.00 ms."
    assert any("rank by images/s at full speed" in note for note in notes(both))


def test_a_provider_that_fell_back_is_named_with_what_was_asked():
    found = result(served("n ONNX FP32, batch 1", settings={"device": "cpu", "providers": ["CPUExecutionProvider"]}))
    said = "n ONNX FP32, batch 1 did not use the GPU: device asked cuda:0, provider in use CPUExecutionProvider."
    assert any(note.startswith(said) for note in notes(found))


def test_the_speed_of_the_host_is_said_where_it_was_measured():
    loops = tuple(HostLoop(0.5 + 0.001 * turn) for turn in range(100))
    found = result(served("a", loops=loops))
    assert "Speed of the host: a fixed loop took 0.55 ms (0.50 to 0.59 ms in nine of ten turns)." in notes(found)
    assert json.loads(render_bench_json(found))["host"]["ms"] == pytest.approx(0.5495, abs=0.001)
    shared = result(served("a", loops=(HostLoop(0.5, 0.2), HostLoop(0.5, 0.3), HostLoop(0.5))))
    assert "Calls waited for a core 25 % of the time, since it was in use." in notes(shared)
    on_cpu = result(served("a", loops=(HostLoop(0.5, 0.001),)))
    assert "waited for a core" not in " ".join(notes(on_cpu))
    assert json.loads(render_bench_json(result(served("a"))))["host"] is None


def test_without_a_gpu_it_says_so():
    assert notes(result(served(), device="cpu", gpu=None))[0].startswith("Served on the CPU")


def test_a_benchmark_that_was_cut_short_says_so(usual):
    cut = result(served("a"), finished=False)
    assert second_sentence(cut).startswith("This benchmark was cut short")
    assert compose_bench(cut).status == "warning"
    assert json.loads(render_bench_json(cut))["finished"] is False
    assert "cut short" not in second_sentence(usual)


def test_files_that_are_no_images_are_counted():
    said = "3 files of `--source` could not be read as images, and were left out."
    assert said in notes(result(served("a", unreadable_images=3), served("b", unreadable_images=3)))
    assert not any("could not be read" in note for note in notes(result(served("a"))))


def test_outputs_that_differ_are_named():
    found = result(served("a"), served("b", agreement=BoxAgreement("a", 16, 10, 0.25, None)))
    assert "b finds other boxes than a: 25 % are the same. It is not chosen." in notes(found)


def test_sentences_are_short_and_in_the_words_of_the_field(usual):
    others = (
        result(served("a", ms=400.0, random_weights=True, unreadable_images=1), device="cpu", gpu=None, finished=False),
        result(failed("a")),
    )
    for each in (usual, *others):
        for text in (headline(each), second_sentence(each), *notes(each)):
            for sentence in re.split(r"(?<=[.?:]) ", text):
                assert len(sentence.split()) <= MOST_WORDS or "Installed" in text, sentence
        for text in (render_bench_text(each, width=1000), render_bench_markdown(each)):
            assert banned(text) == []
        assert "training" not in render_bench_text(each, width=1000)


def test_the_page_carries_nothing_alive_from_outside():
    variant = served(HOSTILE, short=HOSTILE, agreement=BoxAgreement(HOSTILE, 1, 1, 0.1, None))
    page = render_bench_html(result(variant, failed(HOSTILE, reason=HOSTILE), versions={HOSTILE: HOSTILE}))
    assert "<img" not in page
    assert page.count("<script") == 1
    assert re.search(r"(?<!\\)<img", render_bench_markdown(result(variant))) is None
    assert "\x1b" not in render_bench_text(result(served("\x1b[31m")), width=100)


def test_the_chart_has_each_variant_at_its_place(usual):
    view = chart(usual)
    _, first, second = view.dots  # the chosen one is drawn last
    assert (view.x_label, view.limit_words) == ("Latency of a call (p95)", "p95 25 ms")
    assert first.x < second.x < view.limit
    assert first.y > second.y  # from the top
    assert [dot.number for dot in view.dots] == ["2", "3", "1"]
    assert [dot.chosen for dot in view.dots] == [False, False, True]
    assert (view.models, view.has_half) == (("n", "m"), True)
    for dot in view.dots:
        assert 0 <= dot.low <= dot.x <= dot.high <= 100
        assert 0 <= dot.y <= 100


def test_with_too_few_calls_the_chart_is_of_medians():
    assert chart(result(served("a"), served("b", ms=300.0))).x_label == "Latency of a call (p50)"


def test_of_a_single_variant_there_is_a_chart_and_of_none_there_is_not():
    view = chart(result(served("a")))
    assert len(view.x_ticks) > 1
    assert len(view.y_ticks) > 1
    assert chart(result(failed("a"))) is None
    assert 'id="chart"' not in render_bench_html(result(failed("a")))


@pytest.mark.parametrize(
    ("variants", "limit", "status"),
    [
        ([served()], None, "good"),
        ([served()], LatencyLimit("p95", 1.0), "warning"),
        ([served("a"), served("b")], None, "warning"),
        ([failed("a")], None, "critical"),
    ],
)
def test_the_status_of_the_page(variants, limit, status):
    assert compose_bench(result(*variants, limit=limit)).status == status


def test_a_row_takes_one_line_of_80_columns_without_long_names(usual):
    lines = render_bench_text(usual, width=80).splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert sum(line.lstrip().startswith(("1 ", "2 ", "3 ")) for line in lines) == 3
