"""The report in real Chromium: what is drawn, what a click shows, and that nothing runs or leaves the page."""

import csv
from dataclasses import replace
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Page
from support.browser import (
    cell,
    click_at,
    drawn,
    hover_at,
    milliseconds,
    show_timeline,
    show_window,
    wait_for_plotly,
    wait_until,
)

from gpu_report import schema
from gpu_report.model import Analysis, GpuSummary, Outlier

pytestmark = pytest.mark.browser

LINES = ("gpu_util_pct", "memory_used_mib", "power_w", "temperature_c", "sm_clock_mhz")
ALL_OF_DAY_S = 86_400
DAY_DIP_T_S = 40_000


@pytest.fixture(scope="module")
def long_analysis(analysis: Analysis) -> Analysis:
    """A day at 1 Hz on GPU 0, busy but for one sample that reads 7 %."""
    t_s = np.arange(ALL_OF_DAY_S, dtype=float)
    util = np.where(t_s == DAY_DIP_T_S, 7.0, 80.0 + t_s % 9)
    frame = pd.DataFrame({"t_s": t_s, "gpu": 0.0, "gpu_util_pct": util})
    samples = frame.reindex(columns=["t_s", "gpu", *(c.name for c in schema.GPU_QUANTITIES)]).astype(float)
    run = replace(analysis.run, samples=samples, gpus=analysis.run.gpus[:1], duration_s=float(ALL_OF_DAY_S))
    summary = GpuSummary(run.gpus[0], len(samples), {}, None, "none")
    quiet = replace(analysis, epochs=(), phases=(), low_intervals=(), gaps=(), findings=(), ledger=())
    return replace(quiet, run=run, gpus=(summary,))


def test_the_page_opens_without_an_error_or_a_request(open_report, analysis: Analysis) -> None:
    report = open_report(analysis)
    report.page.mouse.move(700, 500)
    report.page.wait_for_timeout(200)
    assert report.errors == []
    assert report.requests == [report.path.as_uri()]
    assert report.page.locator("#chart .main-svg").count() > 0


