"""The heat strip of four and more GPUs: a row for each, with the lanes' zoom, read-out, moments and drops."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial

import pandas as pd
import pytest
from playwright.sync_api import Page
from support.browser import drawn, show_timeline, show_window, wait_for_plotly, wait_until

from gpu_report.model import Analysis

pytestmark = pytest.mark.browser

IDLE = 2  # the GPU that does nothing
DROPPED = 3  # the one with a drop

# The colour of a GPU's row at a share of the lanes' width, as red, green and blue; of the lowest px where asked for.
PIXEL = """([gpu, share, isLow]) => {
  const canvas = document.getElementById("heat");
  const name = document.querySelector(`[data-row="${gpu}"]`).getBoundingClientRect();
  const box = canvas.getBoundingClientRect();
  const y = isLow ? name.bottom - 2 : name.top + name.height * 0.35;
  const [across, down] = [50 + share * (box.width - 64), y - box.top].map((px) => Math.round(px * devicePixelRatio));
  return [...canvas.getContext("2d").getImageData(across, down, 1, 1).data].slice(0, 3);
}"""
LINES = """() => document.getElementById("chart").data
  .filter((t) => t.meta.quantity === "gpu_util_pct").map((t) => t.meta.gpu)"""


def many(analysis: Analysis, count: int) -> Analysis:
    """Return a run of so many GPUs: one does nothing, and one has the drops that GPU 0 had."""
    one = analysis.run.samples_of(0)
    frames = [one.assign(gpu=float(gpu), gpu_util_pct=one["gpu_util_pct"] * (gpu != IDLE)) for gpu in range(count)]
    gpus = tuple(replace(analysis.run.gpus[0], index=gpu) for gpu in range(count))
    run = replace(
        analysis.run, samples=pd.concat(frames, ignore_index=True), gpus=gpus, ring=analysis.run.ring.iloc[:0]
    )
    drop = next(finding for finding in analysis.findings if finding.level_pct is not None and not finding.expected)
    return replace(
        analysis,
        run=run,
        gpus=tuple(replace(analysis.gpus[0], gpu=gpu) for gpu in gpus),
        findings=(replace(drop, gpu=DROPPED, gpus=(DROPPED,), occurrences=()),),
        low_intervals=(),
    )


@pytest.fixture(scope="module")
def runs_of(analysis: Analysis) -> Callable[[int], Analysis]:
    """A function that returns the run of so many GPUs, the same one each time: its report is rendered once."""
    return cache(partial(many, analysis))


@pytest.fixture
def heat(open_report: Callable, runs_of: Callable[[int], Analysis]) -> Callable[[int], Page]:
    """A function that opens the report of so many GPUs at its timeline."""

    def opened(count: int) -> Page:
        page = open_report(runs_of(count)).page
        show_timeline(page)
        return page

    return opened


def colour(page: Page, gpu: int, share: float, *, is_low: bool = False) -> list[int]:
    return page.evaluate(PIXEL, [gpu, share, is_low])


@pytest.mark.parametrize("count", [4, 16])
def test_each_gpu_has_a_row_and_the_idle_one_is_seen_at_a_glance(heat: Callable[[int], Page], count: int) -> None:
    page = heat(count)
    names = page.locator("#gpu-rows button:visible")
    assert names.all_inner_texts() == [f"GPU {gpu}" for gpu in range(count)]
    boxes = [name.bounding_box() for name in names.all()]
    assert all(box["height"] >= 12 for box in boxes)
    assert all(box["x"] >= page.locator(".chart-frame").bounding_box()["x"] for box in boxes)
    assert page.evaluate(LINES) == []
    pale = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--heat-0')")
    assert "#ffe6c0" in pale
    assert colour(page, IDLE, 0.4) == [0xFF, 0xE6, 0xC0]
    assert sum(colour(page, 0, 0.4)) < sum(colour(page, IDLE, 0.4)) - 150


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_gpus_have_lines(open_report: Callable, analysis: Analysis, count: int) -> None:
    page = open_report(many(analysis, count) if count > 1 else replace(analysis, gpus=analysis.gpus[:1])).page
    assert page.locator("#heat").is_hidden()
    assert page.locator("#gpu-rows button:visible").count() == 0
    assert len(page.evaluate(LINES)) >= count


def test_a_drop_is_framed_in_the_row_of_its_gpu_alone(heat: Callable[[int], Page], analysis: Analysis) -> None:
    page = heat(8)
    drop = next(finding for finding in analysis.findings if finding.level_pct is not None and not finding.expected)
    share = (drop.start_t_s + drop.end_t_s) / 2 / analysis.run.duration_s
    red, green, _ = colour(page, DROPPED, share, is_low=True)
    assert red > green + 120
    red, green, _ = colour(page, DROPPED + 1, share, is_low=True)
    assert red <= green + 120


def test_a_row_opens_its_lines_and_closes_them(heat: Callable[[int], Page]) -> None:
    page = heat(8)
    row = page.locator('[data-row="5"]')
    row.click()
    wait_until(page, f"({LINES})().join() === '5'")
    assert row.get_attribute("aria-expanded") == "true"
    assert "GPU 5: GPU utilisation, %" in page.locator("#lane-heads button").all_inner_texts()
    grey, own = (
        page.evaluate(
            """(gpu) => document.getElementById("chart").data
              .find((t) => t.meta.gpu === gpu && t.meta.quantity === "power_w").line.color""",
            gpu,
        )
        for gpu in (4, 5)
    )
    assert grey != own
    row.click()
    wait_until(page, f"({LINES})().length === 0")
    assert row.get_attribute("aria-expanded") == "false"
    assert page.locator("#snapshot").is_hidden()


OF_POWER = """() => {
  const { data } = document.getElementById("chart");
  const lane = data.find(({ meta }) => [meta.mean, meta.quantity].includes("power_w")).yaxis;
  return data.filter((t) => t.yaxis === lane).map(({ meta }) => meta.range ? "range" : meta.mean ? "mean" : meta.gpu);
}"""


@pytest.mark.parametrize(("width", "drawn_as"), [(390, ["range", "mean"]), (1200, [*range(8)])])
def test_on_a_phone_many_gpus_are_their_mean_and_range(
    open_report: Callable, runs_of: Callable[[int], Analysis], width: int, drawn_as: list[object]
) -> None:
    page = open_report(runs_of(8), viewport={"width": width, "height": 900}).page
    show_timeline(page)
    assert page.evaluate(OF_POWER) == drawn_as
    page.locator('[data-row="5"]').click()
    wait_until(page, f"({LINES})().join() === '5'")
    assert page.evaluate(OF_POWER) == [*(drawn for drawn in drawn_as if drawn != 5), 5]


def test_rows_are_reached_by_keys(heat: Callable[[int], Page]) -> None:
    page = heat(8)
    stops = "[...document.querySelectorAll('#gpu-rows button')].filter((each) => each.tabIndex === 0).length"
    assert page.evaluate(stops) == 1
    page.locator('[data-row="0"]').focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.dataset.row") == "2"
    page.keyboard.press("Enter")
    wait_until(page, f"({LINES})().join() === '2'")
    assert page.evaluate("document.activeElement.dataset.row") == "2"
    assert page.locator('[data-row="2"]').get_attribute("aria-label") == "Lines of GPU 2, 0 % on average in view"
    assert page.evaluate(stops) == 1


@pytest.mark.parametrize("gpu", [1, 13])
def test_the_read_out_names_the_gpu_whose_row_is_pointed_at(heat: Callable[[int], Page], gpu: int) -> None:
    page = heat(16)
    box = page.locator(f'[data-row="{gpu}"]').bounding_box()
    chart = page.locator("#chart").bounding_box()
    page.mouse.move(chart["x"] + chart["width"] / 2, box["y"] + box["height"] / 2)
    wait_until(page, "() => !document.getElementById('readout').hidden")
    assert page.locator("#readout .pointed").all_inner_texts() == [f"GPU {gpu}"]
    assert page.locator("#gpu-rows .pointed").all_inner_texts() == [f"GPU {gpu}"]


def test_a_strip_and_the_read_out_agree_on_a_moment(heat: Callable[[int], Page], analysis: Analysis) -> None:
    """Zoomed in to single readings, the colour under the pointer is that of the value in the read-out."""
    page = heat(8)
    show_window(page, round(analysis.run.start_wall_s, 3) * 1000, 100, 110)
    chart = page.locator("#chart").bounding_box()
    row = page.locator('[data-row="0"]').bounding_box()
    for share in (0.2, 0.43, 0.77):
        page.mouse.move(chart["x"] + 50 + share * (chart["width"] - 64), row["y"] + row["height"] / 2)
        wait_until(page, "() => !document.getElementById('readout').hidden")
        page.wait_for_timeout(50)
        text = page.locator("#readout tr", has_text="GPU utilisation").locator("td").first.inner_text()
        place = float(text) / 25
        stops = [[0xFF, 0xE6, 0xC0], [0xC1, 0xBE, 0xB7], [0x86, 0x96, 0xAB], [0x4D, 0x6E, 0x9C], [0x0C, 0x45, 0x8B]]
        below = min(int(place), 3)
        expected = [a + (place - below) * (b - a) for a, b in zip(stops[below], stops[below + 1], strict=True)]
        assert colour(page, 0, share) == pytest.approx(expected, abs=1.5)


def test_a_click_on_a_row_picks_the_moment(heat: Callable[[int], Page]) -> None:
    page = heat(4)
    row = page.locator('[data-row="1"]').bounding_box()
    chart = page.locator("#chart").bounding_box()
    page.mouse.click(chart["x"] + chart["width"] / 2, row["y"] + row["height"] / 2)
    assert page.locator("#snapshot").is_visible()


def test_a_gpu_that_is_switched_off_has_no_row(heat: Callable[[int], Page]) -> None:
    page = heat(4)
    height = page.locator("#chart").bounding_box()["height"]
    page.locator('[data-gpu-toggle="2"]').click()
    wait_for_plotly(page)
    assert page.locator("#gpu-rows button:visible").all_inner_texts() == ["GPU 0", "GPU 1", "GPU 3"]
    assert page.locator("#chart").bounding_box()["height"] <= height
    for gpu in (0, 1, 3):
        page.locator(f'[data-gpu-toggle="{gpu}"]').click()
    wait_for_plotly(page)
    assert page.locator("#chart .annotation").filter(has_text="every GPU is switched off").count() == 1


def test_a_folded_strip_leaves_no_names(heat: Callable[[int], Page]) -> None:
    page = heat(4)
    page.get_by_role("button", name="GPU utilisation, %").click()
    wait_for_plotly(page)
    assert page.locator("#gpu-rows button:visible").count() == 0
    page.get_by_role("button", name="GPU utilisation, %").click()
    wait_for_plotly(page)
    assert page.locator("#gpu-rows button:visible").count() == 4
    assert drawn(page, 0, "memory_used_mib")["y"]


@pytest.mark.parametrize("settings", [{"has_touch": True, "viewport": {"width": 390, "height": 800}}])
def test_on_a_phone_rows_are_high_enough_for_a_finger(
    open_report: Callable, analysis: Analysis, settings: dict[str, object]
) -> None:
    page = open_report(many(analysis, 16), is_mobile=True, **settings).page
    assert page.locator('[data-row="7"]').bounding_box()["height"] >= 24
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
