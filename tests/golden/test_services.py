"""Services that were recorded on two busy CPU cores, each with a fault of its own: what the report leads with.

`tests/data/services.tar.xz` holds the recordings (2026-11-27, YOLO26n, ultralytics 8.4.190). What other programs did on
the machine is in them as well.
"""

import tarfile
from pathlib import Path

import pytest

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.render import render_html
from gpu_report.render.run.terminal import render_text

ARCHIVE = Path(__file__).parents[1] / "data" / "services.tar.xz"


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    folder = tmp_path_factory.mktemp("services")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder / "services"


@pytest.mark.parametrize(
    ("name", "rule", "function"),
    [
        ("threads", "slow-between-calls", "annotate"),  # handlers of an HTTP server make the calls, under a lock
        ("asyncio", "slow-between-calls", "score_tiles"),  # blocks the loop; calls are made in a thread
        ("queue", "slow-between-calls", "enhance"),  # one thread fills the queue too slowly
        ("hook", "slow-code-in-calls", "keep"),
        ("saving", "slow-saving", None),
        ("tracking", "slow-tracking", None),
    ],
)
def test_what_makes_a_service_slow_comes_first_with_its_line(services, name, rule, function):
    analysis = analyse(load_run(services / name))
    finding = next(each for each in analysis.findings if each.rule == rule)
    led = next(sentence for sentence in analysis.verdict.sentences if sentence.findings)
    assert led.findings == (finding.id,)
    assert finding.severity == "warning"
    assert function in {None, finding.where[0].function}


def test_lines_of_calls_are_of_threads_and_no_idle_gpu(services):
    analysis = analyse(load_run(services / "queue"))
    page = render_html(analysis)
    assert "Another thread, between calls" in page
    assert "while the GPU was idle" not in page


def test_a_title_that_says_more_than_its_advice_stands_alone(services):
    printed = render_text(analyse(load_run(services / "hook")), width=200)
    assert printed.count("Run `keep` in other threads, or for fewer calls") == 2  # in the verdict, and once below it