def test_nothing_stays_blank_in_a_picture_of_the_whole_page(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    is_skipped = "part.checkVisibility() && !part.checkVisibility({ contentVisibilityAuto: true })"
    parts = page.evaluate(f"[...document.querySelectorAll('main *')].map((part) => {is_skipped})")
    assert len(parts) > 500
    assert not any(parts)


def test_what_is_drawn_is_what_was_recorded(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    for gpu in (0, 1):
        for quantity in LINES:
            assert_drawn_as_recorded(page, analysis, gpu, quantity)


def assert_drawn_as_recorded(page: Page, analysis: Analysis, gpu: int, quantity: str) -> None:
    samples = analysis.run.samples[analysis.run.samples["gpu"] == gpu]
    line = drawn(page, gpu, quantity)
    start_ms = round(analysis.run.start_wall_s, 3) * 1000
    recorded = {round(row.t_s * 1000): getattr(row, quantity) for row in samples.itertuples()}
    points = {round(x - start_ms): y for x, y in zip(line["x"], line["y"], strict=True)}
    present = {t: value for t, value in recorded.items() if not np.isnan(value)}
    assert line["exact"]
    assert {t: points[t] for t in present} == present
    assert {t for t, value in points.items() if value is not None} == set(present)


def test_a_missing_reading_and_a_gap_break_the_line(open_report, builder: ModuleType, analysis: Analysis) -> None:
    line = drawn(open_report(analysis).page, 0, "power_w")
    start_ms = round(analysis.run.start_wall_s, 3) * 1000
    broken = [round((x - start_ms) / 1000) for x, y in zip(line["x"], line["y"], strict=True) if y is None]
    assert broken == [builder.MISSING_POWER_T_S, round(builder.GAP[1])]


def test_the_host_and_the_marks_are_drawn(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    assert len([y for y in drawn(page, None, "cpu_pct")["y"] if y is not None]) == len(analysis.run.host)
    marks = page.evaluate(
        """() => {
          const { data } = document.getElementById("chart");
          return Object.fromEntries(data.filter((t) => t.meta.marks).map((t) => [t.meta.marks, t]));
        }"""
    )
    assert [y for y in marks["low"]["y"] if y is not None] == [20] * 6
    assert marks["floor"]["y"][:2] == [41.5, 41.5]
    assert len(marks["kernel"]["x"]) == 3
    labels = page.locator("#chart .annotation-text").all_text_contents()
    assert {"1", "2", "3", "4"} <= set(labels)
    assert "5" not in labels  # the expected drop is shaded, but is no alarm


def test_a_dip_of_one_sample_in_a_day_is_seen_from_afar_and_exact_when_zoomed(
    open_report, long_analysis: Analysis
) -> None:
    page = open_report(long_analysis).page
    far = drawn(page, 0, "gpu_util_pct")
    start_ms = round(long_analysis.run.start_wall_s, 3) * 1000
    assert not far["exact"]
    assert len(far["x"]) < 4_000
    assert [round((x - start_ms) / 1000) for x, y in zip(far["x"], far["y"], strict=True) if y == 7] == [DAY_DIP_T_S]
    show_window(page, start_ms, DAY_DIP_T_S - 60, DAY_DIP_T_S + 60)
    wait_until(page, "document.getElementById('chart').data.some((t) => t.meta.exact)")
    near = drawn(page, 0, "gpu_util_pct")
    seconds = {round((x - start_ms) / 1000): y for x, y in zip(near["x"], near["y"], strict=True)}
    assert {t: seconds[t] for t in range(DAY_DIP_T_S - 59, DAY_DIP_T_S + 60)} == {
        t: 7 if t == DAY_DIP_T_S else 80 + t % 9 for t in range(DAY_DIP_T_S - 59, DAY_DIP_T_S + 60)
    }


def test_dragging_zooms_and_a_double_click_shows_the_whole_run(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    show_timeline(page)
    box = page.locator("#chart").bounding_box()
    whole = page.evaluate("document.getElementById('chart').layout.xaxis.range")
    page.mouse.move(box["x"] + 300, box["y"] + 220)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, box["y"] + 220, steps=5)
    page.mouse.up()
    wait_until(page, "(old) => document.getElementById('chart').layout.xaxis.range[0] > old", whole[0])
    window = page.evaluate("document.getElementById('chart').layout.xaxis.range")
    pixel_ms = (whole[1] - whole[0]) / (box["width"] - 64)
    assert window[0] == pytest.approx(whole[0] + (300 - 50) * pixel_ms, abs=3 * pixel_ms)
    assert window[1] == pytest.approx(whole[0] + (500 - 50) * pixel_ms, abs=3 * pixel_ms)
    assert page.locator("#snapshot").is_hidden()
    page.mouse.dblclick(box["x"] + 400, box["y"] + 220)
    wait_until(page, "(old) => document.getElementById('chart').layout.xaxis.range[0] === old", whole[0])


def test_a_click_shows_the_snapshot_of_that_second(open_report, builder: ModuleType, analysis: Analysis) -> None:
    page = open_report(analysis).page
    show_timeline(page)
    for second in (30, 105, builder.MISSING_POWER_T_S, 305, 400, 575):
        click_at(page, analysis.run.start_wall_s + second)
        page.wait_for_selector("#snapshot:not([hidden])")
        picked = float(page.url.split("#t=")[1])
        assert abs(picked - second) <= 1
        for gpu in (0, 1):
            assert_snapshot_as_recorded(page, analysis, gpu, picked)


def assert_snapshot_as_recorded(page: Page, analysis: Analysis, gpu: int, picked: float) -> None:
    samples = analysis.run.samples[analysis.run.samples["gpu"] == gpu]
    row = samples.iloc[(samples["t_s"] - picked).abs().argmin()]
    power = "n/a" if np.isnan(row.power_w) else f"{row.power_w:.1f} W"
    assert cell(page, gpu, "gpu_util_pct") == f"{row.gpu_util_pct:.0f} %"
    assert cell(page, gpu, "power_w") == f"{power} / 700 W"
    assert cell(page, gpu, "memory_used_mib") == f"{row.memory_used_mib:,.0f} MiB / 143,771 MiB"
    assert cell(page, gpu, "temperature_c") == f"{row.temperature_c:.0f} °C"
    assert cell(page, gpu, "performance_state") == "P0"


def test_a_missing_reading_is_not_available_in_its_snapshot(
    open_report, builder: ModuleType, analysis: Analysis
) -> None:
    page = open_report(analysis, f"#t={builder.MISSING_POWER_T_S}").page
    assert cell(page, 0, "power_w") == "n/a / 700 W"
    assert cell(page, 1, "power_w") != "n/a / 700 W"


def test_a_snapshot_within_a_gap_shows_no_sample(open_report, builder: ModuleType, analysis: Analysis) -> None:
    page = open_report(analysis, f"#t={sum(builder.GAP) / 2}").page
    assert cell(page, 0, "gpu_util_pct") == "n/a"
    assert cell(page, 1, "temperature_c") == "n/a"


def test_a_snapshot_names_processes_phase_reasons_and_kernel_lines(
    open_report, builder: ModuleType, analysis: Analysis
) -> None:
    page = open_report(analysis, "#t=255").page
    assert page.locator("#snapshot .processes tbody tr").count() == 3
    assert builder.HOSTILE in page.locator("#snapshot .processes").inner_text()
    side = page.locator("#snapshot .snapshot-side").inner_text()
    assert "train" in side
    assert "Xid 31" in side
    assert cell(page, 0, "clock_event_reasons") == "software power cap"
    assert cell(page, 1, "clock_event_reasons") == "GPU idle"
    page.goto(page.url.split("#")[0] + "#t=280")
    wait_until(page, "document.getElementById('snapshot-title').textContent.includes('0:04:40')")
    assert page.locator("#snapshot .processes tbody tr").count() == 2


def test_the_moment_moves_by_key_and_closes_with_escape(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, "#t=100").page
    page.locator(".chart-frame").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("location.hash").startswith("#t=101.")  # page.url follows a moment later
    page.keyboard.press("Escape")
    assert page.locator("#snapshot").is_hidden()
    assert "#" not in page.url
    page.keyboard.press("+")
    wait_for_plotly(page)
    assert page.evaluate("(r => r[1] - r[0])(document.getElementById('chart').layout.xaxis.range)") == pytest.approx(
        300_000, rel=0.01
    )


def test_text_from_outside_never_runs(open_report, analysis: Analysis) -> None:
    report = open_report(analysis, "#t=255")
    show_timeline(report.page)
    box = report.page.locator("#chart").bounding_box()
    for x in range(60, 1100, 40):
        report.page.mouse.move(box["x"] + x, box["y"] + 220)
    assert report.page.evaluate("typeof window.planted") == "undefined"
    assert report.page.locator("#readout").inner_text()
    assert report.errors == []


@pytest.mark.parametrize("anchor", ["drop-1", "drop-4"])
def test_a_link_to_a_finding_opens_at_it(open_report, analysis: Analysis, anchor: str) -> None:
    page = open_report(analysis, f"#{anchor}").page
    wait_until(
        page,
        "(id) => { const y = document.getElementById(id).getBoundingClientRect().top; return y >= -2 && y < 500; }",
        anchor,
    )
    assert page.locator(f"#{anchor}").is_visible()


def test_a_finding_is_shown_on_the_timeline(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.locator("#drop-2 [data-show-from]").click()
    wait_until(page, "(r => r[1] - r[0] < 200000)(document.getElementById('chart').layout.xaxis.range)")
    low, high = page.evaluate("document.getElementById('chart').layout.xaxis.range")
    start_ms = analysis.run.start_wall_s * 1000
    assert low < start_ms + 250_000 < start_ms + 271_000 < high


def test_the_theme_switches_and_follows_the_system(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, color_scheme="dark").page
    background = "getComputedStyle(document.body).backgroundColor"
    dark, dark_line = (
        page.evaluate(background),
        page.evaluate("document.getElementById('chart').data.find((t) => t.meta.gpu === 0).line.color"),
    )
    page.locator("#theme").click()
    wait_until(
        page,
        "(old) => document.getElementById('chart').data.find((t) => t.meta.gpu === 0).line.color !== old",
        dark_line,
    )
    assert page.evaluate(background) != dark
    assert open_report(analysis, color_scheme="light").page.evaluate(background) != dark


def test_times_are_the_viewers_and_utc_is_a_click_away(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, timezone_id="Asia/Tokyo").page
    start = page.locator(".subtitle time").first
    assert start.inner_text() == "2026-11-21 10:10:24 UTC+09:00"
    assert "2026-11-21 01:10:24 UTC" in start.get_attribute("title")
    page.locator("[data-zone=utc]").click()
    assert start.inner_text() == "2026-11-21 01:10:24 UTC"


def test_a_gpu_can_be_hidden_and_shown(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    lines = "document.getElementById('chart').data.filter((t) => t.meta.gpu === 1).length"
    page.locator('[data-gpu-toggle="1"]').click()
    wait_until(page, f"{lines} === 0")
    page.locator('[data-gpu-toggle="1"]').click()
    wait_until(page, f"{lines} === {len(LINES)}")


def test_the_csv_holds_every_sample(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    with page.expect_download() as download:
        page.locator('[data-csv="gpu-0"]').click()
    with download.value.path().open(newline="") as file:
        rows = list(csv.DictReader(file))
    samples = analysis.run.samples[analysis.run.samples["gpu"] == 0]
    assert [float(row["t_s"]) for row in rows] == samples["t_s"].tolist()
    for name in ("gpu_util_pct", "power_w", "energy_j", "clock_event_reasons"):
        read = [float(row[name]) if row[name] else np.nan for row in rows]
        np.testing.assert_array_equal(read, samples[name].to_numpy())


def test_the_csv_of_epochs_holds_what_is_known_of_each(open_report, analysis: Analysis) -> None:
    first, *others = analysis.epochs
    page = open_report(replace(analysis, epochs=(replace(first, loss=None), *others))).page
    with page.expect_download() as download:
        page.locator('[data-csv="epochs"]').click()
    read = pd.read_csv(download.value.path())
    assert list(read.columns)[:6] == ["run", "epoch", "start_s", "end_s", "loss", "lr"]
    np.testing.assert_allclose(read["gpu_util_pct"], [epoch.gpu_util_pct for epoch in analysis.epochs], atol=0.05)
    assert read["end_s"].tolist() == [epoch.end_t_s for epoch in analysis.epochs]
    np.testing.assert_allclose(read["loss"], [np.nan, *(epoch.loss for epoch in others)], rtol=1e-4)


def test_a_narrow_page_does_not_scroll_sideways(open_report, analysis: Analysis) -> None:
    page = open_report(analysis, "#t=255", viewport={"width": 320, "height": 800}).page
    for width in (768, 390, 320):  # the last one is that of the page that the next test gets
        page.set_viewport_size({"width": width, "height": 800})
        wait_until(page, "(width) => document.documentElement.clientWidth === width", width)
        wait_for_plotly(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_javascript_all_text_is_there(open_report, write_report, browser, analysis: Analysis) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(write_report(analysis).as_uri())
    text = page.locator("body").inner_text()
    context.close()
    assert "need JavaScript" in text
    assert "1 Drop in GPU utilisation" in text
    assert "NVRM: Xid" in text


@pytest.mark.parametrize("kind", ["build_quiet_analysis", "build_empty_analysis"])
def test_a_run_of_which_little_is_known_opens_without_an_error(open_report, builder: ModuleType, kind: str) -> None:
    report = open_report(getattr(builder, kind)())
    assert report.errors == []


def test_the_strip_moves_the_window(open_report, analysis: Analysis) -> None:
    page = open_report(analysis).page
    page.locator("#drop-1 [data-show-from]").click()
    wait_until(page, "(r => r[1] - r[0] < 200000)(document.getElementById('chart').layout.xaxis.range)")
    before = page.evaluate("document.getElementById('chart').layout.xaxis.range")
    strip = page.locator("#strip")
    strip.scroll_into_view_if_needed()
    box = strip.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.75, box["y"] + 10)
    wait_until(page, "(old) => document.getElementById('chart').layout.xaxis.range[0] !== old", before[0])
    low, high = page.evaluate("document.getElementById('chart').layout.xaxis.range")
    assert high - low == pytest.approx(before[1] - before[0])
    assert (low + high) / 2 == pytest.approx((analysis.run.start_wall_s + 0.75 * 600) * 1000, abs=3000)


def test_an_address_that_means_nothing_is_ignored(open_report, analysis: Analysis) -> None:
    assert open_report(analysis, "#%E0%A4%A").errors == []
    assert open_report(analysis, "#t=1e99").errors == []


def test_a_hundred_gpus_can_be_looked_at(open_report, analysis: Analysis) -> None:
    one = analysis.run.samples[analysis.run.samples["gpu"] == 0].head(60)
    gpus = tuple(replace(analysis.run.gpus[0], index=index) for index in range(100))
    samples = pd.concat([one.assign(gpu=float(index)) for index in range(100)], ignore_index=True)
    run = replace(analysis.run, samples=samples, gpus=gpus, duration_s=60.0)
    summaries = tuple(replace(analysis.gpus[0], gpu=gpu) for gpu in gpus)
    report = open_report(replace(analysis, run=run, gpus=summaries, epochs=(), findings=(), gaps=()), "#t=30")
    assert report.errors == []
    assert report.page.locator("#snapshot .gpus-now tbody tr").count() == 100
    assert len(drawn(report.page, 99, "power_w")["x"]) == 60
    box = report.page.locator("#chart").bounding_box()
    report.page.mouse.move(box["x"] + 400, box["y"] + 100)
    assert "and 92 more GPUs" in report.page.locator("#readout").inner_text()


@pytest.fixture(scope="module")
def detailed(builder: ModuleType) -> Analysis:
    return builder.build_detailed_analysis()


def test_the_drivers_own_readings_are_drawn_and_ticks_where_it_kept_none(
    open_report, builder: ModuleType, detailed: Analysis
) -> None:
    report = open_report(detailed)
    start_ms = round(detailed.run.start_wall_s, 3) * 1000
    ring = detailed.run.ring
    samples = detailed.run.samples.query("gpu == 0")
    # those of 0.2 s lie to 10 ms where they did (columns.py)
    for quantity, (from_s, to_s, ms) in {"gpu_util_pct": (200, 220, 10), "power_w": (20, 30, 1)}.items():
        show_window(report.page, start_ms, from_s, to_s)
        line = drawn(report.page, 0, quantity)
        kept = ring[ring[quantity].notna() & ring["t_s"].between(from_s, to_s)]
        points = {t: v for t, v in milliseconds(line, start_ms).items() if from_s * 1000 <= t <= to_s * 1000}
        assert line["exact"]
        assert points == {ms * round(row.t_s * 1000 / ms): getattr(row, quantity) for row in kept.itertuples()}
    start, end = builder.RINGLESS
    show_window(report.page, start_ms, start, end)
    ticks = samples[samples["t_s"].between(start + 1, end - 1)]
    points = milliseconds(drawn(report.page, 0, "gpu_util_pct"), start_ms)
    assert {t: v for t, v in points.items() if (start + 1) * 1000 <= t <= (end - 1) * 1000} == {
        round(row.t_s * 1000): row.gpu_util_pct for row in ticks.itertuples()
    }
    assert report.errors == []


def test_sm_activity_and_pressure_are_drawn_where_they_were_recorded(open_report, detailed: Analysis) -> None:
    page = open_report(detailed).page
    start_ms = round(detailed.run.start_wall_s, 3) * 1000
    samples = detailed.run.samples.query("gpu == 0").dropna(subset="sm_active_pct")
    recorded = {round(row.t_s * 1000): row.sm_active_pct for row in samples.itertuples()}
    assert milliseconds(drawn(page, 0, "sm_active_pct"), start_ms) == recorded
    assert set(milliseconds(drawn(page, None, "cpu_pressure_pct"), start_ms).values()) == {12.5}
    names = page.evaluate("document.getElementById('chart').data.map((t) => [t.meta.gpu, t.meta.quantity])")
    assert [1, "sm_active_pct"] not in names
    assert [None, "memory_pressure_pct"] not in names
    show_timeline(page)
    box = page.locator("#chart").bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 200)
    page.wait_for_selector("#readout:not([hidden])")
    readout = page.locator("#readout").inner_text()
    assert all(name in readout for name in ("SM activity, %", "Main process, % of one core", "Waiting for I/O, %"))


def test_a_dip_of_one_reading_of_a_fifth_of_a_second_in_a_day_is_seen_from_afar(
    open_report, long_analysis: Analysis
) -> None:
    t_s = np.arange(0, ALL_OF_DAY_S, 0.2).round(3)
    util = np.where(t_s == DAY_DIP_T_S + 0.4, 5.0, 80 + np.arange(len(t_s)) % 9)
    ring = pd.DataFrame({"t_s": t_s, "gpu": 0, "gpu_util_pct": util, "power_w": np.nan})
    page = open_report(replace(long_analysis, run=replace(long_analysis.run, ring=ring))).page
    start_ms = round(long_analysis.run.start_wall_s, 3) * 1000
    far = drawn(page, 0, "gpu_util_pct")
    assert not far["exact"]
    assert len(far["x"]) < 4_000
    dips = [t for t, value in milliseconds(far, start_ms).items() if value < 80]
    assert dips == [DAY_DIP_T_S * 1000 + 400]
    show_window(page, start_ms, DAY_DIP_T_S - 60, DAY_DIP_T_S + 60)
    near = milliseconds(drawn(page, 0, "gpu_util_pct"), start_ms)
    inside = np.abs(t_s - DAY_DIP_T_S) <= 60
    assert {t: near[t] for t in (t_s[inside] * 1000).round().astype(int)} == dict(
        zip((t_s[inside] * 1000).round().astype(int), util[inside], strict=True)
    )


def test_the_snapshot_shows_what_went_on_inside_the_gpu_and_the_host(
    open_report, builder: ModuleType, detailed: Analysis
) -> None:
    page = open_report(detailed, "#t=100").page
    row = detailed.run.samples.query("gpu == 0").iloc[100]
    assert cell(page, 0, "sm_active_pct") == f"{row.sm_active_pct:.1f} %"
    assert cell(page, 0, "memory_temperature_c") == "60 °C"
    assert cell(page, 1, "sm_active_pct") == "n/a"
    assert page.locator('#snapshot [data-quantity="nvlink_tx_mib_s"]').count() == 0
    host = page.locator("#snapshot .host-now").inner_text().replace("\u00a0", " ")
    assert "Waiting for a core\n12.5 %" in host
    assert "Main process\n291 % of one core" in host
    page.goto(page.url.split("#")[0] + f"#t={builder.MISSING_POWER_T_S}")
    wait_until(page, "document.getElementById('snapshot-title').textContent.includes('0:02:30')")
    assert cell(page, 0, "sm_active_pct") == "n/a"
    assert cell(page, 0, "tensor_active_pct") == "12.5 %"


@pytest.mark.parametrize("name", ["ring-0", "host"])
def test_the_drivers_readings_and_the_host_can_be_downloaded(open_report, detailed: Analysis, name: str) -> None:
    page = open_report(detailed).page
    with page.expect_download() as download:
        page.locator(f'[data-csv="{name}"]').click()
    assert download.value.suggested_filename == f"{name}.csv"
    read = pd.read_csv(download.value.path())
    frame = detailed.run.ring if name == "ring-0" else detailed.run.host
    assert set(read.columns) == {"wall_s", *frame.dropna(axis="columns", how="all").columns} - {"gpu"}
    for column in read.columns.drop("wall_s"):
        exact = {"atol": 0, "rtol": 0} if (name, column) != ("ring-0", "t_s") else {"atol": 0.005 + 1e-9}
        np.testing.assert_allclose(read[column].to_numpy(), frame[column].to_numpy(), **exact)


@pytest.fixture(scope="module")
def told(analysis: Analysis) -> Analysis:
    """The made-up run with epochs as callbacks told them, the fourth of which stands out."""
    lengths = {"train_s": 37.5, "validation_s": 5.0, "checkpoint_s": 1.5, "images_per_s": 106.0, "data_wait_s": 7.5}
    epochs = [replace(epoch, **lengths) for epoch in analysis.epochs]
    epochs[3] = replace(epochs[3], outliers=(Outlier("train", 37.5, 12.0),))
    first, *others = analysis.phases
    half = first.end_t_s / 2
    startup = [replace(first, end_t_s=half, detail="data set"), replace(first, start_t_s=half, detail="first batch")]
    phases = tuple(replace(phase, source="callbacks") for phase in (*startup, *others))
    return replace(analysis, epochs=tuple(epochs), phases=phases)


def test_the_band_has_a_colour_for_each_phase_and_a_number_on_each_training(open_report, told: Analysis) -> None:
    page = open_report(told).page
    bands = page.evaluate(
        """() => document.getElementById("chart").data.filter((t) => t.meta.phase)
                   .map((t) => [t.meta.phase, t.fillcolor])"""
    )
    assert {name for name, _ in bands} == {phase.name for phase in told.phases}
    assert len({colour for _, colour in bands}) == len(bands)
    x, text = page.evaluate(
        """() => {
          const labels = document.getElementById("chart").data.find((t) => t.meta.marks === "epochs");
          return [[...labels.x], [...labels.text]];
        }"""
    )
    assert text == [str(epoch.epoch) for epoch in told.epochs]
    trains = [phase for phase in told.phases if phase.name == "train"]
    middles = [told.run.start_wall_s + (phase.start_t_s + phase.end_t_s) / 2 for phase in trains]
    assert x == pytest.approx([1000 * middle for middle in middles], abs=2)


def test_pointing_at_startup_tells_its_part_and_where_it_is_known_from(open_report, told: Analysis) -> None:
    page = open_report(told).page
    show_timeline(page)
    hover_at(page, told.run.start_wall_s + 4)
    words = page.locator("#readout").inner_text()
    assert "start-up (data set)" in words
    assert "phase from callbacks" in words


def test_the_epochs_have_their_parts_and_the_odd_one_says_why(open_report, told: Analysis) -> None:
    page = open_report(told).page
    page.locator("#epochs").scroll_into_view_if_needed()  # what is far below is laid out when it comes near
    assert page.locator(".epoch-chart g > title").count() == len(told.epochs)
    assert page.locator(".epoch-chart .odd-row rect").count() == 1
    assert "waiting for data 7.5" in page.locator(".epoch-chart g title").nth(1).text_content().replace("\u00a0", " ")
    (why,) = page.locator("tr.why").all_text_contents()
    assert why.strip() == "Training took 37.5\u00a0s, typical 12\u00a0s"
    head = page.locator("#epochs thead").text_content()
    heads = ("Train, incl. data wait", "Validation", "Checkpoint", "Images/s", "Data wait")
    assert [word for word in heads if word not in head] == []


@pytest.mark.parametrize("width", [360, 1400])
def test_the_chart_of_epochs_fits_and_its_bars_are_seen_in_light_and_dark(
    open_report, told: Analysis, width: int
) -> None:
    for scheme in ("light", "dark"):
        page = open_report(told, viewport={"width": width, "height": 900}, color_scheme=scheme).page
        assert page.evaluate("document.documentElement.scrollWidth") == width
        box = page.locator(".epoch-chart").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        fills = page.evaluate(
            """() => [...new Set([...document.querySelectorAll(".epoch-chart g rect:not(.bar-place)")]
                        .map((bar) => getComputedStyle(bar).fill))]"""
        )
        assert len(fills) == 4
