"""A terminal that closes, or takes no more text: the command hears of it as without us, and nothing waits for ever."""

import os
import pty
import subprocess
import sys
import time

import pytest

from tests.conftest import clean_environment, cli_command, wait_for

FAST = ("--interval", "0.1")
CTRL_S = b"\x13"
NOTES_SIGHUP = (
    "import pathlib, signal, sys, time\n"
    "signal.signal(signal.SIGHUP, lambda *_: (pathlib.Path('hung-up').write_text('x'), sys.exit(7)))\n"
    "pathlib.Path('ready').touch()\n"
    "time.sleep(60)\n"
)


class OnTerminal:
    """A command that leads the session of a terminal of its own, as with `ssh -t` or in a pane of tmux."""

    def __init__(self, words, cwd, env):
        self.end, child = pty.openpty()
        self.process = subprocess.Popen(
            ["env", "--default-signal=HUP", "setsid", "--ctty", "--wait", *words],  # the tests may run under nohup
            stdin=child, stdout=child, stderr=child, cwd=cwd, env=clean_environment(env),
        )  # fmt: skip
        os.close(child)

    def close(self):
        os.close(self.end)
        self.end = None

    def kill(self):
        self.process.kill()
        if self.end is not None:
            self.close()


@pytest.fixture
def on_terminal(fake_nvml, tmp_path):
    begun = []

    def begin(*words):
        begun.append(OnTerminal(words, tmp_path, fake_nvml.env()))
        return begun[-1]

    yield begin
    for one in begun:
        one.kill()


def has_rows(recorded):
    return (recorded.path / "samples.csv").exists() and len(recorded.samples()) > 2


def test_the_command_is_hung_up_on_as_it_would_be_without_us(on_terminal, recorded, tmp_path):
    words = cli_command("record", *FAST, "--output", recorded.path, "--", sys.executable, "-c", NOTES_SIGHUP)
    terminal = on_terminal(*words)
    wait_for((tmp_path / "ready").exists)
    terminal.close()
    assert terminal.process.wait(timeout=20) == 7
    assert (tmp_path / "hung-up").exists()
    assert recorded.info()["exit_code"] == 7


def test_a_command_that_knows_no_hang_up_dies_of_it(on_terminal, recorded):
    terminal = on_terminal(*cli_command("record", *FAST, "--output", recorded.path, "--", "sleep", "60"))
    wait_for(lambda: has_rows(recorded))
    terminal.close()
    assert terminal.process.wait(timeout=20) == 129
    assert recorded.info()["exit_signal"] == "SIGHUP"


def test_watching_without_a_duration_ends_with_its_terminal(on_terminal, recorded):
    terminal = on_terminal(*cli_command("record", *FAST, "--output", recorded.path))
    wait_for(lambda: has_rows(recorded))
    terminal.close()
    assert terminal.process.wait(timeout=20) == 0
    ended = recorded.events("recording_ended")[-1]
    assert (ended["ended_by"], ended["signal"]) == ("signal", "SIGHUP")


@pytest.mark.parametrize(("key", "name"), [(b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT")])
def test_a_key_ends_watching(on_terminal, recorded, key, name):
    terminal = on_terminal(*cli_command("record", *FAST, "--output", recorded.path))
    wait_for(lambda: has_rows(recorded))
    os.write(terminal.end, key)
    assert terminal.process.wait(timeout=20) == 0
    assert recorded.events("recording_ended")[-1]["signal"] == name


@pytest.mark.parametrize("before", [("nohup",), ()], ids=["nohup", "a duration"])
def test_who_asked_for_more_is_recorded_to_the_end(on_terminal, recorded, before):
    limit = () if before else ("--duration", "4")
    terminal = on_terminal(*before, *cli_command("record", *FAST, *limit, "--output", recorded.path))
    wait_for(lambda: has_rows(recorded))
    terminal.close()
    rows = len(recorded.samples())
    wait_for(lambda: len(recorded.samples()) > rows + 5)
    assert not recorded.events("recording_ended")
    if not before:
        assert terminal.process.wait(timeout=20) == 0
        assert recorded.events("recording_ended")[-1]["ended_by"] == "duration"


@pytest.mark.parametrize("rest", [("--duration", "3"), ("--", "sleep", "3")], ids=["watching", "a command"])
def test_a_terminal_that_takes_no_text_does_not_hold_the_end(on_terminal, recorded, rest):
    terminal = on_terminal(*cli_command("record", *FAST, "--output", recorded.path, *rest))
    wait_for(lambda: has_rows(recorded))
    os.write(terminal.end, CTRL_S)
    began = time.monotonic()
    assert terminal.process.wait(timeout=20) == 0
    assert time.monotonic() - began < 8
    assert recorded.events("recording_ended")
