"""The page is the same with all of plotly.js, as plotly.py ships it, as with the part that draws lines."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.browser import settled_screen, show_timeline, show_window

from gpu_report import template_files
from gpu_report.model import Analysis
from gpu_report.template_files import find_templates


@pytest.fixture
def open_with(open_report, analysis: Analysis, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    """A function that opens the report made with the smaller library, or with the whole one."""

    copies = []  # kept: a report is written once for each analysis, told by its id

    def opener(*, small: bool) -> object:
        copies.append(replace(analysis))
        with monkeypatch.context() as patch:
            if not small:
                patch.setattr(template_files, "SMALL_LIBRARY", "vendor/nothing.js")
            return open_report(copies[-1])

    return opener


def picture(opened, start_ms: float) -> tuple[list[str], bytes]:
    """Return the lines of the timeline as the browser draws them, and what of it is on the screen, zoomed in."""
    page = opened.page
    show_timeline(page)
    show_window(page, start_ms, 60, 160)
    page.mouse.move(5, 5)
    screen = settled_screen(page, "#chart")
    lines = page.evaluate("[...document.querySelectorAll('#chart path.js-line')].map((p) => p.getAttribute('d'))")
    return lines, screen


@pytest.mark.long  # the smaller library is what all other tests have
def test_the_page_is_the_same_with_either_chart_library(open_with, analysis: Analysis) -> None:
    if not (find_templates() / template_files.SMALL_LIBRARY).is_file():
        pytest.fail("the smaller chart library is missing: make chart-library", pytrace=False)
    small, whole = open_with(small=True), open_with(small=False)
    assert small.path.stat().st_size < whole.path.stat().st_size - 1_000_000
    start_ms = round(analysis.run.start_wall_s, 3) * 1000
    (small_lines, small_screen), (whole_lines, whole_screen) = (picture(each, start_ms) for each in (small, whole))
    assert len(small_lines) > 10
    assert small_lines == whole_lines
    assert small_screen == whole_screen
    assert small.errors == whole.errors == []
    assert len(small.requests) == len(whole.requests) == 1
