"""The verdict's first sentence at the end of a recording: there, or silently not; never in anybody's way."""

import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest
from support.compared import analysed

from gpu_report.cli import first_sentence
from gpu_report.record import clocks
from gpu_report.record.lifecycle import signals
from gpu_report.record.lifecycle.announcement import ending
from gpu_report.record.lifecycle.command import Ended
from gpu_report.record.lifecycle.first_result import first_result

RUN = Path(__file__).parents[4] / "sample_runs" / "n-starved"


def test_it_is_the_first_sentence_of_the_verdict():
    with signals.blocked():
        assert first_result(RUN, limit_s=60) == analysed("n-starved").verdict.sentences[0].text


def test_what_cannot_be_analysed_is_silent(tmp_path, capfd):
    (tmp_path / "run.json").write_text("{")
    with signals.blocked():
        assert first_result(tmp_path, limit_s=60) == ""
    assert capfd.readouterr() == ("", "")


def test_it_is_not_waited_for_longer_than_its_limit():
    began_s = time.monotonic()
    with signals.blocked():
        assert first_result(RUN, limit_s=0.01) == ""
    assert time.monotonic() - began_s < 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_any_signal_ends_the_wait_and_does_nothing_else(number):
    began_s = time.monotonic()
    with signals.blocked():
        threading.Timer(0.05, os.kill, (os.getpid(), number)).start()
        assert first_result(RUN, limit_s=60) == ""
    assert time.monotonic() - began_s < 5


def test_a_long_recording_is_left_to_the_report(tmp_path, monkeypatch, capsys):
    shutil.copytree(RUN, tmp_path / "run")
    assert first_sentence.main(tmp_path / "run") == 0
    assert capsys.readouterr().out
    monkeypatch.setattr(first_sentence, "LARGEST_BYTES", 1000)
    assert first_sentence.main(tmp_path / "run") == 1
    assert capsys.readouterr().out == ""


def test_the_command_that_renders_can_be_typed_as_it_stands(tmp_path):
    assert ending(Path("my runs/1"), lossy=False).endswith("Next: `gpu-report render report.html 'my runs/1'`")
    assert "could not be written" in ending(Path("r"), lossy=True)
    unread = ending(Path("r"), lossy=False, is_read=False)
    assert "No GPU was read" in unread
    assert "render" not in unread


def test_a_command_that_failed_where_nothing_was_read_says_its_exit_code():
    def said(code, signal_name=None):
        return ending(Path("r"), lossy=False, is_read=False, ended=Ended(code, signal_name, clocks.now()))

    assert "The command failed (exit code 1). No GPU was read" in said(1)
    assert "(SIGKILL ended it)" in said(137, "SIGKILL")
    assert "failed" not in said(0)


def test_a_recording_says_what_it_records_and_where_and_how_to_see_it(run_cli, fake_nvml, tmp_path):
    fake_nvml.write("count=2\n")
    fast = ("--interval", "0.1", "--output", "r")
    done = run_cli("record", *fast, "--", "echo", "trained", env=fake_nvml.env())
    begun, *ended = done.stderr.splitlines()  # no terminal: nothing is analysed, nothing waited for
    name = json.loads((tmp_path / "r" / "run.json").read_text())["gpus"][0]["name"]
    assert begun == f"gpu-report: recording 2 GPUs ({name}), every 0.1 s, into r"
    assert ended == ["gpu-report: recorded into r. Next:", "    gpu-report render report.html r"]
    assert done.stdout == "trained\n"
    watched = run_cli("record", *fast[:3], "s", "--duration", "0.3", env=fake_nvml.env())
    assert watched.stderr.splitlines()[0].endswith(", every 0.1 s for 0.3 s, into s")
    assert watched.stdout == ""


@pytest.mark.parametrize("is_read", [True, False])
def test_who_makes_a_report_of_its_own_is_not_sent_to_another(tmp_path, is_read):
    assert ending(tmp_path, lossy=False, is_read=is_read, own_report=True) == f"recorded into {tmp_path}"
    assert "some of it could not be written" in ending(tmp_path, lossy=True, own_report=True)
