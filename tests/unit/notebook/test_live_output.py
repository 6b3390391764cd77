"""The live output's thread: whatever fails in it, the training hears nothing, and waits for nothing."""

import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import pytest

from gpu_report.notebook import live_output
from gpu_report.notebook.live_output import LiveOutput
from tests.conftest import wait_for


class Handle:
    def __init__(self):
        self.shown = []
        self.error = None

    def update(self, made, *, raw):
        assert raw
        self.shown.append(made)
        if self.error is not None:
            raise self.error


@pytest.fixture
def notebook(monkeypatch):
    """A kernel that keeps what is displayed."""
    handle = Handle()

    def display(made, *, raw, display_id):
        assert raw
        assert display_id
        handle.shown.append(made)
        return handle

    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    return handle


def test_where_there_is_no_notebook_one_line_says_so(capsys, tmp_path):
    live = LiveOutput(tmp_path)
    live.begin()
    live.end()
    assert capsys.readouterr().out == f"{live_output.NO_NOTEBOOK}\n"
    assert not [thread for thread in threading.enumerate() if thread.name == live_output.NAME]


def test_one_output_is_renewed_until_the_verdict_stands_there(notebook, tmp_path, monkeypatch):
    monkeypatch.setattr(live_output, "_final", lambda _: {"text/plain": "verdict"})
    live = LiveOutput(tmp_path, 0.01)
    live.begin()
    wait_for(lambda: len(notebook.shown) > 3)
    live.end()
    assert notebook.shown[-1] == {"text/plain": "verdict"}
    assert notebook.shown[-2]["text/plain"] == "The training is over."


def test_an_output_that_cannot_be_renewed_disturbs_nobody(notebook, tmp_path, monkeypatch):
    monkeypatch.setattr(live_output, "_final", lambda _: {"text/plain": "verdict"})
    monkeypatch.setattr(threading, "excepthook", lambda args: pytest.fail(str(args)))
    live = LiveOutput(tmp_path, 0.01)
    live.begin()
    for notebook.error in (OSError("gone"), SystemExit(), MemoryError(), KeyboardInterrupt()):
        before = len(notebook.shown)
        wait_for(lambda before=before: len(notebook.shown) > before + 1)
    notebook.error = None
    live.end()
    assert notebook.shown[-1] == {"text/plain": "verdict"}


def test_the_cell_does_not_wait_long_for_a_verdict(notebook, tmp_path, monkeypatch):
    hangs = threading.Event()
    monkeypatch.setattr(live_output, "_final", lambda _: hangs.wait(20) and {})
    monkeypatch.setattr(live_output, "CELL_WAITS_S", 0.1)
    live = LiveOutput(tmp_path, 0.01)
    live.begin()
    began = time.monotonic()
    live.end()
    assert time.monotonic() - began < 5
    hangs.set()
    assert notebook.shown


@pytest.mark.parametrize("error", [OSError("no memory"), subprocess.TimeoutExpired("x", 1)])
def test_a_recording_that_cannot_be_read_is_said(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(subprocess, "run", fail)
    assert f"could not be read ({type(error).__name__})" in live_output._final(tmp_path)["text/plain"]


def test_the_verdict_is_that_of_the_summary(monkeypatch):
    from support.samples import SAMPLES  # noqa: PLC0415 - the others need none

    monkeypatch.chdir(SAMPLES.parent)
    made = live_output._final(SAMPLES / "n-starved")["text/plain"].splitlines()
    assert "workers=11" in made[0]
    assert made[-1] == "gpu_report.show('sample_runs/n-starved')"
    assert "nowhere" in live_output._final(SAMPLES / "nowhere")["text/plain"]
