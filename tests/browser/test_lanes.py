"""The lanes of the timeline: what stands in each, and that each can be folded, hidden or brought to the front."""

from dataclasses import replace
from itertools import pairwise
from types import ModuleType

import pandas as pd
import pytest
from playwright.sync_api import Page
from support.browser import drawn, hover_at, show_timeline, show_window, wait_for_plotly, wait_until

from gpu_report.model import Analysis

pytestmark = pytest.mark.browser

MARKS = """() => Object.fromEntries(
  document.getElementById("chart").data
    .filter((t) => t.meta.marks && !["low", "floor"].includes(t.meta.marks)).map((t) => [t.meta.marks, [...t.x]])
)"""
LOOKS = """(gpu) => document.getElementById("chart").data
  .filter((t) => t.meta.gpu === gpu && t.meta.quantity === "memory_used_mib")
  .map((t) => [t.opacity, t.line.dash])[0]"""


def steps(page: Page, quantity: str, start_ms: float) -> list[tuple[float, float] | None]:
    """Return what a line of epochs draws, as (s since the start, value), None where it breaks."""
    line = drawn(page, None, quantity)
    points = zip(line["x"], line["y"], strict=True)
    return [None if y is None else (round((x - start_ms) / 1000, 3), y) for x, y in points]


def test_loss_and_learning_rate_stand_level_over_each_epoch(open_report, analysis: Analysis) -> None:
    first, second, third, *others = analysis.epochs
    epochs = (first, second, replace(third, loss=None), *others)
    page = open_report(replace(analysis, epochs=epochs)).page
    start_ms = round(analysis.run.start_wall_s, 3) * 1000
    expected = [[(e.start_t_s, float(f"{e.loss:.5g}")), (e.end_t_s, float(f"{e.loss:.5g}"))] for e in (first, second)]
    loss = steps(page, "loss", start_ms)
    assert loss[:4] == [point for step in expected for point in step]
    assert loss[4] is None
    assert loss[5] == (others[0].start_t_s, float(f"{others[0].loss:.5g}"))
    page.get_by_role("button", name="Learning rate: 0.0098 throughout").click()  # folded, for it never changes
    wait_until(page, "document.getElementById('chart').data.some((t) => t.meta.quantity === 'lr')")
    assert {value for point in steps(page, "lr", start_ms) if point for value in point[1:]} == {0.0098}


def test_a_flat_loss_looks_flat(open_report, analysis: Analysis) -> None:
    epochs = tuple(replace(epoch, loss=2.0 + 0.001 * epoch.epoch) for epoch in analysis.epochs)
    page = open_report(replace(analysis, epochs=epochs)).page
    low, high = page.evaluate(
        """() => {
          const { data, layout } = document.getElementById("chart");
          const { yaxis } = data.find((t) => t.meta.quantity === "loss");
          return layout[yaxis.replace("y", "yaxis")].range;
        }"""
    )
    assert low < 0
    assert 2 < high < 3


