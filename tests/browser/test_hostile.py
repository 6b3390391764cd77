"""A run in which every field from outside means harm: nothing of it runs, asks a network, or breaks the page."""

from pathlib import Path

import pytest
from conftest import REPOSITORY
from playwright.sync_api import Page
from support.browser import click_at, show_timeline, wait_until
from support.hostile import MEGABYTE, PLANTED, STRINGS, poison

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Analysis, Options
from gpu_report.render.redaction.redact import redact

pytestmark = pytest.mark.browser

WIDER = """() => {
  const page = document.documentElement.clientWidth;
  const scrolls = (element) => element.closest(".scroll, .raw, #chart, svg, .skip");
  const reaches = (element) => element.checkVisibility() && element.getBoundingClientRect().right > page + 1;
  return [...document.querySelectorAll("body *")]
    .filter((element) => reaches(element) && !scrolls(element))
    .map((element) => element.outerHTML.slice(0, 120));
}"""


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    folder = poison(
        REPOSITORY / "sample_runs" / "m-blocked", tmp_path_factory.mktemp("hostile") / STRINGS[0].replace("/", "~")
    )
    return analyse(load_run(folder), Options())


def test_the_strings_reach_the_analysis(hostile: Analysis) -> None:
    run = hostile.run
    assert PLANTED in (run.recording.host or "") + (run.gpus[0].name or "") + " ".join(run.recording.command)
    assert any(MEGABYTE in event.text for event in run.kernel.events)
    assert any(PLANTED in str(name) for name in run.processes["name"])
    assert any(PLANTED in str(value) for value in run.yolo_runs[0].args.values())
    assert any(PLANTED in str(event.fields) for event in run.events)
    assert any(PLANTED in finding.summary for finding in hostile.findings)
    assert any("args.yaml" not in problem and "left out" in problem for problem in run.problems)  # bad rows are told


# Where words have the least room is enough in each CI.
@pytest.mark.parametrize(
    ("redacted", "width"),
    [(False, 390), (True, 390), *(pytest.param(redacted, 1400, marks=pytest.mark.long) for redacted in (False, True))],
)
def test_nothing_runs_and_nothing_breaks(open_report, hostile: Analysis, width: int, *, redacted: bool) -> None:
    report = open_report(redact(hostile) if redacted else hostile, viewport={"width": width, "height": 900})
    page = report.page
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert page.evaluate(WIDER) == []
    if not redacted:  # what has been taken out is looked at in the same places
        look_at_everything(page, hostile)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(WIDER) == []
    assert page.evaluate("window.planted") is None
    assert page.title() != ""
    assert report.errors == []
    assert set(report.requests) == {report.path.as_uri()}


def look_at_everything(page: Page, hostile: Analysis) -> None:
    """Point along the timeline, open moments, go through the findings, filter, and print."""
    show_timeline(page)
    box = page.locator("#chart").bounding_box()
    for share in range(10, 95, 5):
        page.mouse.move(box["x"] + box["width"] * share / 100, box["y"] + 220)
        page.wait_for_timeout(20)
    for second in (20, 45, 55, 100):
        show_timeline(page)
        click_at(page, hostile.run.start_wall_s + second)
        wait_until(page, "!document.getElementById('snapshot').hidden")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.keyboard.press("Escape")
    for key in "jjjk":
        page.keyboard.press(key)
    page.locator("#filter input").fill(STRINGS[1])
    page.locator("#filter input").fill("")
    page.locator("#theme").click()
    page.locator("[data-zone=utc]").click()
    assert len(page.pdf()) > 10_000


def test_a_page_holds_no_megabyte_of_one_text(write_report, hostile: Analysis) -> None:
    path: Path = write_report(hostile)
    assert "M" * 5000 not in path.read_text(encoding="utf-8")
    assert path.stat().st_size < 6e6
