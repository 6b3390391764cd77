"""Inside a step: what the page says of the profiler's windows."""

import re
from dataclasses import replace

import pytest
from conftest import REPOSITORY

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import InsideRun, ProfilerWindow
from gpu_report.render import render_html
from gpu_report.render.page.sections.profiler import failures, windows
from gpu_report.render.run.terminal import render_text


@pytest.fixture(scope="module")
def analysis():
    return analyse(load_run(REPOSITORY / "sample_runs" / "n-profiled"))


def test_each_window_says_what_limits_it_and_how_long_a_step_is_without_the_profiler(analysis):
    train, validation = windows(analysis)
    assert (train.title, validation.title) == ("Training, epoch 2: 1 step", "Validation: 1 step")
    assert train.lead.startswith("Launch-bound")
    assert any("Without the profiler a step takes 122\u00a0ms." in sentence for sentence in train.sentences)


def test_the_parts_of_a_bar_fill_the_longest_step(analysis):
    for window in windows(analysis):
        ends = [part.start_pct + part.width_pct for step in window.steps for part in step.parts]
        assert max(ends) == pytest.approx(100, abs=0.1)
        for step in window.steps:
            for before, part in zip(step.parts, step.parts[1:], strict=False):
                assert part.start_pct == pytest.approx(before.start_pct + before.width_pct, abs=0.02)


def test_names_from_a_trace_are_text(analysis):
    (profiled, *_) = analysis.profiled
    kernel = replace(profiled.steps.kernels[0], name="<img src=x onerror=alert(1)>" + "x" * 5000)
    hostile = replace(profiled, steps=replace(profiled.steps, kernels=(kernel,)))
    page = render_html(replace(analysis, profiled=(hostile,)))
    assert "<img src=x" not in page
    assert "&lt;img src=x" in page
    assert "x" * 200 not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)


def test_without_a_window_there_is_no_such_part(analysis):
    assert 'id="profiler"' not in render_html(replace(analysis, profiled=()))


def test_a_window_that_failed_is_said(analysis):
    window = ProfilerWindow("9-1", "train", 1.0, 2.0, failed="no_space")
    inside = InsideRun(None, 0, 9, "train", {}, (), (), profiled=(window,))
    failed = replace(analysis, profiled=(), run=replace(analysis.run, inside=(inside,)))
    assert failures(failed) == ("A window has no trace: the temporary folder has too little free space.",)
    assert "too little free space" in render_html(failed)


def test_the_terminal_has_a_row_for_each_window(analysis):
    rows = re.findall(r"^(train, epoch 2|validation) +(\d+) ms", render_text(analysis), re.MULTILINE)
    assert [name for name, _ in rows] == ["train, epoch 2", "validation"]
