"""The recorded command of a benchmark: its exit codes."""

import json
import signal
import sys

import pytest

from gpu_report.bench import __main__ as module
from gpu_report.inside import RUN_FOLDER_VARIABLE


@pytest.fixture
def ends(monkeypatch, tmp_path):
    """Run the command with a conductor that does what a test says."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background processes ignore

    def run(does):
        monkeypatch.setenv(RUN_FOLDER_VARIABLE, str(tmp_path))
        monkeypatch.setattr(sys, "argv", ["bench", json.dumps({"models": ["n.pt"], "formats": ["pt"], "batches": [1]})])
        monkeypatch.setattr(module.BenchmarkRun, "run", lambda self: does())
        return module.main()

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_it_succeeds_where_any_variant_has_served(ends):
    assert ends(lambda: True) == 0
    assert ends(lambda: False) == 1


def test_ctrl_c_and_sigterm_end_it_without_a_traceback(ends):
    assert ends(lambda: signal.raise_signal(signal.SIGINT)) == 130
    assert ends(lambda: signal.raise_signal(signal.SIGTERM)) == 143


def test_without_a_run_folder_it_says_why(monkeypatch, capsys):
    monkeypatch.delenv(RUN_FOLDER_VARIABLE, raising=False)
    assert module.main() == 2
    assert "no run folder" in capsys.readouterr().err
