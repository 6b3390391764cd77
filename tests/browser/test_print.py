"""The report on paper: light, unfolded, no wider than a page, and the timeline whole on one."""

import re
from dataclasses import replace

import pytest
from support.browser import wait_until

from gpu_report.model import Analysis

pytestmark = pytest.mark.browser

A4_PX = {"width": 688, "height": 1017}  # between margins of 14 mm
SIZE = "(({ width, height }) => [width, height])(document.getElementById('chart').layout)"


def test_paper_is_light_and_unfolded_and_the_screen_comes_back(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, color_scheme="dark").page
    folded = "document.querySelectorAll('details:not([open], .learn)').length"  # the documentation stays folded
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


def test_the_pdf_has_few_pages(open_report, analysis: Analysis) -> None:
    report = open_report(analysis)
    pdf = report.page.pdf(format="A4", print_background=True)
    assert pdf.startswith(b"%PDF")
    assert 4 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
    assert report.errors == []
