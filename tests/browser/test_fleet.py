"""The page of a fleet in real Chromium: groups, search, choice by a click, sorting; wide, narrow, light and dark."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.fleet import copied, indexed

from gpu_report.fleet.figures import read_fleet
from gpu_report.fleet.page import render_fleet_html
from gpu_report.fleet.words import hours_words

pytestmark = pytest.mark.browser

HOSTILE = '</script><img src=x onerror="window.planted=1">'


@pytest.fixture(scope="module")
def page_of_fleet(tmp_path_factory) -> Path:
    """The page of 60 runs by three users, one of whom has a name that no page should run."""
    base = tmp_path_factory.mktemp("fleet")
    indexed(copied(base / "runs", **{"starved one": "n-starved", "half": "m-two-gpus-one-used"}), base / "fleet")
    fleet = read_fleet(base / "fleet", price=2.0)
    runs = fleet.runs.loc[fleet.runs.index.repeat(30)].reset_index(drop=True)
    runs["run"] = [f"{number:016x}" for number in range(60)]
    runs["path"] = [f"/data/run-{number:02d}" for number in range(60)]
    runs.loc[0, "path"] = str(base / "runs" / "starved one")
    runs["user"] = [("ann", "bob", HOSTILE)[number % 3] for number in range(60)]
    ledger = fleet.ledger.assign(run=runs["run"].iloc[0])
    path = base / "fleet.html"
    path.write_text(render_fleet_html(replace(fleet, runs=runs, ledger=ledger), path), encoding="utf-8")
    return path


def test_a_person_finds_what_a_user_and_a_cause_took(browser, page_of_fleet):
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.add_init_script(
        "addEventListener('securitypolicyviolation', (e) => console.error('CSP', e.violatedDirective));"
    )
    page.goto(page_of_fleet.as_uri())
    page.wait_for_selector("html[data-ready=yes]")

    assert page.locator("#groups tbody tr").count() == 3
    assert page.locator("#list tbody tr").count() == 25
    page.get_by_role("button", name="Show 35 more of 35").click()
    assert page.locator("#list tbody tr").count() == 60

    page.locator("#groups").get_by_role("button", name="ann").click()
    assert page.locator("#chosen-runs").inner_text().startswith("20 of 60 runs: ")
    page.get_by_label("Search").fill("RUN-3")
    assert page.locator("#chosen-runs").inner_text().startswith("4 of 60 runs: ")
    page.get_by_role("button", name="Leave out the choice ann").click()
    assert page.locator("#chosen-runs").inner_text().startswith("10 of 60 runs: ")

    page.locator("#list thead").get_by_role("button", name="Run").click()
    assert page.locator("#list tbody th").first.inner_text() == "/data/run-30"
    page.locator("#list thead").get_by_role("button", name="Run").click()
    assert page.locator("#list tbody th").first.inner_text() == "/data/run-39"

    page.get_by_label("Search").fill("")
    page.get_by_label("Group by").select_option("cause")
    page.locator("#groups").get_by_role("button", name="Waiting for data (CPU)").click()
    assert page.locator("#chosen-runs").inner_text().startswith("1 of 60 runs: ")
    of_cause = read_fleet(page_of_fleet.parent / "fleet", cause="input-cpu").total("lost_h")
    assert f"{hours_words(of_cause)} h lost" in page.locator("#chosen-runs").inner_text()
    assert page.locator("#list tbody a").get_attribute("href") == "./runs/starved%20one"

    for width, scheme in ((390, "dark"), (390, "light"), (1280, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.planted") is None
    assert wrong == []
    context.close()
