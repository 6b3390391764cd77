"""The section on inference: tiles, parts of a call, time between calls, groups; and the rest of such a page."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from types import ModuleType

import numpy as np
import pytest
from support.served import made_calls, served_model

from gpu_report.model import Advice, Analysis, CallParts, Ending, Finding, ServedModel
from gpu_report.render import render_html
from gpu_report.render.page.compose import compose
from gpu_report.render.page.notebook import render_notebook
from gpu_report.render.page.sections import overview
from gpu_report.render.page.sections.inference import IN_FULL, inference
from gpu_report.render.page.views.inference import ServedView
from gpu_report.render.run_clock import WallClock

CLOCK = WallClock(1_795_223_424.0)
ENDED = Ending("failed", 61.0, names_epoch=True, failure="The command ended with exit code 1")
OF_TRAINING = re.compile(r"(?i)\b(?:train\w*|epochs?|loaders?|steps?)\b")


@pytest.fixture(scope="module")
def quiet(builder: ModuleType) -> Analysis:
    return builder.build_quiet_analysis()


def view(quiet: Analysis, served: ServedModel) -> ServedView:
    section = inference(replace(quiet, served=(served,), is_inference=True), CLOCK)
    assert section is not None
    return section.served[0]


def plain(text: str) -> str:
    return text.replace("\xa0", " ")


def tiles(shown: ServedView) -> dict[str, tuple[str, str]]:
    return {tile.label: (plain(tile.value), plain(tile.note)) for tile in shown.tiles}


def test_tiles_say_how_fast_it_was(quiet: Analysis) -> None:
    served = served_model()
    shown = tiles(view(quiet, served))
    assert shown["Images a second"][0] == f"{served.images_per_s:.0f}"
    assert shown["Images a second"][1].startswith("5,497 images in 1,997 calls; ")
    assert shown["Latency, median"] == ("14.0 ms", "95 % confidence interval 13.7 to 14.3 ms")
    assert shown["Worst call"][0].startswith("9")
    assert shown["Worst call"][1].endswith("\u00d7 the median")
    assert shown["GPU busy"] == ("11 %", "1.9 ms a call")
    assert shown["Energy, a million images"] == ("394.4 Wh", "1.42 J an image; a million cost 12.50")


def test_of_a_service_that_mostly_waits_latency_comes_first(quiet: Analysis) -> None:
    assert next(iter(tiles(view(quiet, served_model())))) == "Images a second"
    waits = tiles(view(quiet, served_model(in_calls_share=0.02)))
    assert list(waits)[:4] == ["Latency, median", "Latency, p95", "Latency, p99", "Images a second"]


def test_a_percentile_of_too_few_calls_has_no_tile(quiet: Analysis) -> None:
    shown = tiles(view(quiet, served_model(made_calls(150))))
    assert shown["Latency, median"][0] == "13.9 ms"
    assert {"Latency, p95", "Latency, p99"}.isdisjoint(shown)


def test_what_is_not_known_has_no_tile(quiet: Analysis) -> None:
    shown = view(quiet, served_model(gpu_busy_share=None, joules_per_image=None, images_per_s=None))
    assert tiles(shown)["Images a second"][0] == "n/a"
    assert {"GPU busy", "Energy, a million images"}.isdisjoint(tiles(shown))


def test_the_parts_of_a_call_fill_a_bar_and_the_longest_is_named(quiet: Analysis) -> None:
    shown = view(quiet, served_model(parts=CallParts(2.0, 10.0, 7.0, 1.0, 20.0)))
    assert plain(shown.parts_title) == "A call takes 20.0 ms on average: inference 10.0 ms (50 %)"
    assert [(part.name, part.width_pct) for part in shown.parts] == [
        ("Pre-processing", 10.0),
        ("Inference", 50.0),
        ("Post-processing", 35.0),
        ("Everything else", 5.0),
    ]
    assert plain(shown.parts_note) == "The GPU worked 1.9 ms of it. For 18.1 ms it waited for the CPU."
    other = view(quiet, served_model(parts=CallParts(2.0, 6.0, 2.0, 10.0, 20.0)))
    assert "Everything else: tracking, drawing, saving, callbacks." in other.parts_note
    unknown = view(quiet, served_model(parts=CallParts(None, None, None, None, 20.0)))
    assert (unknown.parts, unknown.parts_note) == ((), "YOLO does not report the parts of these calls.")


def test_warming_up_is_said_apart(quiet: Analysis) -> None:
    assert plain(view(quiet, served_model()).warm_up) == (
        "Warm-up: the first 3 calls took 8.1 s, the very first 8,000 ms. They are left out."
    )
    assert plain(view(quiet, served_model(warm_up=1)).warm_up) == ("Warm-up: the first call took 8 s. It is left out.")
    assert not view(quiet, served_model(warm_up_calls=0)).warm_up


def test_time_between_calls_is_by_what_it_went_to(quiet: Analysis) -> None:
    shown = view(quiet, served_model())
    rows = [tuple(map(plain, row)) for row in shown.gaps.rows]
    assert [(row[0], row[2]) for row in rows] == [("Decoding", "90 %"), ("Unknown", "10 %")]
    assert rows[0][3] == "read (serve.py:7) 90 %"
    assert plain(shown.between).startswith("No call was going on for 4 s, 12 % of the time")
    close = view(quiet, served_model(gap_s=0.01, gap_parts=()))
    assert close.between.startswith("Calls follow each other")
    assert close.gaps.rows == ()


def test_groups_are_listed_where_there_are_several(quiet: Analysis) -> None:
    shown = view(quiet, served_model())
    assert [table.title for table in shown.groups] == ["By batch"]
    assert [row[0] for row in shown.groups[0].table.rows] == ["1 image", "8 images"]
    served = served_model()
    assert view(quiet, served_model(groups=served.groups[:1])).groups == ()


def test_the_slowest_calls_are_listed_with_their_parts(quiet: Analysis) -> None:
    calls = made_calls()
    calls.total_ms[1000], calls.postprocess_ms[1000] = 500.0, 480.0
    slow = view(quiet, served_model(calls)).slow[0]
    assert (plain(slow.cells[0]), plain(slow.cells[3])) == ("500 ms", "480 ms")
    assert slow.start.t_s == pytest.approx(float(calls.start_s[1000]), abs=0.001)
    missing = made_calls()
    missing.inference_ms[:] = np.nan
    assert view(quiet, served_model(missing)).slow[0].cells[2] == "n/a"


def test_a_provider_that_fell_back_to_the_cpu_is_named(quiet: Analysis) -> None:
    onnx = {"format": "onnx", "providers": ["CPUExecutionProvider"]}
    shown = view(quiet, served_model(made_calls(settings=onnx)))
    assert shown.warning.startswith("ONNX Runtime fell back to the CPU")
    assert ("Format", "ONNX") in [(fact.label, fact.value) for fact in shown.settings]
    meant = view(quiet, served_model(made_calls(settings={**onnx, "asked_device": "cpu"})))
    assert not meant.warning
    on_gpu = {**onnx, "providers": ["CUDAExecutionProvider", "CPUExecutionProvider"]}
    assert not view(quiet, served_model(made_calls(settings=on_gpu))).warning


def test_the_first_models_come_in_full_the_others_as_rows(quiet: Analysis) -> None:
    served = tuple(served_model(made_calls(20 + n, pid=n)) for n in range(IN_FULL + 2))
    section = inference(replace(quiet, served=served), CLOCK)
    assert section is not None
    assert [each.about[-1] for each in section.served] == [f"process {n}" for n in range(IN_FULL)]
    assert [row[1] for row in section.others.rows] == [str(IN_FULL), str(IN_FULL + 1)]
    assert not section.comes_first
    assert inference(quiet, CLOCK) is None


def test_a_run_of_inference_has_calls_in_place_of_epochs(builder: ModuleType) -> None:
    labels = {tile.label: tile for tile in overview.tiles(builder.build_inference_analysis())}
    assert "Epochs completed" not in labels
    assert (labels["Calls"].value, labels["Calls"].note) == ("2,600", "2 models, warm-up included")


class Words(HTMLParser):
    """All that a page says, attributes that are read out included, without its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.said: list[str] = []
        self._silent = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent = tag in {"script", "style"}
        self.said += [value for name, value in attrs if value and name in {"aria-label", "title", "placeholder"}]

    def handle_endtag(self, tag: str) -> None:
        self._silent = False

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.said.append(data)


