"""An export in a real TensorBoard: its charts are drawn, and text from outside is shown and does nothing."""

import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
from support.hostile import poison
from support.runs import make_run, readings

from gpu_report.analyse import analyse
from gpu_report.load import load_run
from gpu_report.model import Options
from gpu_report.render.tensorboard import render_event_file
from tests.conftest import clean_environment

pytestmark = pytest.mark.browser
RUN = Path(__file__).parents[2] / "sample_runs" / "n-starved"
STARTS_IN_S = 60
DRAWS_IN_MS = 60_000


@pytest.fixture(scope="module")
def tensorboard(tmp_path_factory):
    """The address of a TensorBoard that shows a plain run and a hostile one."""
    home = tmp_path_factory.mktemp("tensorboard")
    hostile = load_run(poison(RUN, home / "recording"))
    for name, run in (("plain", make_run([readings((80, 60)), readings((40, 60))])), ("hostile", hostile)):
        (home / "tb" / name).mkdir(parents=True)
        events = render_event_file(analyse(run, Options()), "https://ci.example.org/report.html")
        (home / "tb" / name / "events.out.tfevents.gpu-report").write_bytes(events)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(home / "tb"), "--port", str(port)]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--load_fast=false"],
        env=clean_environment(None),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}/"
    try:
        wait_for(f"{address}data/runs", server)
        yield address
    finally:
        server.terminate()
        server.wait(timeout=10)


def wait_for(address, server):
    deadline = time.monotonic() + STARTS_IN_S
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address, timeout=5) as answer:
                if answer.read().count(b'"') >= 4:  # both runs
                    return
        except OSError:
            pass
        time.sleep(0.2)
    raise AssertionError("TensorBoard does not answer")


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1400, "height": 1000})
    yield page
    page.close()


def test_findings_are_text_and_the_report_is_a_link(tensorboard, page):
    page.goto(f"{tensorboard}#text")
    link = page.get_by_role("link", name="Open the report").first
    link.wait_for(timeout=DRAWS_IN_MS)
    assert link.get_attribute("href") == "https://ci.example.org/report.html"
    page.get_by_text("</script><script>window.planted=1</script>").first.wait_for(timeout=DRAWS_IN_MS)
    assert page.evaluate("window.planted") is None
    assert {each.get_attribute("href") for each in page.get_by_role("link", name="report").all()} == {
        "https://ci.example.org/report.html"
    }


@pytest.mark.long  # a page of TensorBoard takes ten seconds of a core
def test_charts_of_ranges_are_drawn(tensorboard, page):
    page.goto(f"{tensorboard}#custom_scalars")
    page.get_by_text("GPU utilisation (%)").first.wait_for(timeout=DRAWS_IN_MS)
    page.get_by_text("GPU 0", exact=True).first.wait_for(timeout=DRAWS_IN_MS)


def test_each_gpu_is_a_group_of_scalars(tensorboard, page):
    page.goto(f"{tensorboard}?tagFilter=gpu_util#timeseries")
    for tag in ("gpu0/gpu_util_pct/min", "gpu1/gpu_util_pct/max"):
        page.get_by_text(tag).first.wait_for(timeout=DRAWS_IN_MS)
