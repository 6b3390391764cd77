"""Getting about a report by keyboard: findings, their filter, the help, and links to what is folded."""

from dataclasses import replace
from types import ModuleType

import pytest
from playwright.sync_api import Page
from support.browser import wait_until

from gpu_report.model import Analysis
from gpu_report.render.page.sections.findings_section import FINDINGS_IN_FULL

pytestmark = pytest.mark.browser

ORDER = ["drop-2", "drop-1", "drop-3", "memory-growth-1"]  # worst first; drop-4 is expected and folded
FOCUSED = "document.activeElement.id"


def shown(page: Page) -> list[str]:
    """Return the ids of the findings that can be seen."""
    return [one.get_attribute("id") for one in page.locator("#findings [data-severity]").all() if one.is_visible()]


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_j_and_k_go_from_finding_to_finding_and_stop_at_the_ends(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    seen = []
    for key in "jjjjjkkkkk":
        press(page, key)
        seen.append(page.evaluate(FOCUSED))
    assert seen == [*ORDER, ORDER[3], *ORDER[2::-1], ORDER[0], ORDER[0]]
    assert page.url.endswith(f"#{ORDER[0]}")
    wait_until(page, "(id) => Math.abs(document.getElementById(id).getBoundingClientRect().top) < 60", ORDER[0])
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"


def test_j_goes_on_from_where_the_page_was_scrolled_to(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, reduced_motion="reduce").page
    page.locator("#drop-3").evaluate("it => it.scrollIntoView()")
    press(page, "j")
    assert page.evaluate(FOCUSED) == "drop-3"
    page.evaluate("document.activeElement.blur()")
    press(page, "k")
    assert page.evaluate(FOCUSED) == "drop-1"


def test_a_folded_finding_is_met_once_it_is_opened(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.locator("details.expected > summary").click()
    press(page, *"jjjjj")
    assert page.evaluate(FOCUSED) == "drop-4"


def test_slash_filters_the_findings_by_words(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    press(page, "/")
    page.keyboard.type("GPU 0 stayed")
    assert shown(page) == []
    page.locator("#filter input").fill("gpu 0")
    assert shown(page) == ["drop-1", "drop-3"]
    assert page.locator("#filter output").inner_text() == "2 of 5"
    page.locator("#filter input").fill("mistaken for")  # which only the documentation says
    assert shown(page) == []
    page.locator("#filter input").fill("validation")
    assert shown(page) == ["drop-4"]  # what is folded opens where it fits
    press(page, "Escape")
    assert shown(page) == ORDER
    assert page.locator("#filter output").inner_text() == ""
    press(page, "j")
    assert page.evaluate(FOCUSED) in ORDER


def test_findings_are_filtered_by_severity_and_j_keeps_to_them(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.get_by_label("Severity").select_option("warning")
    assert shown(page) == ["drop-1", "drop-3"]
    page.evaluate("document.activeElement.blur()")
    press(page, "j", "j", "j")
    assert page.evaluate(FOCUSED) == "drop-3"
    page.get_by_label("Severity").select_option("expected")
    assert shown(page) == ["drop-4"]
    page.get_by_label("Severity").select_option("")
    assert shown(page) == ORDER


def test_what_a_finding_says_from_outside_is_text_to_the_filter(open_report, analysis: Analysis) -> None:
    report = open_report(analysis)
    report.page.locator("#filter input").fill("<img src=x onerror=")
    assert shown(report.page) == ["drop-2", "drop-1", "drop-3"]
    assert report.errors == []


def test_a_link_to_a_finding_that_is_filtered_out_shows_it(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.locator("#filter input").fill("grew")
    assert shown(page) == ["memory-growth-1"]
    page.evaluate("location.hash = '#drop-4'")
    wait_until(page, "document.getElementById('drop-4').checkVisibility()")
    assert page.locator("#filter input").input_value() == ""


def test_a_link_opens_the_table_of_smaller_findings(open_report, analysis: Analysis) -> None:
    one = analysis.findings[0]
    many = tuple(replace(one, id=f"drop-{n}", end_t_s=one.start_t_s + 30 - n / 10) for n in range(1, 131))
    page = open_report(replace(analysis, findings=many), f"#drop-{FINDINGS_IN_FULL + 20}").page
    wait_until(page, "document.querySelector(':target').checkVisibility()")
    assert page.locator(":target").evaluate("row => row.tagName") == "TR"
    page.locator("#filter input").fill(" 120  DROP ")
    assert shown(page) == ["drop-120"]


def test_the_help_lists_the_keys_and_closes(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, "#t=100").page
    press(page, "?")
    help_ = page.get_by_role("dialog", name="Keys")
    assert help_.is_visible()
    assert page.evaluate("document.activeElement.textContent") == "Close"
    press(page, "j")
    assert help_.is_visible()
    assert not page.evaluate(FOCUSED)
    press(page, "Escape")
    assert not help_.is_visible()
    assert page.locator("#snapshot").is_visible()  # Escape closed the help alone
    press(page, "Escape")
    assert page.locator("#snapshot").is_hidden()
    page.locator("#show-help").click()
    assert help_.is_visible()
    page.mouse.click(5, 5)
    assert not help_.is_visible()


def test_keys_are_left_to_fields_and_to_the_browser(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.locator("#filter input").focus()
    page.keyboard.type("j?/k")
    assert page.locator("#filter input").input_value() == "j?/k"
    assert not page.locator("#help").is_visible()
    page.evaluate("document.activeElement.blur()")
    press(page, "Control+j")
    assert not page.evaluate(FOCUSED)


def test_single_keys_can_be_turned_off_for_good(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    press(page, "?")
    page.get_by_label("Single keys work anywhere").uncheck()
    press(page, "Escape", "j")
    assert page.evaluate(FOCUSED) != ORDER[0]
    page.wait_for_timeout(500)  # Chromium keeps what is to be remembered a little later than it is told
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    press(page, "?")
    assert not page.locator("#help").is_visible()
    page.locator("#show-help").click()
    page.get_by_label("Single keys work anywhere").check()
    press(page, "Escape", "j")
    assert page.evaluate(FOCUSED) == ORDER[0]


def test_a_run_without_findings_has_nothing_to_filter(open_report, builder: ModuleType) -> None:
    report = open_report(builder.build_quiet_analysis())
    press(report.page, "j", "k", "/", "?")
    assert report.page.locator("#filter").count() == 0
    assert report.page.locator("#help").is_visible()
    assert report.errors == []


def test_the_filter_is_not_shown_without_a_script(browser, write_report, analysis: Analysis) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(write_report(analysis).as_uri())
    assert page.locator("#filter").is_hidden()
    context.close()
