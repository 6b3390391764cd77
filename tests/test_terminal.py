"""What is written to a terminal, and that nothing of it is written anywhere else."""

import io
import os
import pty
import re
import subprocess
import threading
import time

import pytest
from conftest import FakeNvml, clean_environment, cli_command

from gpu_report import terminal
from gpu_report.terminal import ERASE_LINE, ProgressLine, plain

pytestmark = pytest.mark.live


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "PATIENCE_S", 0.05)
    monkeypatch.setattr(terminal, "REFRESH_S", 0.05)


def test_what_takes_long_is_said_and_taken_away_again() -> None:
    screen = Screen()
    with ProgressLine("one ...", screen) as progress:
        time.sleep(0.2)
        progress.step("two ...")
        time.sleep(0.2)
    assert f"{ERASE_LINE}one ...{ERASE_LINE}" in screen.getvalue()
    assert screen.getvalue().endswith(f"{ERASE_LINE}two ...{ERASE_LINE}")


def test_what_is_done_at_once_says_nothing() -> None:
    screen = Screen()
    with ProgressLine("one ...", screen):
        pass
    assert screen.getvalue() == ""


def test_where_no_one_looks_nothing_is_written() -> None:
    file = io.StringIO()
    with ProgressLine("one ...", file):
        time.sleep(0.2)
    assert file.getvalue() == ""
    with ProgressLine("one ...", None):  # pytest's own stderr is no terminal
        time.sleep(0.1)


def test_what_is_done_has_no_say_over_the_terminal() -> None:
    screen = Screen()
    with ProgressLine(lambda: "read \x1b[2J\u202e run", screen):
        time.sleep(0.2)
    assert "\x1b[2J" not in screen.getvalue()
    assert "\ufffd[2J" in screen.getvalue()


def test_a_terminal_that_takes_nothing_holds_nobody_up() -> None:
    free = threading.Event()

    class Stuck(Screen):
        def write(self, text: str) -> int:
            free.wait(10)
            return len(text)

    began = time.monotonic()
    with ProgressLine("one ...", Stuck()):
        time.sleep(0.2)
    assert time.monotonic() - began < 2
    free.set()


def test_plain_text_stays_as_it_is() -> None:
    assert plain("Übung 训练 a-b") == "Übung 训练 a-b"


def on_a_terminal(*arguments: object, env: dict[str, str], cwd: object) -> tuple[int, str]:
    """Run `gpu-report` with its stderr on a terminal, and return its exit code and what was written there."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        cli_command(*arguments), env=clean_environment(env), cwd=cwd, stdout=subprocess.DEVNULL, stderr=its
    )
    os.close(its)
    written = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the last writer has gone
            break
        if not part:
            break
        written += part
    os.close(ours)
    return process.wait(timeout=20), written.decode()


def test_watching_says_how_long_and_a_command_has_the_terminal_to_itself(fake_nvml: FakeNvml, tmp_path) -> None:
    code, seen = on_a_terminal("record", "--duration", "2.5", "--output", "a", env=fake_nvml.env(), cwd=tmp_path)
    assert code == 0
    assert re.search(r"0:00:0[12] of 0:00:02 recorded", seen)
    assert "recording 1 GPU (" in seen
    assert "for 2.5 s, into a\r\n" in seen
    assert seen.index(" of 0:00:02 recorded") < seen.index(
        "recorded into a. Next:\r\n    gpu-report render report.html a\r\n"
    )
    code, seen = on_a_terminal("record", "--output", "b", "--", "sleep", "2", env=fake_nvml.env(), cwd=tmp_path)
    assert code == 0
    assert not re.search(r"\d recorded", seen)
