"""What the page's address names is what is shown: a window, a moment, both, a finding; and the way back leads back."""

import re
from html import escape
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support.browser import click_at, show_timeline, show_window, wait_for_plotly, wait_until

from gpu_report.model import Analysis

pytestmark = pytest.mark.browser

# The window in s since the run's start, null where all of the run is shown.
WINDOW = """(start) => {
  const reset = document.getElementById("zoom-reset");
  const { range } = document.getElementById("chart").layout.xaxis;
  const [from, to] = range.map((wall) => Math.round((wall - start) / 1000));
  return reset.disabled ? null : [from, to];
}"""


@pytest.fixture
def start_ms(analysis: Analysis) -> float:
    return round(analysis.run.start_wall_s, 3) * 1000


def window(page: Page, start_ms: float) -> list[int] | None:
    wait_for_plotly(page)
    return page.evaluate(WINDOW, start_ms)


def go(page: Page, address: str) -> None:
    page.evaluate("(hash) => { location.hash = hash; }", address)
    page.wait_for_timeout(50)


def address(page: Page) -> str:
    return page.evaluate("location.hash")


def test_a_moment_in_a_window_keeps_both_in_the_address(open_report, analysis: Analysis, start_ms: float) -> None:
    page = open_report(analysis).page
    show_timeline(page)
    show_window(page, start_ms, 60, 160)
    click_at(page, analysis.run.start_wall_s + 100)
    assert re.fullmatch(r"#t=60\.000,160\.000&at=(99|100|101)\.\d+", address(page))
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    assert page.locator("#snapshot").is_visible()
    assert window(page, start_ms) == [60, 160]
    page.locator("#snapshot [data-close]").click()
    assert address(page) == "#t=60.000,160.000"


def test_a_double_click_shows_the_whole_run_and_picks_nothing(open_report, analysis: Analysis, start_ms: float) -> None:
    page = open_report(analysis, "#t=60,160").page
    show_timeline(page)
    box = page.locator("#chart").bounding_box()
    page.mouse.dblclick(box["x"] + 400, box["y"] + 220)
    assert window(page, start_ms) is None
    assert page.locator("#snapshot").is_hidden()
    page.wait_for_timeout(500)
    assert address(page) == ""


def test_a_double_click_leaves_the_moment_that_was_open(open_report, analysis: Analysis, start_ms: float) -> None:
    page = open_report(analysis, "#t=60,160&at=100").page
    show_timeline(page)
    before = page.locator("#snapshot-title").inner_text()
    box = page.locator("#chart").bounding_box()
    page.mouse.dblclick(box["x"] + 700, box["y"] + 220)
    assert window(page, start_ms) is None
    assert page.locator("#snapshot-title").inner_text() == before


def test_another_address_shows_what_it_names_and_no_more(open_report, analysis: Analysis, start_ms: float) -> None:
    page = open_report(analysis, "#t=90").page
    assert page.locator("#snapshot").is_visible()
    go(page, "#t=40,60")
    assert window(page, start_ms) == [40, 60]
    assert page.locator("#snapshot").is_hidden()
    go(page, "#t=50")
    go(page, "")
    assert window(page, start_ms) is None
    assert page.locator("#snapshot").is_hidden()


@pytest.mark.parametrize(("named", "shown"), [("#t=99999", "0:10:00.0"), ("#t=-50", "0:00:00.0")])
def test_a_time_outside_the_run_is_its_nearest(open_report, analysis: Analysis, named: str, shown: str) -> None:
    page = open_report(analysis, named).page
    assert shown in page.locator("#snapshot-title").inner_text()


def test_the_way_back_leads_to_the_finding_that_was_shown_on_the_timeline(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.locator("#drop-2 [data-show-from]").click()
    wait_until(page, "() => location.hash.startsWith('#t=')")
    page.go_back()
    wait_until(page, "() => location.hash === '#drop-2'")
    wait_until(page, "() => Math.abs(document.getElementById('drop-2').getBoundingClientRect().top) < 400")


def test_a_link_from_the_moment_to_a_finding_closes_the_moment(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, "#t=255").page
    page.locator("#snapshot a[href^='#']").first.click()
    wait_until(page, "() => document.getElementById('snapshot').hidden")
    assert address(page).startswith("#")
    assert page.evaluate("document.activeElement.id") == address(page)[1:]


def test_tab_leads_from_the_timeline_into_the_moment_and_back(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    frame = page.locator(".chart-frame")
    frame.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "snapshot"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('#snapshot') !== null")
    page.locator("#snapshot").focus()
    page.keyboard.press("Shift+Tab")
    assert frame.evaluate("frame => frame === document.activeElement")


def test_the_zone_that_was_chosen_is_there_next_time(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, timezone_id="Asia/Kolkata").page
    page.locator("[data-zone=utc]").click()
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    assert page.locator("[data-zone=utc]").get_attribute("aria-pressed") == "true"
    assert page.locator(".subtitle time").first.inner_text().endswith("UTC")


def test_forced_colours_leave_the_chart_its_own(open_report, analysis: Analysis) -> None:
    colours = """() => document.getElementById("chart").data.map((t) => t.fillcolor ?? t.line?.color ?? null)"""
    plain = open_report(analysis, color_scheme="light").page.evaluate(colours)
    forced = open_report(analysis, color_scheme="light", forced_colors="active").page.evaluate(colours)
    assert len(set(plain)) > 8
    assert forced == plain


def test_without_scripts_nothing_pretends_to_work(browser: Browser, write_report, analysis: Analysis) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(write_report(analysis).as_uri())
    assert page.locator(".verdict-words").is_visible()
    assert page.locator("#chart-wait, .chart-frame, #theme, [data-zone], [data-copy]").filter(visible=True).count() == 0
    assert page.locator("noscript p").first.is_visible()
    context.close()


def test_paper_has_no_room_for_an_open_moment(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, "#t=100").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).paddingBottom") == "0px"
    assert page.locator(".chip").first.is_visible()


def test_the_way_back_is_there_at_once(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.locator("#drop-2 [data-show-from]").click()
    assert address(page).startswith("#t=")
    page.go_back()
    wait_until(page, "() => location.hash === '#drop-2'")
    page.wait_for_timeout(400)
    assert address(page) == "#drop-2"


def test_a_report_within_another_page_has_no_address_and_works(
    browser: Browser, write_report, analysis: Analysis, tmp_path: Path
) -> None:
    outer = tmp_path / "outer.html"
    report = write_report(analysis).read_text(encoding="utf-8")
    outer.write_text(f'<iframe width="1300" height="900" srcdoc="{escape(report)}"></iframe>', encoding="utf-8")
    context = browser.new_context()
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(outer.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("html[data-ready=yes]").wait_for(state="attached", timeout=30_000)
    frame.locator("#drop-2 [data-show-from]").click()
    frame.locator("#zoom-reset:not([disabled])").wait_for()
    frame.locator(".chart-frame").press("Enter")
    frame.locator("#snapshot").wait_for()
    assert errors == []
    context.close()
