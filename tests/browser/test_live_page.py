"""The live page in Chromium: what stands there while a run goes on, falls, loses its recorder, and ends."""

import fcntl
import socket
import threading
import time

import pytest
import support.growing
import uvicorn
from support.browser import wait_until
from support.growing import GrowingRun

from gpu_report.live.actions import Actions
from gpu_report.live.follower import Follower
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.report_so_far import Reports
from gpu_report.live.web.access import AccessGuard
from gpu_report.live.web.app import Page

pytestmark = pytest.mark.browser


@pytest.fixture
def growing(tmp_path, monkeypatch):
    """A run of two GPUs that began two minutes ago."""
    monkeypatch.setattr("support.growing.START_S", time.time() - 120)
    return GrowingRun(tmp_path / "<b>run", gpus=2)


@pytest.fixture
def address(growing):
    """Where the page of that run is served."""
    listening = socket.create_server(("127.0.0.1", 0))
    reports = Reports(growing.folder, 3.6)
    follower = Follower(RunNow(growing.folder), reports, Actions(growing.folder, []), 3.6)
    config = uvicorn.Config(AccessGuard(Page(follower).app(), None), log_level="critical", timeout_graceful_shutdown=0)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(params=[pytest.param(1280, marks=pytest.mark.long), 390], ids=["wide", "phone"])
def page(request, browser):
    """A page, and what went wrong in it."""
    made = browser.new_page(viewport={"width": request.param, "height": 900})
    made.errors = []
    made.on("pageerror", lambda error: made.errors.append(str(error)))
    made.on("console", lambda line: made.errors.append(line.text) if line.type in ("error", "warning") else None)
    yield made
    assert made.errors == []
    made.close()


def test_a_run_goes_on_and_falls_and_loses_its_recorder(growing, address, page):
    growing.inside("run", 0, task="train", rank=0)
    growing.inside("settings", 0, model="<i>m</i>.yaml", epochs=10, batches=50)
    for epoch in (1, 2, 3):
        growing.inside("phase", 30 * epoch - 30, name="train", epoch=epoch)
    growing.rows(0, 90, seconds=100)
    growing.rows(100, 2, seconds=20)
    page.goto(address)
    wait_until(page, "document.getElementById('busy').textContent.startsWith('2')")
    assert page.inner_text("#epoch") == "3 of 10"
    assert page.inner_text("h1") == "<b>run"
    assert "<i>m</i>.yaml" in page.inner_text("#subtitle")
    assert "Utilisation of GPUs 0 and 1 fell from 90 % to 2 %" in page.inner_text("#alarms")
    wait_until(page, "document.querySelectorAll('#chart .cartesianlayer .js-line').length === 2")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    left = "document.querySelector('{}').getBoundingClientRect().left"
    assert page.evaluate(f"{left.format('#gpus th')} >= {left.format('.wide:has(#gpus)')}")  # no letter is cut off
    growing.rows(120, 80)
    wait_until(page, "document.getElementById('busy').textContent.startsWith('80')")
    page.click("[data-quantity=power_w]")
    page.click("[data-range=all]")
    wait_until(page, "document.querySelectorAll('#chart .cartesianlayer .js-line').length >= 2")
    wait_until(page, "document.getElementById('state').dataset.state === 'recorder gone'")
    assert page.inner_text("#busy") == "n/a"
    assert "stopped at" in page.inner_text("#state")


def test_an_open_page_turns_into_the_report(growing, address, page):
    growing.rows(0, 90, seconds=121)
    page.goto(address)
    wait_until(page, "document.getElementById('busy').textContent.startsWith('90')")
    growing.event("recording_ended", 121, ended_by="command", signal=None, exit_code=0)
    page.wait_for_selector("#report-data", state="attached", timeout=60_000)
    page.wait_for_selector("html[data-ready=yes]")
    assert "GPU report" in page.title()


def test_without_a_gpu_the_page_draws_the_host_and_the_calls(growing, address, page):
    """A service on a machine without a GPU, which has been called for a minute."""
    start_s = support.growing.START_S
    rows = [f"{start_s + n},{100.0 + n},{n % 90},2048,6144,150\n" for n in range(122)]
    head = "wall_s,mono_s,cpu_pct,memory_used_mib,memory_available_mib,main_cpu_pct\n"
    (growing.folder / "host.csv").write_text(head + "".join(rows))
    growing.inside("run", 0, task="predict", rank=0)
    calls = [f"{160.0 + n / 2},1,1,640,640,1,2,1,{20 + n % 3},\n" for n in range(120)]
    head = "mono_s,model,images,height,width,preprocess_ms,inference_ms,postprocess_ms,total_ms,gap_ms\n"
    (growing.folder / "inside" / "7.calls.csv").write_text(head + "".join(calls))
    with (growing.folder / "samples.csv").open() as samples:
        fcntl.flock(samples, fcntl.LOCK_EX)  # as a recorder does
        check_what_is_shown_without_a_gpu(page, address)


def check_what_is_shown_without_a_gpu(page, address):
    page.goto(address)
    wait_until(page, "document.querySelectorAll('#chart .cartesianlayer .js-line').length === 1")
    assert page.inner_text("#no-gpu").startswith("No GPU is read here.")
    shown = page.locator("[data-quantity]:visible").all_inner_texts()
    assert shown == ["CPU", "Host memory", "Calls", "Latency"]
    assert page.inner_text("#epoch").strip() == "2.0"
    assert not page.locator("#left").is_visible()
    assert not page.locator("#gpus").is_visible()
    page.click("[data-quantity=host_memory_mib]")
    wait_until(page, "document.getElementById('chart').layout.yaxis.ticksuffix === ' GiB'")
    assert page.evaluate("document.getElementById('chart').data[0].y.at(-1)") == 2
    assert page.locator("[data-range=all]").is_disabled()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_beside_gpus_the_host_can_be_drawn(growing, address, page):
    growing.rows(0, 90, seconds=121)
    (growing.folder / "host.csv").write_text(
        f"wall_s,mono_s,cpu_pct,memory_used_mib\n{support.growing.START_S + 121},221,40,2048\n"
    )
    page.goto(address)
    wait_until(page, "document.querySelectorAll('#chart .cartesianlayer .js-line').length === 2")
    assert page.locator("[data-quantity]:visible").count() == 6
    assert page.locator("#no-gpu").is_hidden()
    page.click("[data-quantity=cpu_pct]")
    wait_until(page, "document.getElementById('chart').data.length === 1")
    assert page.evaluate("document.getElementById('chart').data[0].y[0]") == 40
