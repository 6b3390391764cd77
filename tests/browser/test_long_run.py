"""A day of eight GPUs with all that is recorded of them: a drop of one sample is seen, and found by dragging."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from support.browser import drawn, milliseconds, show_timeline, wait_until
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
    t_s = np.repeat(np.arange(DAY_S, dtype=float), GPUS)
    gpu = np.tile(np.arange(GPUS), DAY_S)
    util = rng.integers(80, 100, len(rows)).astype(float)
    util[(t_s == DROP_T_S) & (gpu == DROP_GPU)] = 7
    samples = rows.assign(t_s=t_s, gpu=gpu, gpu_util_pct=util).sort_values(["gpu", "t_s"], ignore_index=True)
    host = real.host.take(rng.integers(0, len(real.host), DAY_S)).assign(t_s=np.arange(DAY_S, dtype=float))
    gpus = tuple(replace(real.gpus[0], index=index) for index in range(GPUS))
    run = replace(analysis.run, samples=samples, host=host, ring=real.ring.iloc[:0], gpus=gpus, duration_s=float(DAY_S))
    summaries = tuple(GpuSummary(each, DAY_S, {}, None, "none") for each in gpus)
    quiet = replace(analysis, epochs=(), phases=(), low_intervals=(), gaps=(), findings=(), ledger=(), bounds=())
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
