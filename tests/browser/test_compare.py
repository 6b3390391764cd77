"""The comparison page in real Chromium: what an epoch reads, light and dark, wide and narrow, and nothing runs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from support.compared import analysed, on_gpu, slower, with_findings, with_settings

from gpu_report.analyse.compare import compare, without_baseline
from gpu_report.analyse.compare.gate_syntax import default_gates
from gpu_report.model import Cause, Comparison, Finding, LineChange, Sentence, Verdict
from gpu_report.render.comparison.page import render_comparison_html

pytestmark = pytest.mark.browser

HOSTILE = '</script><script>window.planted=1</script><img src=x onerror="window.planted=1">'
GATES = default_gates(baseline=True)


@dataclass
class Opened:
    """A comparison open in Chromium, with everything that went wrong in it and everything it asked for."""

    page: Page
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture
def open_comparison(browser: Browser, tmp_path: Path) -> Iterator[Callable[..., Opened]]:
    contexts = []

    def opener(of: Comparison, **settings: object) -> Opened:
        path = tmp_path / "compare.html"
        path.write_text(render_comparison_html(of), encoding="utf-8")
        contexts.append(browser.new_context(**{"viewport": {"width": 1400, "height": 1000}, **settings}))
        opened = Opened(contexts[-1].new_page())
        opened.page.on("console", lambda m: opened.errors.append(m.text) if m.type in {"error", "warning"} else None)
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.add_init_script(
            "addEventListener('securitypolicyviolation', (e) => console.error('CSP', e.violatedDirective));"
        )
        opened.page.goto(path.as_uri())
        opened.page.wait_for_selector("html[data-ready=yes]", timeout=30_000)
        return opened

    yield opener
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def worse() -> Comparison:
    return compare([analysed("n-fed")], analysed("n-starved"), GATES)


LINES = (
    LineChange("main", "log_images_of_the_validation_set" * 3, "/me/callbacks.py", 41, 57, 0.2, 3.2),
    LineChange("workers", "load", "/me/data.py", None, 9, 0.0, 2.0),
    LineChange("main", HOSTILE, f"/me/{HOSTILE}", 3, 3, 2.0, 0.5),
    LineChange("main", "save", "/me/callbacks.py", 70, None, 0.5, 0.0),
)


def wide_as_the_window(page: Page) -> bool:
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1400, 700, 360])
def test_it_opens_clean_at_any_width_in_light_and_dark(open_comparison, worse, width, scheme):
    opened = open_comparison(worse, viewport={"width": width, "height": 900}, color_scheme=scheme)
    assert opened.errors == []
    assert len(opened.requests) == 1
    assert wide_as_the_window(opened.page)
    assert (
        opened.page.locator(".verdict-words")
        .inner_text()
        .startswith("Training per epoch 2.9\u00a0s \u2192 12.2\u00a0s")
    )


def test_a_phone_shows_what_changed_and_what_that_means_without_scrolling(open_comparison, worse):
    page = open_comparison(worse, viewport={"width": 360, "height": 740}).page
    row = page.locator(".metrics tbody tr").first
    for part in (".change", ".judgement"):
        box = row.locator(part).bounding_box()
        assert box["width"] > 0
        assert box["x"] + box["width"] <= 360


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_shows_the_findings_whole(open_comparison, width):
    bad = Finding(
        "drop-1", "drop", "warning", 0, 1.0, 20.0, "GPU 0 " + "fell for long " * 9, cause=Cause("thermal", 1, "")
    )
    both = with_findings(analysed("s-healthy")), with_findings(analysed("s-healthy"), bad)
    page = open_comparison(compare(both[:1], both[1], GATES), viewport={"width": width, "height": 740}).page
    table = page.locator(".kinds")
    assert page.locator(".scroll:has(.kinds)").evaluate("box => box.scrollWidth <= box.clientWidth")
    for cell in table.locator("tbody :is(th, td)").all():
        box = cell.bounding_box()
        assert box["width"] > 0
        assert box["x"] + box["width"] <= width
    assert table.locator("td[data-head]").all_inner_texts() == ["none", "1, 19.0 s"]


@pytest.mark.parametrize("width", [360, 390])
def test_a_phone_shows_the_lines_of_code_whole(open_comparison, worse, width):
    found = replace(worse, code_lines=LINES)
    page = open_comparison(found, viewport={"width": width, "height": 740}).page
    assert page.locator(".scroll:has(.changed-lines)").evaluate("box => box.scrollWidth <= box.clientWidth")
    for cell in page.locator(".changed-lines tbody :is(th, td)").all():
        box = cell.bounding_box()
        assert box["width"] > 0
        assert box["x"] + box["width"] <= width
    assert page.locator(".changed-lines .change").all_inner_texts()[:2] == ["+3.00 s", "+2.00 s"]


def test_a_phone_shows_what_was_set_up_otherwise_whole(open_comparison):
    found = compare([analysed("yolo26m-detail")], analysed("m-healthy"), GATES)
    page = open_comparison(found, viewport={"width": 390, "height": 740}).page
    assert page.locator(".differences tbody tr").count() == len(found.differences) > 5
    assert page.locator(".scroll:has(.differences)").evaluate("box => box.scrollWidth <= box.clientWidth")


def test_each_run_has_one_colour_in_all_its_lines(open_comparison, worse):
    page = open_comparison(worse).page
    colour = "(path) => getComputedStyle(path).stroke"
    lanes = page.locator(".lane-line").evaluate_all(f"paths => paths.map({colour})")
    lines = [page.locator(f".epoch-line.line-{run}").first.evaluate(colour) for run in ("before", "after")]
    assert lanes == lines


def test_pointing_at_an_epoch_reads_it_in_both_runs(open_comparison, worse):
    page = open_comparison(worse).page
    chart = page.locator(".aligned-panels svg").first
    chart.scroll_into_view_if_needed()
    area = chart.bounding_box()
    page.mouse.move(area["x"] + area["width"] * 1.5 / 12, area["y"] + 20)
    readout = page.locator("#epoch-readout")
    assert readout.inner_text().splitlines() == [
        "Epoch 2",
        "before: trained 3.10 s, waited 9.7 ms, utilisation 69 %",
        "now: trained 11.2 s, waited 8.42 s, utilisation 22 %",
    ]
    cursor = page.locator("#epoch-cursor").bounding_box()
    assert cursor["x"] == pytest.approx(area["x"] + area["width"] / 12, abs=1)
    assert cursor["width"] == pytest.approx(area["width"] / 12, abs=1)


def test_arrow_keys_go_from_epoch_to_epoch(open_comparison, worse):
    page = open_comparison(worse).page
    page.locator("#aligned").focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert page.locator("#epoch-readout").inner_text().startswith("Epoch 3")
    page.keyboard.press("ArrowLeft")
    assert page.locator("#epoch-readout").inner_text().startswith("Epoch 2")


def test_the_same_epoch_stands_at_the_same_place_in_both_lanes(open_comparison, worse):
    page = open_comparison(worse).page
    edges = page.evaluate(
        """() => [...document.querySelectorAll(".lane-phases")].map((lane) =>
          [...lane.querySelectorAll(".part-train")].map((part) => Math.round(part.getBoundingClientRect().left)))"""
    )
    assert edges[0][:3] == edges[1]


def test_the_theme_can_be_switched(open_comparison, worse):
    page = open_comparison(worse, color_scheme="light").page
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.locator("#theme").inner_text() == "Light"


def test_what_cannot_be_compared_is_shown_without_a_judgement(open_comparison):
    found = compare([on_gpu(analysed("m-healthy"), "NVIDIA L4")], analysed("m-healthy"), GATES)
    page = open_comparison(found).page
    assert page.locator(".verdict-words").inner_text() == "Not comparable."
    assert page.locator(".verdict-rest").inner_text().startswith("GPU model:")
    assert page.locator(".judgement").count() == 0
    # the reason is said once, and the gates by name
    outcome = page.locator(".outcome").inner_text()
    assert all(gate.text in outcome for gate in GATES)
    assert page.locator(".gate").count() == 0


def in_the_band():
    before = [analysed(f"../tests/data/same_setup/run-{n}") for n in (1, 2, 3)]
    return compare(before, analysed("../tests/data/same_setup/run-4"), GATES)


def no_baseline():
    return without_baseline(analysed("m-healthy"), GATES, "there is no baseline yet")


@pytest.mark.parametrize("made", [in_the_band, no_baseline])
@pytest.mark.parametrize("width", [1200, 360])
def test_several_baselines_and_none_fit_the_window_too(open_comparison, made, width):
    opened = open_comparison(made(), viewport={"width": width, "height": 900})
    assert opened.errors == []
    assert wide_as_the_window(opened.page)
    last = opened.page.locator(".metrics tbody tr").first.locator("td").last.bounding_box()
    assert last is None or last["x"] + last["width"] <= width


def test_nothing_that_a_run_holds_is_run(open_comparison):
    bad = Finding("drop-1", "drop", "warning", 0, 1.0, 20.0, HOSTILE, cause=Cause(HOSTILE, 0.5, HOSTILE))
    run = with_findings(with_settings(slower(analysed("s-healthy"), 1.3), data=HOSTILE), bad)
    run = replace(run, run=replace(run.run, path=f"runs/{HOSTILE}"), verdict=Verdict((Sentence("work", HOSTILE),)))
    opened = open_comparison(replace(compare([analysed("s-healthy")], run, GATES), code_lines=LINES))
    assert opened.page.evaluate("window.planted") is None
    assert (opened.errors, len(opened.requests)) == ([], 1)
    assert "onerror" in opened.page.locator("#findings").inner_text()
    assert "onerror" in opened.page.locator("#lines").inner_text()


def test_texts_can_be_read_against_their_background(open_comparison, worse):
    """WCAG AA: 4.5 to 1 for text of this size, in both themes."""
    script = """() => {
      const paper = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
      const rgb = (colour) => { paper.clearRect(0, 0, 1, 1); paper.fillStyle = colour; paper.fillRect(0, 0, 1, 1);
        return [...paper.getImageData(0, 0, 1, 1).data]; };
      const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 :
        ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
      const under = (node) => { for (; node; node = node.parentElement) {
        const colour = rgb(getComputedStyle(node).backgroundColor); if (colour[3] === 255) return colour; } };
      const bad = [];
      for (const node of document.querySelectorAll("main *, header *")) {
        if (![...node.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
        if (node.closest("svg, [hidden], details:not([open]) > :not(summary)")) continue;
        const [a, b] = [light(rgb(getComputedStyle(node).color)), light(under(node))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) bad.push([node.className, node.textContent.trim().slice(0, 30)]);
      }
      return bad;
    }"""
    for scheme in ("light", "dark"):
        found = replace(worse, code_lines=LINES)
        assert open_comparison(found, color_scheme=scheme).page.evaluate(script) == []


@pytest.mark.parametrize("width", [1180, 920, 820, 390])
def test_the_table_of_metrics_has_no_edge_to_scroll_to(
    open_comparison: Callable[..., Opened], worse: Comparison, width: int
) -> None:
    page = open_comparison(worse, viewport={"width": width, "height": 900}).page
    box = page.locator(".scroll:has(.metrics)")
    assert box.evaluate("box => box.scrollWidth - box.clientWidth") <= 1
    heads = page.locator(".metrics thead th:visible").count()
    assert heads in {0, page.locator(".metrics tbody tr").first.locator("th:visible, td:visible").count()}
