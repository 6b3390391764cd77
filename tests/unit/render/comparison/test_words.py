"""What `compare` and `check` print is plain: from what to what, how many times as fast, in lines of 80 columns."""

from itertools import takewhile
from pathlib import PurePath

import pytest
from support.compared import analysed
from support.plain_words import banned

from gpu_report.analyse.compare import compare
from gpu_report.analyse.compare.gate_syntax import default_gates
from gpu_report.render.comparison.markdown import render_comparison_markdown
from gpu_report.render.comparison.terminal import render_comparison_text

ALIKE = "../tests/data/same_setup"
WIDTH = 80
PAIRS = (
    ("n-starved", "n-fed"),
    ("n-fed", "n-starved"),
    ("m-healthy", "m-ddp"),
    ("s-healthy", "s-killed"),
    ("m-healthy", "m-mixed"),
    ("yolo26m-detail", "m-healthy"),
    ("ab-workers-2", "ab-workers-14"),
    (f"{ALIKE}/run-1", f"{ALIKE}/run-6"),
    (f"{ALIKE}/run-5", f"{ALIKE}/run-7"),
    (f"{ALIKE}/run-1", f"{ALIKE}/stalls-1"),
    *(("", alone) for alone in ("n-starved", "s-oom", "healthy", "xid31")),
)


def compared(baseline, run):
    before = [analysed(baseline)] if baseline else []
    return compare(before, analysed(run), default_gates(baseline=bool(baseline)))


@pytest.mark.parametrize(("baseline", "run"), PAIRS)
def test_our_own_words_are_those_of_the_field(baseline, run):
    comparison = compared(baseline, run)
    names = [PurePath(each.run.path).name for each in (*comparison.baselines, comparison.run)]
    for text in (render_comparison_text(comparison, width=1000), render_comparison_markdown(comparison)):
        assert banned(text, names) == []


@pytest.mark.parametrize(("baseline", "run"), PAIRS)
def test_no_metric_takes_two_lines_of_80_columns(baseline, run):
    comparison = compared(baseline, run)
    lines = iter(render_comparison_text(comparison, width=WIDTH).splitlines())
    while not next(lines).startswith("   "):  # the header
        pass
    rows = list(takewhile(lambda line: not line.startswith("Unexpected drops"), lines))
    assert len(rows) == len(comparison.metrics) + bool(comparison.all_epochs) + bool(comparison.first_epochs)
    assert all(len(row) <= WIDTH for row in rows)


@pytest.mark.parametrize(
    ("baseline", "run", "says"),
    [
        (
            "n-fed",
            "n-starved",
            "Training per epoch 2.9 s → 12.2 s (4.2\u00d7 slower), because data loading got slower. ",
        ),
        (
            "n-starved",
            "n-fed",
            "Training per epoch 12.2 s → 2.9 s (4.2\u00d7 faster), because data loading got faster. ",
        ),
        (
            f"{ALIKE}/run-1",
            f"{ALIKE}/stalls-1",
            "Training per epoch 5.9 s → 8.1 s (37 % slower), because data loading got slower. ",
        ),
        (
            "ab-workers-2",
            "ab-workers-14",
            "Training per epoch 17.0 s → 3.4 s (5.0\u00d7 faster). Likely reason: workers 2 → 14.",
        ),
        (
            f"{ALIKE}/run-5",
            f"{ALIKE}/run-7",
            "Training per epoch 6.5 s → 7.0 s (7.5 % slower), but that is within the noise",
        ),
    ],
)
def test_the_verdict_says_from_what_to_what_and_how_many_times(baseline, run, says):
    assert compared(baseline, run).verdict.startswith(says)


@pytest.mark.parametrize("render", [render_comparison_text, render_comparison_markdown])
def test_intervals_are_explained_where_there_are_any(render):
    said = " ".join(render(compared("n-fed", "n-starved")).split())
    assert said.count("the change lies in it with 99 % certainty") == 1
    assert "99 %" not in render(compared("s-healthy", "s-killed"))


def test_no_column_is_empty():
    cut_short = compared("s-healthy", "s-killed")
    assert "baseline  run     \nTraining per epoch" in render_comparison_text(cut_short, width=WIDTH)
    assert "|  | baseline | run |\n" in render_comparison_markdown(cut_short)


@pytest.mark.parametrize("baseline", ["", "n-fed"])
def test_the_first_epoch_is_said_once_to_be_shown_and_not_judged(baseline):
    text = " ".join(render_comparison_text(compared(baseline, "n-starved"), width=WIDTH).split())
    assert text.count("The first epoch is warm-up. It is shown apart, and no gate counts it.") == 1
    assert "First epoch:" not in text


def test_a_run_without_drops_has_none():
    assert "Unexpected drops none" in " ".join(render_comparison_text(compared("", "n-starved"), width=WIDTH).split())
