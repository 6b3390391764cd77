"""A day of eight GPUs with all that is recorded of them: a drop of one sample is seen, and found by dragging."""

from base64 import b64decode
from dataclasses import replace
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from PIL import Image, ImageChops
from support.browser import drawn, milliseconds, show_timeline, wait_for_plotly, wait_until
from support.samples import run_of

from gpu_report.model import Analysis, GpuSummary

DAY_S = 86_400
GPUS = 8
DROP_GPU, DROP_T_S = 5, 51_234
LEFT, RIGHT = 50, 14  # px of the chart beside its lanes
REACH = 25  # px that are dragged to either side of the drop


@pytest.fixture(scope="module")
def day(analysis: Analysis) -> Analysis:
    """Rows of a real run drawn at random: their entropy is real. All GPUs are busy but for one sample of one."""
    rng = np.random.default_rng(1)
    real = run_of("m-ddp")
    rows = real.samples.take(rng.integers(0, len(real.samples), DAY_S * GPUS)).reset_index(drop=True)
    t_s = np.tile(np.arange(DAY_S, dtype=float), GPUS)
    gpu = np.repeat(np.arange(GPUS), DAY_S)  # a GPU after the other, as load_run sorts them
    util = rng.integers(80, 100, len(rows)).astype(float)
    util[(t_s == DROP_T_S) & (gpu == DROP_GPU)] = 7
    samples = rows.assign(t_s=t_s, gpu=gpu, gpu_util_pct=util).sort_values(["gpu", "t_s"], ignore_index=True)
    host = real.host.take(rng.integers(0, len(real.host), DAY_S)).assign(t_s=np.arange(DAY_S, dtype=float))
    gpus = tuple(replace(real.gpus[0], index=index) for index in range(GPUS))
    run = replace(analysis.run, samples=samples, host=host, ring=real.ring.iloc[:0], gpus=gpus, duration_s=float(DAY_S))
    summaries = tuple(GpuSummary(each, DAY_S, {}, None, "none") for each in gpus)
    quiet = replace(
        analysis, epochs=(), phases=(), low_intervals=(), gaps=(), findings=(), ledger=(), speedup_limits=()
    )
    return replace(quiet, run=run, gpus=summaries)


def readings(day: Analysis, around_s: range) -> dict[int, float]:
    """Return what was recorded of the GPU with the drop, by ms."""
    samples: pd.DataFrame = day.run.samples
    own = samples[samples["gpu"] == DROP_GPU].set_index("t_s")["gpu_util_pct"]
    return {t * 1000: own[t] for t in around_s}


def test_a_drop_of_one_sample_in_a_day_of_eight_gpus_is_found_by_zooming(open_report, day: Analysis) -> None:
    opened = open_report(day)
    page, start_ms = opened.page, round(day.run.start_wall_s, 3) * 1000
    show_timeline(page)
    page.locator(f'[data-row="{DROP_GPU}"]').click()  # the lines of one of eight
    page.mouse.move(5, 5)
    wait_for_plotly(page)
    box = page.locator("#chart").bounding_box()
    width = box["width"] - LEFT - RIGHT
    for _ in range(8):
        line = drawn(page, DROP_GPU, "gpu_util_pct")
        low = [t for t, value in milliseconds(line, start_ms).items() if value < 80]
        assert low == [DROP_T_S * 1000]  # at every zoom
        if line["exact"]:
            break
        first, last = page.evaluate("document.getElementById('chart').layout.xaxis.range")
        x = box["x"] + LEFT + (low[0] + start_ms - first) / (last - first) * width
        page.mouse.move(x - REACH, box["y"] + 220)
        page.mouse.down()
        page.mouse.move(x + REACH, box["y"] + 220, steps=4)
        page.mouse.up()
        wait_until(page, "(old) => document.getElementById('chart').layout.xaxis.range[0] > old", first)
    assert line["exact"]
    around = readings(day, range(DROP_T_S - 30, DROP_T_S + 31))
    assert {t: value for t, value in milliseconds(line, start_ms).items() if t in around} == around
    assert opened.errors == []


# Keeps what the timeline shows when it was drawn for the first time, before all readings are unpacked.
FIRST_PICTURE = """
addEventListener("DOMContentLoaded", () => new MutationObserver((_, observer) => {
  if (document.documentElement.dataset.drawn !== "yes") return;
  observer.disconnect();
  window.firstPicture = document.getElementById("chart").data.map((t) => ({ ...t.meta, x: [...t.x], y: [...t.y] }));
  window.firstStrip = document.getElementById("heat").toDataURL();
}).observe(document.documentElement, { attributes: true }));
"""


@pytest.mark.long  # of a long run; of a short one it is held in test_sketch.py, too
def test_the_first_picture_shows_what_all_readings_show(open_report, day: Analysis) -> None:
    opened = open_report(day, script=FIRST_PICTURE)
    page = opened.page
    first, last = (
        {(line["gpu"], line["quantity"]): line for line in lines if line.get("quantity")}
        for lines in (
            page.evaluate("window.firstPicture"),
            page.evaluate(
                "document.getElementById('chart').data.map((t) => ({ ...t.meta, x: [...t.x], y: [...t.y] }))",
            ),
        )
    )
    assert set(first) == set(last)
    assert len(first) > GPUS
    for key, line in first.items():
        values, final = ([value for value in each["y"] if value is not None] for each in (line, last[key]))
        assert (min(values), max(values)) == (min(final), max(final)), key
        assert not (line["exact"] and line["gpu"] is not None)
    early, late = first[DROP_GPU, "power_w"], last[DROP_GPU, "power_w"]
    assert len(early["x"]) != len(late["x"])  # or there was no overview
    strips = [page.evaluate(script) for script in ("window.firstStrip", "document.getElementById('heat').toDataURL()")]
    assert strips[0] != strips[1]
    apart = ImageChops.difference(*(picture_of(strip) for strip in strips)).convert("L")
    assert sum(level * count for level, count in enumerate(apart.histogram())) / (apart.width * apart.height) < 2
    assert opened.errors == []


def picture_of(address: str) -> Image.Image:
    """Return a picture of a data: address."""
    return Image.open(BytesIO(b64decode(address.partition(",")[2]))).convert("RGB")
