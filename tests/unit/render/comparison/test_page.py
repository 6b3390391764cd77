"""The comparison page's words and charts: what it shows of two runs, and that all of it is escaped."""

import re
from dataclasses import replace

import pytest
from support.compared import analysed, on_gpu, slower, with_findings, with_notes, with_settings

from gpu_report.analyse.compare import compare, without_baseline
from gpu_report.analyse.compare.gate_syntax import default_gates
from gpu_report.model import Cause, Finding, LineChange, Sentence, Verdict
from gpu_report.render.comparison.charts import charts
from gpu_report.render.comparison.compose import compose_comparison
from gpu_report.render.comparison.page import render_comparison_html

GATES = default_gates(baseline=True)
HOSTILE = '</script><script>window.planted=1</script><img src=x onerror="window.planted=1">'


@pytest.fixture(scope="module")
def worse():
    return compare([analysed("n-fed")], analysed("n-starved"), GATES)


def test_the_verdict_the_gates_and_the_changed_arguments_are_there(worse):
    view = compose_comparison(worse)
    assert view.verdict.startswith("Training per epoch 2.9\u00a0s \u2192 12.2\u00a0s (4.2\u00d7 slower)")
    assert [gate.word for gate in view.gates[:2]] == ["failed", "failed"]
    assert {row.name for row in view.differences if row.kind == "argument"} == {"workers", "cache", "epochs"}
    assert [(row.status, row.severity) for row in view.findings] == [("new", "warning")]


@pytest.mark.parametrize(
    ("baseline", "run", "status"),
    [
        (lambda: analysed("n-fed"), lambda: analysed("n-starved"), "critical"),
        (lambda: analysed("n-starved"), lambda: analysed("n-fed"), "good"),
        (lambda: analysed("m-healthy"), lambda: analysed("m-healthy"), "good"),
        (lambda: analysed("s-storage"), lambda: analysed("s-loader-stall"), "warning"),
        (lambda: on_gpu(analysed("m-healthy"), "NVIDIA L4"), lambda: analysed("m-healthy"), "unknown"),
    ],
)
def test_the_status_is_that_of_the_gates(baseline, run, status):
    assert compose_comparison(compare([baseline()], run(), GATES)).status == status


def several():
    return compare(
        [slower(analysed("m-healthy"), factor) for factor in (1.0, 1.02, 1.09)],
        slower(analysed("m-healthy"), 1.1),
        default_gates(baseline=True),
    )


def test_what_baselines_differ_by_stands_in_the_table_and_what_is_within_it_is_marked():
    page = render_comparison_html(several())
    assert "7.47 to 8.14 s<br>(5.99 to 9.50 s)" in page
    row = next(row for row in compose_comparison(several()).metrics if row.label == "Training per epoch")
    assert (row.status, row.judgement, row.note) == ("in-band", "within the band", "")
    alone = render_comparison_html(compare([analysed("n-fed")], analysed("n-starved")))
    assert 'class="band"' not in alone


def test_gates_that_could_not_decide_are_no_alarm():
    view = compose_comparison(several())
    assert view.status == "warning"
    assert [(gate.word, gate.status) for gate in view.gates][:1] == [("undecided", "warning")]


def test_without_a_baseline_the_page_shows_the_run_alone():
    found = without_baseline(analysed("n-fed"), default_gates(baseline=True), "there is no baseline yet")
    page = render_comparison_html(found)
    assert "n-fed, without a baseline" in page
    assert "What was measured" in page
    assert not any(part in page for part in ('id="gates"', 'id="findings"', 'id="setup"', ">Baseline<", "#gates"))


def test_whiskers_share_one_scale_with_zero_in_the_middle():
    view = compose_comparison(compare([analysed("s-healthy")], slower(analysed("s-healthy"), 1.1), GATES))
    time = next(row for row in view.metrics if row.label == "Training per epoch")
    assert view.whiskers == "\u221225\u00a0% to +25\u00a0%"
    assert time.whisker.change == pytest.approx(140, abs=0.2)  # 10 of 25 %
    assert time.whisker.low < time.whisker.change < time.whisker.high


def test_both_timelines_have_their_epochs_at_the_same_places(worse):
    view = charts(worse)
    assert [lane.name for lane in view.lanes] == ["n-fed", "n-starved"]
    assert len(view.columns) == 12
    width = 1000 / 12
    for lane, epochs in zip(view.lanes, (12, 3), strict=True):
        xs = [float(x) for _, path in lane.paths for x in re.findall(r"[ML](-?[\d.]+),", path)]
        assert min(xs) >= 0
        assert (epochs - 1) * width < max(xs) <= epochs * width
        starts = [x for name, x, _ in lane.phases if name == "train"]
        assert starts == pytest.approx([n * width for n in range(epochs)], abs=0.01)


