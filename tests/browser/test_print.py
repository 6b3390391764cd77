"""The report on paper: light, unfolded, no wider than a page, and the timeline whole on one."""

import re
from dataclasses import replace

import pandas as pd
import pytest
from support.browser import wait_until

from gpu_report.model import Analysis, YoloRun

pytestmark = pytest.mark.browser

A4_PX = {"width": 688, "height": 1017}  # between margins of 14 mm
SIZE = "(({ width, height }) => [width, height])(document.getElementById('chart').layout)"


def test_paper_is_light_and_unfolded_and_the_screen_comes_back(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, color_scheme="dark").page
    folded = "document.querySelectorAll('details:not([open], .learn, .appendix)').length"
    before = [page.evaluate(SIZE), page.evaluate(folded)]
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    wait_until(page, f"{SIZE}[0] < {A4_PX['width']}")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    assert page.evaluate(folded) == 0
    assert page.evaluate(SIZE)[1] <= 850
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    wait_until(page, f"{SIZE}[0] > {A4_PX['width']}")
    assert [page.evaluate(SIZE), page.evaluate(folded)] == before
    assert page.evaluate("document.documentElement.dataset.theme") is None


def test_what_nobody_reads_on_paper_is_printed_only_where_it_was_opened(open_report, analysis: Analysis) -> None:
    """The documentation, a hundred default arguments, the statistics of each GPU."""
    arguments = {f"argument_{number}": str(number) for number in range(106)}
    yolo = (YoloRun(1, None, arguments, "recorded", None),)
    page = open_report(replace(analysis, run=replace(analysis.run, yolo_runs=yolo))).page
    folded = "[...document.querySelectorAll('details.appendix:not([open]) > summary')].map((each) => each.textContent)"
    before = page.evaluate(folded)
    assert any("arguments" in words for words in before)
    assert "All statistics" in before
    page.locator("summary", has_text="All statistics").click()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(folded) == [words for words in before if words != "All statistics"]
    assert not page.locator("details.learn[open]").count()


@pytest.mark.parametrize("gpus", [1, 2])
def test_nothing_is_wider_than_the_paper(open_report, analysis: Analysis, gpus: int) -> None:
    run = replace(analysis.run, gpus=analysis.run.gpus[:gpus])
    shown = replace(analysis, run=run, gpus=analysis.gpus[:gpus])
    page = open_report(shown, viewport=A4_PX).page
    page.emulate_media(media="print")
    assert not page.locator("details.learn").first.is_visible()
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    wait_until(page, "document.getElementById('chart').layout.width <= innerWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= A4_PX["width"]
    for gone in ("#theme", "#filter", "#strip", "#data", ".hint", "#zoom-in", "[data-show-from]"):
        assert not page.locator(gone).first.is_visible(), gone
    for there in (".verdict", "#ledger", "#chart", "#lane-heads button", "#drop-1", "#kernel", "#recording"):
        assert page.locator(there).first.is_visible(), there


def test_a_run_of_sixteen_gpus_is_no_wider(open_report, analysis: Analysis) -> None:
    """What is wider than the paper lets Chromium print all pages smaller."""
    one = analysis.run.samples_of(0)
    gpus = tuple(replace(analysis.run.gpus[0], index=index) for index in range(16))
    samples = pd.concat([one.assign(gpu=float(gpu.index)) for gpu in gpus], ignore_index=True)
    epochs = tuple(
        replace(epoch, gpu_utils_pct={gpu.index: 50.0 + gpu.index for gpu in gpus}) for epoch in analysis.epochs
    )
    summaries = tuple(replace(analysis.gpus[0], gpu=gpu) for gpu in gpus)
    run = replace(analysis.run, samples=samples, gpus=gpus)
    page = open_report(replace(analysis, run=run, gpus=summaries, epochs=epochs), viewport=A4_PX).page
    first = page.locator("#epochs tbody tr").first.text_content().replace("\u00a0", " ")
    assert "50 % (GPU 0)" in first
    assert "65 % (GPU 15)" in first
    page.evaluate("dispatchEvent(new Event('beforeprint'))")  # comes first, so that the paper's width changes nothing
    page.emulate_media(media="print")
    wait_until(page, "() => document.querySelector('[data-row=\"1\"]').hidden")  # as many names as can be read
    assert page.evaluate("document.documentElement.scrollWidth") <= A4_PX["width"]
    assert page.locator("#gpu-rows button:visible").count() == 8


def test_the_pdf_has_few_pages(open_report, analysis: Analysis) -> None:
    report = open_report(analysis)
    pdf = report.page.pdf(format="A4", print_background=True)
    assert pdf.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
    assert report.errors == []
