"""A run as TensorBoard's own reader sees it: points, epochs, texts and charts."""

import math
from dataclasses import replace

import markdown
import numpy as np
import pytest
from support.hostile import STRINGS
from support.runs import make_run, readings
from support.tensorboard import accumulated
from tensorboard.plugins.custom_scalar import layout_pb2

from gpu_report.analyse import analyse
from gpu_report.model import Options
from gpu_report.render.tensorboard import render_event_file
from gpu_report.render.tensorboard.epochs import epoch_points
from gpu_report.render.tensorboard.parts import MOST_POINTS, lines_of, part_count, part_seconds
from gpu_report.render.tensorboard.texts import report_text

DAY_S = 86_400


def shown(folder, analysis, **options):
    folder.mkdir(exist_ok=True)
    (folder / "events.out.tfevents.gpu-report").write_bytes(render_event_file(analysis, **options))
    return accumulated(folder)


def texts(found):
    return {
        tag.removeprefix("report/"): found.Tensors(tag)[0].tensor_proto.string_val[0].decode()
        for tag in found.Tags()["tensors"]
        if tag.startswith("report/")
    }


@pytest.fixture(scope="module")
def of_a_minute():
    util = [*readings((0, 5), (80, 55)), math.nan, *readings((80, 9))]
    run = make_run([util, readings((60, 70))], rows=[(1, 20.0), (2, 40.0), (3, 60.0)])
    return analyse(run, Options())


def test_a_point_a_second_has_the_reading_as_minimum_mean_and_maximum(tmp_path, of_a_minute):
    found = shown(tmp_path / "run", of_a_minute)
    points = {each: found.Scalars(f"gpu0/gpu_util_pct/{each}") for each in ("min", "mean", "max")}
    assert [point.value for point in points["min"]] == [0] * 5 + [80] * 64
    assert points["min"] == points["mean"] == points["max"]
    assert 60 not in [point.step for point in points["min"]]  # a reading that failed is missing, never zero
    start_s = of_a_minute.run.start_wall_s
    assert all(point.wall_time == start_s + point.step for point in points["min"])
    assert {point.value for point in found.Scalars("gpu1/gpu_util_pct/max")} == {60}


def test_what_was_never_read_has_no_tag(tmp_path, of_a_minute):
    tags = shown(tmp_path / "run", of_a_minute).Tags()["scalars"]
    assert {tag.split("/")[1] for tag in tags if tag.startswith("gpu")} == {"gpu_util_pct"}
    assert not [tag for tag in tags if tag.startswith("host")]


def test_a_drop_of_ten_seconds_is_in_the_minimum_of_a_day(tmp_path):
    util = np.full(DAY_S, 90.0)
    util[50_000:50_010] = 2.0
    analysis = analyse(make_run(util.tolist(), rows=[(1, DAY_S - 10.0)]), Options())
    found = shown(tmp_path / "run", analysis)
    least = found.Scalars("gpu0/gpu_util_pct/min")
    assert len(least) <= MOST_POINTS
    (drop,) = [point for point in least if point.value < 50]
    assert drop.step <= 50_000 < drop.step + 87
    most = {point.step: point.value for point in found.Scalars("gpu0/gpu_util_pct/max")}
    assert most[drop.step] == 90


def test_no_tag_has_more_points_than_tensorboard_keeps_and_none_is_lost(tmp_path):
    for seconds in (1, 999, 1000, 1001, 5000):
        analysis = analyse(make_run([50.0] * seconds), Options())
        every = shown(tmp_path / f"run{seconds}", analysis).Scalars("gpu0/gpu_util_pct/mean")
        assert seconds / 2 / MOST_POINTS < len(every) <= MOST_POINTS
        assert [point.step for point in every] == sorted({point.step for point in every})


@pytest.mark.parametrize("duration_s", [0.1, 1.0, 59.9, 1000.0, 1000.5, 86_400.0, 1e7])
@pytest.mark.parametrize("most", [0, 1, 100, 1000, 5000])
def test_parts_are_whole_seconds_and_never_too_many(duration_s, most):
    part_s = part_seconds(duration_s, most)
    assert part_s >= 1
    assert part_count(duration_s, part_s) <= min(max(most, 1), MOST_POINTS)


def test_readings_at_the_very_end_belong_to_the_last_part():
    rows = make_run([10.0, 20.0, 30.0]).samples.assign(t_s=[0.0, 1.0, 2.0])
    least, mean, most = (line.values for line in lines_of("g", rows, ["gpu_util_pct"], 1, 2))
    assert (least.tolist(), mean.tolist(), most.tolist()) == ([10, 20], [10, 25], [10, 30])