def test_a_page_of_inference_says_nothing_of_training(builder: ModuleType) -> None:
    analysis = replace(builder.build_inference_analysis(), ending=ENDED)
    for page in (render_html(analysis), render_notebook(analysis)):
        said = " ".join(Words(page).said)
        assert "Where the GPU time went" in said
        assert OF_TRAINING.findall(said) == []
    assert OF_TRAINING.search(" ".join(Words(render_html(builder.build_analysis())).said))


def test_the_verdict_is_good_where_nothing_would_make_calls_faster(builder: ModuleType) -> None:
    analysis = builder.build_inference_analysis()
    assert compose(analysis).status == "good"
    advice = (Advice("Pass 4 images a call", gain_at_most=0.6, gain_estimate=0.5),)
    found = Finding("small-calls-1", "small-calls", "info", 0, 31.0, 60.0, "Calls are small", advice=advice)
    shown = compose(replace(analysis, findings=(found,)))
    assert (shown.status, shown.findings.at_the_top[0].cause_and_length) == ("room", "")
    assert plain(shown.findings.at_the_top[0].advice[0].gain) == "expected to save 50 % of the time for all calls"


def test_the_section_stands_first_where_the_run_did_nothing_else(builder: ModuleType) -> None:
    analysis = builder.build_inference_analysis()
    page = render_html(analysis)
    assert page.index('id="inference"') < page.index('id="ledger"')
    page = render_html(replace(builder.build_analysis(), served=analysis.served))
    assert page.index('id="inference"') > page.index('id="epochs"')
    assert "<script>window.planted" not in page