def test_an_epochs_phases_fill_no_more_than_its_place(worse):
    width = 1000 / 12
    for lane in charts(worse).lanes:
        for _, x, wide in lane.phases:
            assert int((x + 0.02) // width) == int((x + wide - 0.02) // width)


def test_epochs_that_are_not_compared_are_hollow_and_in_no_line(worse):
    panel = charts(worse).panels[0]
    hollow = {(dot.kind, round(dot.x * 12 / 1000 + 0.5)) for dot in panel.dots if "apart" in dot.kind}
    assert hollow == {("before apart", 1), ("before apart", 3), ("after apart", 1)}
    before = dict(panel.lines)["before"]
    assert before.count("M") == 2  # it breaks around epoch 3
    assert before.count("M") + before.count("L") == 10


def test_every_gpu_of_a_training_is_a_line():
    view = charts(compare([analysed("m-ddp")], analysed("m-ddp-stopped"), GATES))
    assert [[colour for colour, _ in lane.paths] for lane in view.lanes] == [["gpu-0", "gpu-1"]] * 2


def test_the_table_says_the_same_in_numbers(worse):
    table = charts(worse).table
    assert table.columns[:3] == ("Epoch", "Training part, baseline", "Training part, run")
    assert table.rows[1][:3] == ("2", "3.10 s", "11.2 s")
    assert table.rows[11][2] == ""


def test_without_epochs_there_are_no_charts():
    found = compare([analysed("xid31")], analysed("xid31"), GATES)
    assert charts(found) is None
    assert "Epoch by epoch" not in render_comparison_html(found)


def test_a_thousand_epochs_make_a_page_of_a_bearable_size():
    whole = analysed("yolo26n-cli")
    many = replace(whole, epochs=tuple(replace(whole.epochs[n % 49 + 1], epoch=n) for n in range(1, 1001)))
    assert len(render_comparison_html(compare([many], many, GATES))) < 1_500_000


def test_what_is_typed_is_set_as_code_in_every_box(worse):
    page = render_comparison_html(worse)
    assert "<code>workers=11</code>" in page.partition('class="own-verdict"')[2]
    assert "`" not in re.sub(r"<script.*?</script>|<style.*?</style>", "", page, flags=re.DOTALL)


def test_every_text_from_a_run_is_escaped():
    bad = Finding("drop-1", "drop", "warning", 0, 1.0, 20.0, HOSTILE, cause=Cause(HOSTILE, 0.5, HOSTILE))
    run = with_findings(with_settings(slower(analysed("s-healthy"), 1.3), data=HOSTILE, optimizer=HOSTILE), bad)
    run = replace(run, run=replace(run.run, path=f"runs/{HOSTILE}"), verdict=Verdict((Sentence("work", HOSTILE),)))
    found = compare([replace(analysed("s-healthy"), verdict=Verdict((Sentence("work", HOSTILE),)))], run, GATES)
    lines = (LineChange("main", HOSTILE, f"/a/{HOSTILE}", 1, 2, 1.0, 2.0),)
    page = render_comparison_html(replace(found, code_lines=lines))
    assert page.count("window.planted") >= 8
    assert "<img src=x" not in page
    assert page.count("<script") == 1


def test_lines_have_a_section_where_they_are_compared_and_a_sentence_where_none_changed(worse):
    assert 'id="lines"' not in render_comparison_html(worse)
    noted = with_notes(analysed("s-healthy"), 1.0)
    page = render_comparison_html(compare([noted], noted))
    assert "At no line of code did idle GPU time change by more than noise." in page
    changed = render_comparison_html(compare([noted], with_notes(analysed("s-healthy"), 2.0)))
    assert '<a href="#lines">Lines</a>' in changed
    assert re.search(r'status-slower">slower</span></td><th scope="row">log_images \(callbacks.py:41\)</th>', changed)


def test_the_policy_allows_its_own_script_and_style_alone(worse):
    page = render_comparison_html(worse)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe" not in policy
    assert not re.search(r"\s(style|on\w+)=", re.sub(r"<(style|script).*?</\1>", "", page, flags=re.DOTALL))
    assert not re.search(r'(src|href)="(?!#|data:)', page)


def test_both_lanes_have_a_line_before_every_epoch_but_the_first(worse):
    edges = re.findall(r'class="around-epoch" d="([^"]*)"', render_comparison_html(worse))
    assert [edge.count("M") for edge in edges] == [11, 11]


def test_gates_of_which_the_same_is_to_be_said_are_one_row():
    comparison = compare([analysed("ab-batch-8")], analysed("ab-batch-64"), GATES)
    rows = compose_comparison(comparison).gates
    assert sum(len(row.gates) for row in rows) == len(comparison.gates)
    assert len({(row.word, row.summary) for row in rows}) == len(rows)
    assert len(rows[0].gates) > 1
    assert "99 % interval" not in render_comparison_html(comparison)  # no change could be judged


def test_runs_have_the_names_of_their_own_reports():
    fed = analysed("n-fed")
    named = replace(fed, run=replace(fed.run, path="/runs/train2"))
    title = compose_comparison(compare([named], named, GATES)).title
    assert "train2" not in title
    assert title.endswith("compared with the one of 2026-11-21 10:49:53 UTC")


def test_a_run_without_utilisation_has_its_phases_and_no_empty_axis():
    """As a training on the CPU: an axis up to 100 % without a line looks like a GPU that did nothing."""
    bare = replace(analysed("n-fed"), gpus=())
    page = render_comparison_html(compare([bare], bare, GATES))
    assert page.count('<svg class="lane-phases"') == 2
    assert '<svg class="lane"' not in page
    assert "<span>100 %</span>" not in page
    assert '<p class="epoch-axis" aria-hidden="true"><span>Baseline</span></p>' in page
