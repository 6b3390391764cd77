"""The page of a job in real Chromium, wide and narrow: nodes fold, strips are read off, nothing runs or is loaded."""

import pytest
from playwright.sync_api import Browser
from support.hostile import STRINGS
from support.made_job import hostile_job

from gpu_report.analyse.job import analyse_job
from gpu_report.render.job.page import render_job_html

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1280, 390])
def test_a_job_reads_and_folds(browser: Browser, tmp_path, width):
    path = tmp_path / "job.html"
    path.write_text(render_job_html(analyse_job(hostile_job(STRINGS[0]))), encoding="utf-8")
    context = browser.new_context(viewport={"width": width, "height": 900})
    page, wrong, requests = context.new_page(), [], []
    page.on("console", lambda message: wrong.append(message.text) if message.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready=yes]")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.planted") is None
    folded = page.locator("#node-1")
    assert folded.locator(".strip-row").first.is_visible()  # of so few GPUs all are shown
    folded.locator("summary").click(position={"x": 5, "y": 5})
    assert not folded.locator(".strip-row").first.is_visible()
    page.locator("#node-0 .strip").first.hover()
    assert "node 0: 88 to 100 % busy" in page.locator("#strip-readout").inner_text()
    assert (wrong, requests) == ([], [path.as_uri()])
    context.close()
