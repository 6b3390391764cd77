"""Commands in what a terminal shows: on lines of their own, whole, and never somebody else's text."""

import pytest

from gpu_report.terminal import apart, with_command_lines


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
    ["Set `workers=11` (now 2)", "look into `dmesg`, or reboot", "Ctrl-Z, `kill -STOP`: idle", "a`b yolo train", ""],
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
