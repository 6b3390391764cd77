"""A run in a notebook's output: what it says, how large it may be, and that nothing in it needs a script or a style."""

import base64
import json
import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from support.plain_words import banned
from support.samples import NAMES, analysis_of

from gpu_report.render.page.notebook import bar, render_notebook
from gpu_report.render.page.utilisation_picture import MOST_ROWS, picture, sparks

LARGEST = 300_000  # bytes in an .ipynb
DAY_S = 86_400.0


def svg_of(analysis):
    return base64.b64decode(picture(analysis).source.partition(",")[2]).decode()


def with_gpus(count, duration_s=DAY_S):
    """Return an analysis of so many GPUs whose utilisation never rests, which draws the largest picture."""
    analysis = analysis_of("m-ddp4")
    samples, random = analysis.run.samples, np.random.default_rng(0)
    rows = [
        samples.iloc[:1]
        .loc[np.repeat(samples.index[0], 5_000)]
        .assign(gpu=gpu, t_s=np.linspace(0, duration_s - 1, 5_000), gpu_util_pct=random.integers(0, 101, 5_000))
        for gpu in range(count)
    ]
    run = replace(analysis.run, samples=pd.concat(rows), ring=analysis.run.ring.iloc[:0], duration_s=duration_s)
    return replace(analysis, run=run)


@pytest.mark.parametrize("name", NAMES)
def test_every_sample_run_is_small_has_no_script_and_speaks_plainly(name):
    html = render_notebook(analysis_of(name))
    assert len(json.dumps(html)) < LARGEST
    assert not re.search(r"<(script|style|iframe|svg)|\son\w+=|\sclass=", html)
    assert banned(re.sub(r"<[^>]*>", "\n", html).replace(f"{name} · ", "")) == []  # the run's own name


def test_verdict_causes_epochs_and_utilisation_are_text():
    html = re.sub(r"<img[^>]*>", "", render_notebook(analysis_of("n-starved")))
    text = re.sub(r"<[^>]*>", " ", html)
    for words in ("workers=11", "Waiting for data (CPU)", "Mean utilisation", "Data wait", "▁"):
        assert words in text
    assert text.index("workers=11") < 20, "the verdict comes first"


@pytest.mark.parametrize("gpus", [1, 8, 32, 40])
def test_a_day_of_many_gpus_is_no_larger_than_a_notebook_bears(gpus):
    analysis = with_gpus(gpus)
    assert len(json.dumps(render_notebook(analysis))) < LARGEST
    names = [node.text for node in ET.fromstring(svg_of(analysis)).iter() if node.tag.endswith("text")]
    assert sum(name.startswith("GPU ") and name[4:].isdigit() for name in names) == min(gpus, MOST_ROWS)
    assert ("the first 32 of 40" in picture(analysis).words) == (gpus > MOST_ROWS)


def test_missing_readings_are_a_gap_and_never_zero():
    analysis = with_gpus(1, 1_000.0)
    samples = analysis.run.samples
    in_gap = samples["t_s"].between(400, 600)
    lost = replace(
        analysis, run=replace(analysis.run, samples=samples.assign(gpu_util_pct=samples["gpu_util_pct"].mask(in_gap)))
    )
    assert "·" not in sparks(analysis)[0]
    assert "··" in sparks(lost)[0]
    (line,) = re.findall(r'<path d="([^"]*)" stroke="#2f86cc"', svg_of(lost))
    assert line.count("M") == 2
    unread = replace(lost, run=replace(lost.run, samples=samples.assign(gpu_util_pct=np.nan)))
    assert picture(unread) is None
    assert "<img" not in render_notebook(unread)


def test_text_from_outside_is_escaped():
    analysis = analysis_of("n-starved")
    recording = replace(analysis.run.recording, host="<script>alert(1)</script>")
    html = render_notebook(replace(analysis, run=replace(analysis.run, recording=recording)), link='"><b>x')
    assert "<script" not in html
    assert '"><b>x' not in html


def test_a_bar_shows_whatever_is_not_nothing():
    assert [bar(0.0), bar(0.0001), bar(0.5), bar(2.0)] == ["", "▏", "█" * 10, "█" * 20]


def test_of_many_epochs_the_first_the_last_and_those_that_stand_out_are_listed():
    analysis = analysis_of("m-mixed")
    many = tuple(
        replace(analysis.epochs[-1], epoch=n, outliers=analysis.epochs[1].outliers if n == 50 else ())
        for n in range(1, 101)
    )
    html = render_notebook(replace(analysis, epochs=many))
    table = html.rpartition("<table>")[2]
    assert re.findall(r'<tr><td align="left" style="text-align:left">(\d+)<', table) == [
        *"123",
        "50",
        *map(str, range(93, 101)),
    ]
    assert "The first 3 and the last 8 of 100 epochs" in html
