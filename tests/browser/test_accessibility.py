"""What an accessibility checker says of the report (axe-core, fetched by `make test`), and motion, zoom and focus."""

from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType

import pandas as pd
import pytest
from conftest import REPOSITORY
from playwright.sync_api import Page
from support.browser import wait_until

from gpu_report.model import Analysis

pytestmark = pytest.mark.browser

AXE = REPOSITORY / ".npm" / "axe-core" / "axe.min.js"
# What each state of the page changes, and the checker looks through: the rest is that of the plain one.
STATES = {
    "plain": "html",
    "phone": "html",
    "snapshot": "#timeline",
    "folded": "#timeline",
    "help": "#help",
    "filtered": "#findings",
}
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
# Dark is the same page in other colours.
ALL_RULES: dict[str, object] = {}
OF_COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}


@pytest.fixture(scope="module")
def axe() -> str:
    if not AXE.exists():
        pytest.fail("axe-core is missing: `make test` fetches it (.ci/fetch-npm)", pytrace=False)
    return AXE.read_text(encoding="utf-8")


def violations(page: Page, axe: str, of: str = "html", rules: Mapping[str, object] = ALL_RULES) -> list[str]:
    """Return what axe-core holds against a part of the page as it stands, of any severity."""
    if page.evaluate("typeof axe === 'undefined'"):
        page.evaluate(axe)  # not a script of the page: its policy would forbid that
    found = page.evaluate(
        "([of, rules]) => axe.run(of, { ...rules, resultTypes: ['violations'] }).then((result) => result.violations)",
        [of, rules],
    )
    return [f"{v['impact']} {v['id']}: {[node['html'][:160] for node in v['nodes']]}" for v in found]


def put_into(page: Page, state: str) -> None:
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    if state == "help":
        page.keyboard.press("?")
    elif state == "filtered":
        page.locator("#filter input").fill("validation")
    elif state == "folded":
        page.locator("#lane-heads button").first.click()


@pytest.fixture(scope="module")
def detailed(builder: ModuleType) -> Analysis:
    return builder.build_detailed_analysis()


@pytest.mark.parametrize("state", STATES)
def test_a_checker_finds_nothing_in_light_and_dark(open_report, detailed: Analysis, axe: str, state: str) -> None:
    width = 390 if state == "phone" else 1400
    address = "#t=255" if state == "snapshot" else ""
    page = open_report(detailed, address, color_scheme="light", viewport={"width": width, "height": 900}).page
    put_into(page, state)
    assert page.locator(STATES[state]).is_visible()
    assert violations(page, axe, STATES[state]) == []
    light = page.evaluate(BACKGROUND)
    page.emulate_media(color_scheme="dark")
    wait_until(page, f"(light) => {BACKGROUND} !== light", light)
    assert violations(page, axe, STATES[state], OF_COLOURS) == []


@pytest.mark.parametrize("kind", ["build_quiet_analysis", "build_empty_analysis"])
def test_a_checker_finds_nothing_where_little_is_known(open_report, builder: ModuleType, axe: str, kind: str) -> None:
    assert violations(open_report(getattr(builder, kind)()).page, axe) == []


@pytest.mark.parametrize(("state", "scheme"), [("plain", "light"), ("phone", "dark")])
def test_a_checker_finds_nothing_in_a_run_of_inference(
    open_report, builder: ModuleType, axe: str, state: str, scheme: str
) -> None:
    width = 390 if state == "phone" else 1400
    viewport = {"width": width, "height": 900}
    page = open_report(builder.build_inference_analysis(), color_scheme=scheme, viewport=viewport).page
    put_into(page, state)
    assert violations(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_checker_would_find_something(open_report, analysis: Analysis, axe: str) -> None:
    page = open_report(analysis).page
    page.evaluate("document.querySelector('h1').insertAdjacentHTML('afterend', '<button></button>')")
    assert any("critical button-name" in violation for violation in violations(page, axe))
    page.evaluate("document.querySelector('#findings h2').style.color = '#ddd'")
    assert any("serious color-contrast:" in violation for violation in violations(page, axe, "#findings", OF_COLOURS))


def test_every_control_shows_that_it_has_the_focus(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    bare = []
    page.keyboard.press("Tab")
    for _ in range(60):
        seen = page.evaluate(
            """() => {
              const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
              const isSeen = outlineStyle !== "none" && outlineWidth !== "0px";
              return [document.activeElement.outerHTML.slice(0, 100), isSeen];
            }"""
        )
        bare += [] if seen[1] else [seen[0]]
        page.keyboard.press("Tab")
    assert bare == []


def test_the_first_key_leads_past_the_header(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the findings"
    assert page.locator(".skip").bounding_box()["x"] >= 0
    page.keyboard.press("Enter")
    wait_until(page, "location.hash === '#findings'")


@pytest.mark.parametrize(("wish", "behaviour"), [("reduce", "auto"), ("no-preference", "smooth")])
def test_nothing_moves_for_who_wants_no_motion(open_report, analysis: Analysis, wish: str, behaviour: str) -> None:
    page = open_report(analysis, reduced_motion=wish).page
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == behaviour
    moving = """() => [...document.querySelectorAll("*")].filter((element) => {
      const { animationName, transitionDuration } = getComputedStyle(element);
      return animationName !== "none" || parseFloat(transitionDuration) > 0;
    }).length"""
    assert page.evaluate(moving) == 0


def test_letters_of_twice_the_size_break_nothing(open_report, analysis: Analysis) -> None:
    """A page of 1400 px at 200 % has the room of 700 px (WCAG 2.2, 1.4.4), at 400 % that of 350 px (1.4.10)."""
    for width in (700, 350):
        page = open_report(analysis, viewport={"width": width, "height": 600}).page
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_run_of_many_gpus_is_no_worse(open_report, analysis: Analysis, axe: str) -> None:
    one = analysis.run.samples[analysis.run.samples["gpu"] == 0]
    gpus = tuple(replace(analysis.run.gpus[0], index=index) for index in range(8))
    samples = pd.concat([one.assign(gpu=float(index)) for index in range(8)], ignore_index=True)
    run = replace(analysis.run, samples=samples, gpus=gpus)
    summaries = tuple(replace(analysis.gpus[0], gpu=gpu) for gpu in gpus)
    assert violations(open_report(replace(analysis, run=run, gpus=summaries)).page, axe) == []
