"""What people read of real runs has no number that is missing, no doubled mark, and no bracket without its half."""

import re

import pytest
from support.archives import unpacked
from support.page_text import blocks_of, odd_in
from support.samples import ALL_NAMES, analysis_of

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.render import render_html
from gpu_report.render.run.summary_json import build_summary
from gpu_report.render.run.terminal import render_markdown, render_text

ARCHIVES = ("line_faults_h200", "services", "unseen_h100")
TEXTS = frozenset({"text", "title", "summary", "explanation", "basis", "reason", "decided_by", "note", "source"})
KERNEL = re.compile(r"^ +Kernel log: .*$", re.MULTILINE)  # what the kernel wrote, as it is


def odd_texts(analysis):
    """Return what is odd in page, terminal, Markdown and summary.json, by the text that has it."""
    found = {text: odd_in(text) for text in blocks_of(render_html(analysis))}
    printed = KERNEL.sub("", render_text(analysis, width=100_000))
    cells = [cell for line in printed.splitlines() for cell in re.split(r" {2,}", line)]
    marked = [line.replace("\\", "") for line in render_markdown(analysis).splitlines() if not line.startswith("|")]
    found |= {text: odd_in(text, is_page=False) for text in (*cells, *marked, *_texts(build_summary(analysis)))}
    return {text: odd for text, odd in found.items() if odd}


def _texts(part, key=""):
    """Yield the sentences of summary.json; what the kernel or a program wrote stands under other names."""
    if isinstance(part, dict):
        for name, value in part.items():
            yield from _texts(value, name) if name not in {"kernel", "kernel_events", "ending"} else ()
    elif isinstance(part, list):
        for each in part:
            yield from _texts(each, key)
    elif isinstance(part, str) and key in TEXTS:
        yield part


@pytest.mark.parametrize("name", ALL_NAMES)
def test_a_sample_runs_texts_are_whole(name):
    assert odd_texts(analysis_of(name)) == {}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    into = tmp_path_factory.mktemp("texts")
    for of in ARCHIVES:
        unpacked(into / of, of)
    return sorted(path.parent for path in into.rglob("run.json"))


def test_the_texts_of_runs_with_faults_are_whole(folders):
    odd = {path.name: odd_texts(analyse(load_run(path))) for path in folders}
    assert {name: texts for name, texts in odd.items() if texts} == {}


@pytest.mark.parametrize(
    "text",
    [
        "Epoch n/a train",
        "a ((b))",
        "None left",
        "It ended..",
        "a , b",
        "one (two",
        "It took -0 s",
        "the the",
        "a {gpus}",
        "`x`",
    ],
)
def test_what_is_odd_is_found(text):
    assert odd_in(text) != []


@pytest.mark.parametrize("text", ["It waits (queue.get()).", "n/a", "NaN losses", "a, b (c) ...", "2.1 to 3.0 s", "-1"])
def test_what_is_whole_is_not(text):
    assert odd_in(text) == []
