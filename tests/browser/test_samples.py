"""Every sample run's report in Chromium: no error, no request, no overflow; pictures of some go to test-artifacts/."""

import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest
from conftest import REPOSITORY
from playwright.sync_api import Browser, Page
from support.browser import show_timeline, wait_until
from support.rendered import rendering_ahead

pytestmark = pytest.mark.browser

ALL = sorted(path for path in (REPOSITORY / "sample_runs").iterdir() if path.is_dir())
IN_TURN = 16  # a sixteenth of them open in each CI, with the one that has a picture; `make test-long` opens the rest
ARTIFACTS = REPOSITORY / "test-artifacts"
PICTURED = ("m-blocked", "m-ddp-stopped", "n-starved")
RUNS = [path for number, path in enumerate(ALL) if path.name == PICTURED[0] or number % IN_TURN == 0]
REST = [path for path in ALL if path not in RUNS]
SIZES = {"wide": {"width": 1400, "height": 1000}, "narrow": {"width": 390, "height": 844}}
OVERFLOWS = "document.documentElement.scrollWidth > innerWidth"

Reports = Mapping[str, Future[Path]]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reports]:
    with rendering_ahead([*RUNS, *REST], tmp_path_factory.mktemp("samples")) as coming:
        yield coming


@pytest.fixture(scope="module")
def page(browser: Browser) -> Iterator[Page]:
    """One page for all of them: a fresh context for each of fifty would take longer than what is tested."""
    context = browser.new_context(viewport=SIZES["wide"], timezone_id="Europe/Berlin", reduced_motion="reduce")
    yield context.new_page()
    context.close()


def open_in(page: Page, path: Path) -> None:
    """Open a report and wait until it is complete; an empty page between two lets go of the one before."""
    page.goto("about:blank")
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]", timeout=30_000)


NAMES = [run.name for run in RUNS] + [pytest.param(run.name, marks=pytest.mark.long) for run in REST]


@pytest.mark.parametrize("name", NAMES)
def test_a_sample_run_opens_whole(page: Page, reports: Reports, name: str) -> None:
    path = reports[name].result()
    errors, requests = [], []
    listeners = {
        "console": lambda message: errors.append(message.text) if message.type == "error" else None,
        "pageerror": lambda error: errors.append(str(error)),
        "request": lambda request: requests.append(request.url),
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        open_in(page, path)
        look_at_the_middle(page)
        assert not page.evaluate(OVERFLOWS)
        assert page.locator("#lane-heads button").count() >= 5
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
    assert errors == []
    assert [address for address in requests if address != "about:blank"] == [path.as_uri()]


def look_at_the_middle(page: Page) -> None:
    """Point at the middle of the timeline, then click it: what is told there is a moment of this run."""
    show_timeline(page)
    box = page.locator("#chart").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + 200)
    page.mouse.move(*middle)
    wait_until(page, "() => !document.getElementById('readout').hidden")
    assert "GPU utilisation" in page.locator("#readout").inner_text()
    page.mouse.click(*middle)
    page.locator("#snapshot").wait_for()
    assert re.search(r"\d:\d\d:\d\d", page.locator("#snapshot-title").inner_text())
    assert "Power / limit" in page.locator("#snapshot-body").inner_text()
    page.keyboard.press("Escape")


@pytest.mark.parametrize("name", [PICTURED[0], *(pytest.param(name, marks=pytest.mark.long) for name in PICTURED[1:])])
def test_pictures_are_kept_wide_and_narrow_light_and_dark(page: Page, reports: Reports, name: str) -> None:
    ARTIFACTS.mkdir(exist_ok=True)
    open_in(page, reports[name].result())
    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            picture = ARTIFACTS / f"{name}-{size}-{scheme}.png"
            page.screenshot(path=picture, full_page=True)
            assert picture.stat().st_size > 50_000
        assert not page.evaluate(OVERFLOWS)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(SIZES["wide"])
