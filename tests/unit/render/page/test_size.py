"""How large a report may be beside the chart library: what makes each report larger by an eighth should be noticed."""

from dataclasses import replace

import numpy as np
from support.samples import analysis_of

from gpu_report.render import render_html
from gpu_report.render.page.blank.skeleton import blank_page
from gpu_report.render.page.script_data import chart_data

MOST_BYTES = 260_000  # of the report of m-ddp (76 s, two GPUs); it is 244 kB
MOST_BYTES_A_SAMPLE = 12.5  # of all 24 quantities of a GPU; it is 11.2
SAMPLES = 20_000


def test_the_report_of_a_short_run_is_small() -> None:
    blank = blank_page()
    assert len(render_html(analysis_of("m-ddp"), blank=blank).encode()) - len(blank.library) < MOST_BYTES


def test_a_sample_with_all_its_quantities_takes_a_few_bytes() -> None:
    analysis = analysis_of("m-ddp")
    run, random = analysis.run, np.random.default_rng(1)
    drawn = run.samples.take(random.integers(0, len(run.samples), SAMPLES))
    samples = drawn.assign(t_s=np.arange(SAMPLES) + random.integers(0, 3, SAMPLES) / 1000, gpu=0)
    short = sum(map(len, chart_data(analysis)[1:]))
    long = sum(map(len, chart_data(replace(analysis, run=replace(run, samples=samples)))[1:]))
    assert (long - short) / SAMPLES < MOST_BYTES_A_SAMPLE