def test_pointing_anywhere_tells_the_loss_of_that_epoch(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    show_timeline(page)
    hover_at(page, analysis.run.start_wall_s + analysis.epochs[2].start_t_s + 20)
    rows = page.locator("#readout tr").all_inner_texts()
    assert [row.split() for row in rows if row.startswith(("Loss", "Learning"))] == [
        ["Loss", "1.083"],
        ["Learning", "rate", "0.0098"],
    ]
    host = page.locator("#readout tr", has_text="Host CPU").locator("td")
    assert host.get_attribute("colspan") == "2"  # it stands under neither of the two GPUs


def test_a_snapshot_tells_how_the_model_learned(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, "#t=40").page
    side = page.locator("#snapshot .snapshot-side").inner_text()
    assert "Loss\n3.25" in side
    assert "Learning rate\n0.0098" in side


def test_a_run_that_told_no_loss_has_no_lane_for_it(open_report, analysis: Analysis) -> None:
    epochs = tuple(replace(epoch, loss=None, lr=None) for epoch in analysis.epochs)
    page = open_report(replace(analysis, epochs=epochs)).page
    heads = page.locator("#lane-heads button").all_inner_texts()
    assert not {"Loss", "Learning rate"} & set(heads)


def test_kernel_lines_checkpoints_gaps_and_notes_share_a_lane(
    open_report, builder: ModuleType, analysis: Analysis
) -> None:
    page = open_report(analysis).page
    start_ms = round(analysis.run.start_wall_s, 3) * 1000
    marks = {name: [round((x - start_ms) / 1000, 3) for x in xs] for name, xs in page.evaluate(MARKS).items()}
    assert marks["kernel"] == [event.t_s for event in analysis.run.kernel.events]
    assert marks["checkpoint"] == [phase.end_t_s for phase in analysis.phases if phase.name == "checkpoint"]
    assert marks["gap"] == [sum(builder.GAP) / 2]
    assert marks["happening"] == [150.0, 200.0]
    show_timeline(page)
    hover_at(page, analysis.run.start_wall_s + 200)
    assert "Marker changed the fan curve" in page.locator("#readout").inner_text()


def test_a_lane_folds_by_its_title_and_stays_so(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    has_power = "document.getElementById('chart').data.some((t) => t.meta.quantity === 'power_w')"
    height = page.locator("#chart").bounding_box()["height"]
    title = page.get_by_role("button", name="Power, W")
    assert title.get_attribute("aria-expanded") == "true"
    title.click()
    wait_until(page, f"!{has_power}")
    assert title.get_attribute("aria-expanded") == "false"
    assert page.locator("#chart").bounding_box()["height"] < height - 80
    assert page.locator("#snapshot").is_hidden()
    page.wait_for_timeout(500)  # Chromium keeps what is to be remembered a little later than it is told
    page.reload()
    page.wait_for_selector("html[data-ready=yes]")
    assert not page.evaluate(has_power)
    title.focus()
    page.keyboard.press("Enter")
    wait_until(page, has_power)
    assert page.locator("#snapshot").is_hidden()
    assert page.locator("#chart").bounding_box()["height"] == height


def test_all_lanes_can_be_folded(open_report, analysis: Analysis) -> None:
    report = open_report(analysis)
    open_ones = "document.querySelectorAll('#lane-heads button[aria-expanded=true]')"
    report.page.evaluate(f"{open_ones}.forEach((title) => title.click())")
    wait_until(report.page, "document.getElementById('chart').data.length === 0")
    report.page.get_by_role("button", name="GPU utilisation, %").click()
    wait_until(report.page, "document.getElementById('chart').data.length > 0")
    assert report.errors == []


def test_of_two_equal_lines_both_are_seen(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    assert page.evaluate(LOOKS, 0) == [1, "solid"]
    assert page.evaluate(LOOKS, 1) == [1, "5px,5px"]  # the line of GPU 0 shows in its gaps


@pytest.mark.parametrize("begin", ["hover", "focus"])
def test_a_gpu_comes_to_the_front_by_pointing_at_its_name(open_report, analysis: Analysis, begin: str) -> None:
    page = open_report(analysis).page
    order = """() => document.getElementById("chart").data
      .filter((t) => t.meta.quantity === "memory_used_mib").map((t) => t.meta.gpu)"""
    getattr(page.locator('[data-gpu-toggle="0"]'), begin)()
    wait_until(page, f"({order})().join() === '1,0'")
    assert page.evaluate(LOOKS, 0) == [1, "solid"]
    assert page.evaluate(LOOKS, 1)[0] < 0.5
    page.mouse.move(5, 5)
    page.locator('[data-gpu-toggle="0"]').blur()
    wait_until(page, f"({order})().join() === '0,1'")


def test_what_the_machine_read_has_a_lane(open_report, builder: ModuleType) -> None:
    analysis = builder.build_detailed_analysis()
    host = analysis.run.host.assign(disk_read_mib_s=12.0, trainer_read_mib_s=11.0)
    page = open_report(replace(analysis, run=replace(analysis.run, host=host))).page
    assert set(drawn(page, None, "disk_read_mib_s")["y"]) - {None} == {12}
    assert "Reads, MiB/s" in page.locator("#lane-heads button").all_inner_texts()
    show_window(page, round(analysis.run.start_wall_s, 3) * 1000, 100, 110)
    assert drawn(page, None, "trainer_read_mib_s")["exact"]


def test_drops_of_several_gpus_at_once_are_shaded(open_report, analysis: Analysis) -> None:
    """Two equal bands in one path would cancel each other out where overlaps were not filled."""
    drop = next(finding for finding in analysis.findings if finding.id == "drop-2")
    both = (replace(drop, id="drop-1", gpu=0), drop)
    page = open_report(replace(analysis, findings=both)).page
    colours = """() => [...document.querySelectorAll("#chart .shapelayer path")]
      .filter((path) => path.getBBox().width > 10 && path.isPointInFill(new DOMPoint(
        path.getBBox().x + path.getBBox().width / 2, path.getBBox().y + path.getBBox().height / 2)))
      .map((path) => path.style.fill)"""
    low_red = page.evaluate("getComputedStyle(document.querySelector('.swatch.drop')).backgroundColor")
    rgb = low_red.removeprefix("rgba(").rsplit(",", 1)[0]
    assert [fill for fill in page.evaluate(colours) if rgb in fill] != []


@pytest.mark.parametrize("count", [2, 8])
def test_the_balance_of_gpus_is_a_strip_for_each_one_under_the_other(
    open_report, analysis: Analysis, count: int
) -> None:
    one = analysis.run.samples[analysis.run.samples["gpu"] == 0]
    frames = [one.assign(gpu=float(gpu), gpu_util_pct=one["gpu_util_pct"] * (gpu != 1)) for gpu in range(count)]
    gpus = tuple(replace(analysis.run.gpus[0], index=gpu) for gpu in range(count))
    run = replace(analysis.run, samples=pd.concat(frames, ignore_index=True), gpus=gpus)
    summaries = tuple(replace(analysis.gpus[0], gpu=gpu) for gpu in gpus)
    page = open_report(replace(analysis, run=run, gpus=summaries, findings=())).page
    strips = page.locator(".balance .heat")
    assert strips.count() == count
    boxes = [strip.bounding_box() for strip in strips.all()]
    assert len({(box["x"], box["width"]) for box in boxes}) == 1  # on one axis of time
    assert [low["y"] - high["y"] for high, low in pairwise(boxes)] == pytest.approx(
        [boxes[1]["y"] - boxes[0]["y"]] * (count - 1)
    )
    assert strips.nth(1).locator("rect:not(.heat-0)").count() == 0  # the idle one differs from all others at a glance
    assert strips.nth(0).locator(".heat-4").count() > 5
    box = boxes[0]
    strips.nth(0).scroll_into_view_if_needed()
    strips.nth(0).click(position={"x": box["width"] / 4, "y": 4})
    assert float(page.url.split("#t=")[1]) == pytest.approx(150, abs=3)


def test_with_every_gpu_switched_off_the_lanes_stay_and_say_why(open_report, analysis: Analysis) -> None:
    opened = open_report(analysis)
    page = opened.page
    axes = "Object.keys(document.getElementById('chart')._fullLayout).filter((name) => /^yaxis/.test(name)).length"
    before = page.evaluate(axes)
    for chip in page.locator("[data-gpu-toggle]").all():
        chip.click()
    wait_for_plotly(page)
    assert page.evaluate(axes) == before
    assert page.locator("#chart .annotation").filter(has_text="every GPU is switched off").count() == 1
    assert opened.errors == []
