"""The live page beside a real recorder: what is sampled is on it, and what is no more is not."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress

import pytest
from conftest import clean_environment, cli_command, wait_for

LOOKS_S = 1.5  # from a sample to the page
BUSY = [sys.executable, "-c", "import time; time.sleep(60)"]


@contextmanager
def recording(fake, folder, *words):
    """Record under a live page; yields the recorder and the page's address."""
    command = cli_command("record", "--live", "--interval", "0.5", "--output", folder, *words, "--", *BUSY)
    environment = clean_environment(fake.env())
    alone = {"cwd": folder.parent, "start_new_session": True}
    recorder = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True, **alone)
    try:
        said = recorder.stderr.readline()
        yield recorder, re.search(r"http://[^ \n]+", said)[0]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(recorder.pid, signal.SIGKILL)  # with its command, which would hold its stderr open
        recorder.communicate()
        subprocess.run(["pkill", "-f", f"serve {folder}"], check=False)


def ask(address, path="", **headers):
    """Return the status and the text of an answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address + path, headers=headers), timeout=20) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def status(address):
    return json.loads(ask(address, "gpu-status")[1] or '{"state": "", "gpus": []}')


@pytest.fixture
def live(fake_nvml, tmp_path):
    fake_nvml.write("count=2\nutil=90\nring=0\n")
    with recording(fake_nvml, tmp_path / "run", "--on", "failed", "--run", "touch failed") as (recorder, address):
        wait_for(lambda: status(address)["gpus"], timeout_s=30)
        yield recorder, address


def test_a_recording_is_followed_to_its_loss(live, fake_nvml, tmp_path):
    recorder, address = live
    assert status(address)["state"] == "recording"
    assert [gpu["gpu_util_pct"] for gpu in status(address)["gpus"]] == [90.0, 90.0]
    fake_nvml.write("count=2\nutil=33\nring=0\n")
    changed_s = time.monotonic()
    wait_for(lambda: status(address)["gpus"][0]["gpu_util_pct"] == 33.0)
    assert time.monotonic() - changed_s < LOOKS_S + 1.0  # and half a second until it is sampled
    for path in ("", "metrics", "healthz", "live.js", "report.css", "report.html"):
        assert ask(address, path)[0] == 200
    assert ask(address, "../../etc/passwd")[0] == 404
    assert ask(address, "run.json")[0] == 404
    assert ask(address, "gpu-status", Host="evil.example")[0] == 403
    recorder.send_signal(signal.SIGKILL)
    wait_for(lambda: status(address)["state"] == "recorder gone", timeout_s=30)
    gone = status(address)
    assert gone["gpus"][0]["gpu_util_pct"] is None
    assert gone["last_sample"]
    assert "gpu_report_gpu_utilization_ratio{" not in ask(address, "metrics")[1]
    assert not (tmp_path / "failed").exists()  # nobody knows how the training ended


def test_after_the_end_the_page_is_the_report(live, tmp_path):
    recorder, address = live
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(20) == 128 + signal.SIGTERM
    wait_for(lambda: "report-data" in ask(address)[1], timeout_s=60)
    wait_for((tmp_path / "failed").exists)
    (line,) = (tmp_path / "run" / "actions.jsonl").read_text().splitlines()
    assert json.loads(line)["condition"] == "failed"


def test_without_what_it_needs_the_training_does_not_start(run_cli, fake_nvml, tmp_path):
    (tmp_path / "hides").mkdir()
    (tmp_path / "hides" / "sitecustomize.py").write_text("import sys\nsys.modules['starlette'] = None\n")
    path = os.pathsep.join([str(tmp_path / "hides"), clean_environment()["PYTHONPATH"]])
    done = run_cli("record", "--live", "--", "touch", "ran", env={**fake_nvml.env(), "PYTHONPATH": path})
    assert done.returncode == 2
    assert "pip install '.[live]'" in " ".join(done.stderr.split())
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("words", "code"), [(("--background", "--", "true"), 2), (("--gpus", "9", "--", "true"), 2), ((), 5)]
)
def test_what_is_not_recorded_leaves_no_server_behind(run_cli, fake_nvml, tmp_path, words, code):
    environment = fake_nvml.env() if words else {"LD_LIBRARY_PATH": "/nonexistent"}
    done = run_cli("record", "--live", "--output", "refused", *words, env=environment)
    assert done.returncode == code
    assert "live page" not in done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--host", "0.0.0.0"), "--token"),
        (("--token", "short"), "8 or more"),
        (("--on", "idle>1m"), "give each --on a --run"),
        (("--on", "soon", "--run", "x"), "is no condition"),
        (("--port", "1", "--host", "127.0.0.1"), "cannot listen"),
    ],
)
def test_what_makes_no_sense_is_refused(run_cli, tmp_path, words, why):
    if "--port" in words and os.geteuid() == 0:
        words = ("--host", "203.0.113.1", "--token", "long-enough")  # an address of nobody's
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "samples.csv").write_text("wall_s,mono_s,gpu\n")
    done = run_cli("serve", "run", *words)
    assert done.returncode == 2
    assert why in done.stderr
