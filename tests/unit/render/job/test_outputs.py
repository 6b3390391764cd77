"""The report of a job as page, terminal and JSON: complete, escaped, and nothing but what was measured."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.hostile import PLANTED, STRINGS
from support.json_schema import errors
from support.made_job import hostile_job, made_epochs, made_gpu, made_node, made_part, made_rank, slow_pair

from gpu_report.analyse.job import analyse_job
from gpu_report.model import ClockState, CodeLocation
from gpu_report.render.job.job_json import build_job_json, render_job_json
from gpu_report.render.job.page import MOST_RANKS, compose_job, render_job_html
from gpu_report.render.job.strips import paths, rebinned
from gpu_report.render.job.terminal import render_job_text
from gpu_report.render.redaction.redact import JobRedaction

KEPT = ClockState(synchronised=True, offset_s=0.0, max_error_s=0.02, estimated_error_s=0.001)
SCHEMA = json.loads((Path(__file__).parents[4] / "docs" / "job.schema.json").read_text())


def many(nodes=16, gpus=8):
    """Return nodes of several ranks each."""
    return [
        made_node(
            node,
            job=made_part(node, nodes=nodes, world=nodes * gpus),
            gpus=tuple(map(made_gpu, range(gpus))),
            ranks=tuple(made_rank(node * gpus + gpu, gpu=gpu) for gpu in range(gpus)),
        )
        for node in range(nodes)
    ]


def with_missing():
    """Return two of three nodes: one has lost its readings."""
    runs = [made_node(number, job=made_part(number, nodes=3, world=3)) for number in (0, 1)]
    return [runs[0], replace(runs[1], gpus=(), ranks=(), busy_pct=None, host=None)]


@pytest.mark.parametrize("runs", [slow_pair(), many(), with_missing(), hostile_job(STRINGS[0])])
def test_the_json_is_as_its_schema_says(runs):
    summary = build_job_json(analyse_job(runs))
    assert errors(summary, SCHEMA) == []
    assert json.loads(render_job_json(analyse_job(runs))) == summary
    assert errors({**summary, "another": 1}, SCHEMA)


def test_the_json_says_whom_all_wait_for_and_how_clocks_differ():
    summary = build_job_json(analyse_job(slow_pair()))
    assert [node["clock_ahead_s"] for node in summary["nodes"]] == [0.0, 0.0]
    found = summary["findings"][0]
    assert (found["rule"], found["node"], found["rank"]) == ("straggler", "node 1", 1)
    assert found["where"][0]["function"] == "read_slowly"
    assert [row["data_wait_s"] for row in summary["ranks"]] == [0.1, 2.5]


def test_few_gpus_are_shown_and_many_are_folded():
    assert compose_job(analyse_job(many(2, 2))).timeline.open
    view = compose_job(analyse_job(many()))
    assert not view.timeline.open
    assert [len(node.gpus) for node in view.timeline.nodes] == [8] * 16
    assert (len(view.ranks.rows), view.more_ranks) == (MOST_RANKS, "96 more ranks in the JSON (`--json`)")
    assert view.timeline.nodes[1].gpus[2].name == "GPU 2, rank 10"


def test_a_node_that_waits_for_another_one_says_so():
    waiting, late = compose_job(analyse_job(slow_pair())).each_node
    assert "It waits for node 1 in each epoch" in waiting.verdict.replace("\u00a0", " ")
    assert "It waits" not in late.verdict


def test_a_wait_for_data_is_one_figure_in_finding_and_table():
    """A mean of the epochs in both: of waits that are seldom long the median is another figure."""
    uneven = [replace(epoch, data_wait_s=wait) for epoch, wait in zip(made_epochs(), (0, 0, 0, 0.1, 0.4), strict=True)]
    nodes = [made_node(0, ranks=(made_rank(0, epochs=tuple(uneven)),)), slow_pair()[1]]
    view = compose_job(analyse_job(nodes))
    (waits,) = [row[4] for row in view.ranks.rows if row[0] == "0"]
    assert f"the other rank {waits}" in view.findings[0].summary


def test_clocks_are_spoken_of_where_there_are_several():
    assert compose_job(analyse_job(slow_pair()[:1])).clocks == "One node was recorded, so there is no other clock."
    kept = [replace(node, job=replace(node.job, clock_start=KEPT, clock_end=KEPT), ranks=()) for node in slow_pair()]
    assert compose_job(analyse_job(kept)).clocks.startswith("Clocks are not corrected, because")


def test_a_missing_node_has_a_row_and_no_numbers():
    html = render_job_html(analyse_job(with_missing()))
    assert '<span class="tag">missing</span>' in html
    assert "Nothing was recorded of it, or its folder was not given." in html


@pytest.mark.parametrize("text", STRINGS)
def test_text_from_outside_stays_text(text):
    job = analyse_job(hostile_job(text))
    html = render_job_html(job)
    assert html.count("<script") == 1
    assert "<img" not in html
    assert "\x1b" not in render_job_text(job)
    assert f"<script>{PLANTED}" not in html


def test_a_job_to_share_names_no_host_folder_or_code():
    job = analyse_job(slow_pair())
    html = render_job_html(JobRedaction().redact(job))
    for name in ("host-1", "/data/node-1", "night-3"):
        assert name in render_job_html(job)
        assert name not in html


def test_the_terminal_has_a_line_a_node():
    lines = render_job_text(analyse_job(slow_pair())).split("\n")
    assert lines[1:] == [
        "node 0: host-0, NVIDIA H200, busy 95 % of training, clock reference",
        "node 1: host-1, NVIDIA H200, busy 95 % of training, clock +0 s",
    ]


def test_a_strip_has_no_colour_where_nothing_was_read():
    row = paths(np.array([0.0, 0.0, np.nan, 100.0]))
    assert [(each.level, each.path) for each in row] == [(0, "M0 0h2"), (7, "M3 0h1")]


def test_a_strip_is_moved_to_the_job_s_clock_and_its_columns():
    util = np.array([0, 100, np.nan, 50], dtype=np.float32)
    assert rebinned(util, 1.0, 2.0, 3, 2.0).tolist() == [pytest.approx(np.nan, nan_ok=True), 50.0, 50.0]
    assert rebinned(util, 2.0, 0.0, 8, 1.0)[:4].tolist() == [0.0, 0.0, 100.0, 100.0]


def test_no_sentence_of_the_page_is_long():
    late = made_rank(1, epochs=made_epochs(wait_s=2.5), loading=(CodeLocation("workers", "read", "/a/b.py", 3, 0.9),))
    for runs in (slow_pair(), with_missing(), many(2, 2), [made_node(0), made_node(1, ranks=(late,))]):
        job = analyse_job(runs)
        texts = [said.text for said in job.verdict] + [finding.summary for finding in job.findings]
        for text in texts:
            for part in re.split(r"(?<=[.;:]) ", text):
                assert len(part.split()) <= 20, part
