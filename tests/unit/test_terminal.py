"""Commands in what a terminal shows: on lines of their own, whole, and never somebody else's text."""

import fcntl
import os
import pty
import struct
import termios

import pytest

from gpu_report.terminal import apart, width_of, with_command_lines


def test_a_command_stands_on_a_line_of_its_own_with_the_rest_around_it():
    text = "Stopped in epoch 2. Resume: `yolo detect train resume model=a/last.pt`. The validation took 58 s."
    assert apart(text) == [
        ("Stopped in epoch 2. Resume:", False),
        ("yolo detect train resume model=a/last.pt", True),
        ("The validation took 58 s.", False),
    ]
    assert with_command_lines(text).splitlines()[1] == "    yolo detect train resume model=a/last.pt"


def test_a_call_in_python_is_a_line_that_nothing_breaks():
    call = 'YOLO("/a/last.pt").train(resume=True)'
    assert apart(f"Resume: in train.py, `{call}`") == [("Resume: in train.py:", False), (call, True)]


def test_a_sentence_that_ends_before_its_command_says_that_one_follows():
    assert apart("reboot, or load it `sudo modprobe nvidia`")[0] == ("reboot, or load it:", False)
    assert apart("look for it: `lspci -d 10de:`, `dmesg | grep NVRM`") == [
        ("look for it:", False),
        ("lspci -d 10de:", True),
        ("dmesg | grep NVRM", True),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Set `workers=11` (now 2)",
        "name one that `gpu-report record` writes",
        "look into `dmesg`, or reboot",
        "Ctrl-Z, `kill -STOP`: idle",
        "a`b yolo train",
        "",
    ],
)
def test_what_is_no_command_or_one_word_stays_in_its_sentence(text):
    assert "".join(part for part, _ in apart(text)) == text
    assert not any(command for _, command in apart(text))


def test_a_text_that_is_a_command_needs_no_marks():
    assert apart("sudo sysctl kernel.dmesg_restrict=0") == [("sudo sysctl kernel.dmesg_restrict=0", True)]


def test_a_command_cannot_command_the_terminal():
    assert "\x1b" not in with_command_lines("Resume: `yolo train \x1b[2J`")


def test_a_path_upwards_keeps_its_dots():
    assert with_command_lines("../run does not exist: `gpu-report record`").startswith("../run does not exist:")


def test_a_terminal_gets_lines_of_its_width_and_commands_and_paths_whole():
    path = "/data/runs/a-folder-with-a-long-name/report.html"
    resume = "yolo detect train resume model=/data/runs/train/weights/last.pt"
    said = with_command_lines(f"{path}: Stopped in epoch 2 of 100. Resume: `{resume}`. It took 58 s.", 40)
    assert said.splitlines() == [
        f"{path}:",
        "Stopped in epoch 2 of 100. Resume:",
        f"    {resume}",
        "It took 58 s.",
    ]
    assert with_command_lines("The GPU was busy only for 58 % of it", 28).splitlines()[1] == "58 % of it"


def test_what_is_no_terminal_has_no_width(tmp_path):
    with (tmp_path / "log").open("w") as log:
        assert width_of(log) is None
    assert width_of(None) is None
    assert with_command_lines("word " * 100 + "end").count("\n") == 0


@pytest.mark.parametrize(("columns", "width"), [(60, 60), (0, None)])
def test_a_terminal_says_how_wide_it_is(columns, width):
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as screen:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        assert width_of(screen) == width
    os.close(ours)
