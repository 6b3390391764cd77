"""The summary in a job's log and in a pull request: what a run is called gives no command and mentions nobody."""

import dataclasses
import json
import re

import pytest
from support.compared import analysed

from gpu_report.render.run.summary_json import render_summary
from gpu_report.render.run.terminal import render_markdown, render_text

COMMAND = re.compile(r"(?m)^\s*::|##\w*\[")
WORDS = (
    *("::error::A", "##[error]B", "##vso[task.complete]C"),
    *("@everyone #1 me/repo#12 GH-12 www.evil.test https://evil.test", "\x1b[2J\x07\x9b2J\u202e"),
)


@pytest.fixture(scope="module", params=WORDS)
def hostile(request):
    analysis = analysed("n-starved")
    run = analysis.run
    gpus = [dataclasses.replace(gpu, name=request.param) for gpu in run.gpus]
    summaries = [dataclasses.replace(one, gpu=gpu) for one, gpu in zip(analysis.gpus, gpus, strict=True)]
    problems = (request.param, f"a\n{request.param}")
    run = dataclasses.replace(run, path=request.param, gpus=tuple(gpus), problems=problems)
    findings = [dataclasses.replace(finding, summary=request.param) for finding in analysis.findings]
    return dataclasses.replace(analysis, run=run, gpus=tuple(summaries), findings=tuple(findings))


@pytest.mark.parametrize("width", [20, 60, 200])
def test_a_log_holds_no_command_of_a_runs(hostile, width):
    text = render_text(hostile, width=width)
    assert not COMMAND.search(text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)


def test_markdown_mentions_links_and_commands_nothing(hostile):
    text = render_markdown(hostile)
    assert not COMMAND.search(text)
    assert not re.search(r"@\w|://\w|www\.\w|#\d|GH-\d|[\x1b\x9b\u202e]", text)


def test_json_says_the_same_without_a_command(hostile):
    text = render_summary(hostile)
    assert not COMMAND.search(text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", text)
    assert json.loads(text)["run"]["problems"][0] == hostile.run.problems[0]
