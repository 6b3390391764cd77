"""What a reader relies on: times at both ends, numbers that agree, a box inside the window, and nothing that jumps."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from support.browser import cell, click_at, hover_at, show_timeline, show_window, wait_until

from gpu_report.model import Analysis, RecordedEvent

pytestmark = pytest.mark.browser

SLACK_PX = 0.5  # of a box that lies at the window's edge


@pytest.mark.parametrize("size", [(1280, 800), (1024, 500)])
def test_the_read_out_lies_inside_the_window_at_any_lane(
    open_report: Callable, analysis: Analysis, size: tuple[int, int]
) -> None:
    width, height = size
    page = open_report(analysis, viewport={"width": width, "height": height}).page
    seen = 0
    for scrolled in (0, 300, 700, 1000):
        show_timeline(page)
        page.evaluate("(top) => scrollBy({ top, behavior: 'instant' })", scrolled)
        chart = page.locator("#chart").bounding_box()
        for y in range(20, height - 10, 130):
            if not chart["y"] < y < chart["y"] + chart["height"] - 45:
                continue
            for share in (0.1, 0.5, 0.97):
                page.mouse.move(chart["x"] + share * chart["width"], y)
                page.wait_for_timeout(50)
                if page.locator("#readout").is_hidden():
                    continue  # on a lane's title
                box = page.locator("#readout").bounding_box()
                seen += 1
                assert box["x"] >= -SLACK_PX
                assert box["x"] + box["width"] <= width + SLACK_PX
                assert box["y"] >= -SLACK_PX
                assert box["y"] + box["height"] <= max(height, box["height"]) + SLACK_PX
    assert seen > 20


def test_pointing_at_a_moment_and_clicking_it_give_the_same_number(open_report: Callable, builder: object) -> None:
    """Where the driver kept finer readings, the read-out has both, and says which is which."""
    detailed = builder.build_detailed_analysis()
    page = open_report(detailed).page
    start_s = round(detailed.run.start_wall_s, 3)
    show_window(page, start_s * 1000, 100, 112)
    show_timeline(page)
    for t_s in (103.0, 105.0, 108.0):
        hover_at(page, start_s + t_s)
        page.wait_for_timeout(60)
        row = page.locator("#readout tr", has_text="GPU utilisation, % (nvidia-smi)")
        pointed = row.locator("td").first.inner_text()
        assert page.locator("#readout tr", has_text="GPU utilisation, % (0.2 s readings)").count() == 1
        click_at(page, start_s + t_s)
        assert cell(page, 0, "gpu_util_pct") == f"{pointed} %"


def test_times_stand_over_the_timeline_as_under_it(open_report: Callable, analysis: Analysis) -> None:
    page = open_report(analysis).page
    below = page.locator("#chart .xtick text").all_text_contents()
    above = page.locator("#chart .annotation").all_text_contents()
    assert len(below) > 3
    assert {words[:5] for words in below} <= {words[:5] for words in above}


def test_copying_moves_nothing(open_report: Callable, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = page.locator("[data-copy]").first
    button.scroll_into_view_if_needed()
    before = [button.bounding_box(), page.evaluate("[scrollY, document.documentElement.scrollHeight]")]
    button.click()
    wait_until(page, "() => document.querySelector('[data-copy]').textContent === 'Done'")
    assert [button.bounding_box(), page.evaluate("[scrollY, document.documentElement.scrollHeight]")] == before


def test_a_filter_that_finds_nothing_says_so_and_how_to_see_all(open_report: Callable, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.locator("#filter input").fill("no such words")
    assert page.locator("#filter output").inner_text() == "No finding matches. Clear the filter to see all."
    page.keyboard.press("Escape")
    assert page.locator("#filter output").inner_text() == ""
    assert page.locator("#findings .finding").first.is_visible()


def test_code_in_what_happened_is_shown_as_code(open_report: Callable, analysis: Analysis) -> None:
    said = {"reason": "no driver", "advice": "start it with: `docker run --gpus all x`"}
    event = RecordedEvent(300.0, "nvml_unavailable", None, said)
    odd = RecordedEvent(400.0, "marker", None, {"text": "a`b"})
    page = open_report(replace(analysis, run=replace(analysis.run, events=(event, odd)))).page
    show_timeline(page)
    hover_at(page, analysis.run.start_wall_s + 300.0)
    note = page.locator("#readout .readout-kernel", has_text="No GPU could be read")
    assert note.locator("code").inner_text() == "docker run --gpus all x"
    assert "`" not in note.inner_text()
    hover_at(page, analysis.run.start_wall_s + 400.0)
    wait_until(page, "() => document.getElementById('readout').innerText.includes('a`b')")