def test_epochs_have_their_numbers_as_steps(tmp_path, of_a_minute):
    found = shown(tmp_path / "run", of_a_minute)
    assert [(point.step, point.value) for point in found.Scalars("epoch/duration_s")] == [(1, 20), (2, 20), (3, 20)]
    assert [point.value for point in found.Scalars("epoch/loss")] == [3.0] * 3
    ends = [point.wall_time - of_a_minute.run.start_wall_s for point in found.Scalars("epoch/lr")]
    assert ends == [20, 40, 60]


def test_thousands_of_epochs_are_means_at_the_last_ones_number(of_a_minute):
    (one, *_) = of_a_minute.epochs
    many = [replace(one, epoch=n, start_t_s=n, end_t_s=n + 1.0, loss=float(n)) for n in range(1, 2501)]
    points = list(epoch_points(many))
    assert len(points) <= MOST_POINTS
    assert (points[0][1], points[0][2]["epoch/loss"], points[-1][1]) == (3, 2.0, 2500)


def test_a_second_run_has_tags_of_its_own_and_a_repeated_epoch_its_last_attempt(of_a_minute):
    (one, *_) = of_a_minute.epochs
    again = replace(one, attempt=2, loss=9.0)
    other = replace(one, run=3, loss=5.0)
    points = [(step, values) for _, step, values in epoch_points([one, again, other])]
    assert [(step, values.get("epoch/loss"), values.get("epoch_run3/loss")) for step, values in points] == [
        (1, 9.0, None),
        (1, None, 5.0),
    ]


def test_the_texts_are_the_summary_the_findings_and_the_report_s_link(tmp_path, analysis):
    said = texts(shown(tmp_path / "run", analysis, report="https://ci.example.org/r.html"))
    assert set(said) == {"summary", "findings", "link"}
    assert said["link"] == "[Open the report](https://ci.example.org/r.html)"
    listed = [finding.id for finding in analysis.findings if not finding.expected]
    assert [line.split("**")[1] for line in said["findings"].splitlines()] == listed


def test_without_a_report_the_command_that_makes_it_is_named(analysis):
    assert "gpu-report render report.html" in report_text(analysis, None)
    assert report_text(analysis, "out/report.html") == "The report: `out/report.html`"


@pytest.mark.parametrize("report", ["javascript:alert(1)", "https://x/)[a](javascript:b", "http://x/<script>", "`a`"])
def test_only_an_address_of_the_web_is_a_link(analysis, report):
    assert "](" not in report_text(analysis, report).removeprefix("The report: `").partition("`")[2]
    assert report_text(analysis, report).startswith("The report: `")


@pytest.mark.parametrize("text", STRINGS)
def test_text_from_outside_is_shown_and_does_nothing(tmp_path, analysis, text):
    """As TensorBoard renders it: Markdown to HTML, without its sanitiser, which would hide what we let through."""
    findings = tuple(replace(finding, summary=f"{text} ![x](http://evil.test) **b**") for finding in analysis.findings)
    run = replace(analysis.run, path=text, samples=analysis.run.samples.head(20))  # points are no text
    said = texts(shown(tmp_path / "run", replace(analysis, findings=findings, run=run)))
    for each in said.values():
        html = markdown.markdown(each, extensions=["markdown.extensions.tables", "markdown.extensions.fenced_code"])
        assert not [tag for tag in ("<script", "<img", "<svg", "<iframe", "<a ", "<style", "<base") if tag in html]


def test_charts_have_the_mean_between_minimum_and_maximum(tmp_path, of_a_minute):
    found = shown(tmp_path / "run", of_a_minute)
    layout = layout_pb2.Layout()
    layout.ParseFromString(found.Tensors("custom_scalars__config__")[0].tensor_proto.string_val[0])
    assert [(category.title, category.closed) for category in layout.category] == [("GPU 0", False), ("GPU 1", True)]
    (chart,) = layout.category[0].chart
    (series,) = chart.margin.series
    assert (chart.title, series.value) == ("GPU utilisation (%)", "gpu0/gpu_util_pct/mean")
    assert (series.lower, series.upper) == ("gpu0/gpu_util_pct/min", "gpu0/gpu_util_pct/max")
    assert {series.value, series.lower, series.upper} <= set(found.Tags()["scalars"])
