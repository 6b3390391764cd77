"""The charts of latency in a browser: they are drawn, and read off by pointer and keys."""

import re
from types import ModuleType

import pytest
from playwright.sync_api import Page
from support.browser import wait_until

from gpu_report.render.page.sections.latency_chart import shown_s

pytestmark = pytest.mark.browser
READOUT = ".latency-readout"
SAID = re.compile(r"([\d.]+) into the run: (\d+) calls, ([\d.]+) ms to ([\d.]+) ms, median ([\d.]+) ms")


def said(page: Page) -> list[float]:
    text = page.locator(READOUT).first.text_content().replace("\xa0", " ").replace("0:00:", "")
    return [float(number) for number in SAID.search(text).groups()]


def test_latency_is_read_off_and_leads_to_the_timeline(open_report, builder: ModuleType) -> None:
    analysis = builder.build_inference_analysis()
    opened = open_report(analysis)
    page, figure = opened.page, opened.page.locator("[data-latency]").first
    for part in (".latency-ranges", ".latency-medians", ".latency-worst", ".latency-bin"):
        assert page.locator(f".latency-panels {part}").first.bounding_box()["width"] > 0
    area = page.locator(".latency-time").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    begin_s, length_s = shown_s(analysis.served[0], analysis.run.duration_s)
    bucket_s = length_s / 1000
    page.mouse.move(box["x"] + box["width"] * 0.5005, box["y"] + 50)
    wait_until(page, f"() => document.querySelector('{READOUT}').textContent.includes('into the run')")
    calls = analysis.served[0].calls
    own = calls.total_ms[((calls.start_s - begin_s) / bucket_s).astype(int) == 500]
    assert said(page)[1:4] == pytest.approx([len(own), own.min(), own.max()], abs=0.06)
    before = said(page)[0]
    figure.press("ArrowRight")
    assert said(page)[0] == pytest.approx(before + bucket_s, abs=0.11)
    figure.press("Enter")
    wait_until(page, "() => location.hash.startsWith('#t=') && !document.getElementById('snapshot').hidden")
    assert opened.errors == []
