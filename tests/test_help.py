"""What a person meets first: `--help` of every command, tab completion, and Ctrl-C before anything has begun."""

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from support.plain_words import banned

from gpu_report.cli import cli
from gpu_report.cli.gate_options import gates_asked_for
from tests.conftest import clean_environment

WIDTH = 80
Names = tuple[str, ...]


def commands(group: click.Group, path: Names = ()) -> list[tuple[Names, click.Command]]:
    """Return every command and group with the words that call it."""
    found = [(path, group)]
    for name, command in group.commands.items():
        words = (*path, name)
        found += commands(command, words) if isinstance(command, click.Group) else [(words, command)]
    return found


COMMANDS = dict(commands(cli))


def help_of(words: Names, width: int = WIDTH) -> str:
    """Return a command's help as a terminal of so many columns shows it."""
    contexts = [COMMANDS[words[:depth]] for depth in range(len(words) + 1)]
    context = None
    for name, command in zip(("gpu-report", *words), contexts, strict=True):
        context = command.context_class(
            command, parent=context, info_name=name, terminal_width=width, **command.context_settings
        )
    return context.command.get_help(context)


def test_the_help_lists_what_most_people_need_first_and_the_rest_under_more():
    said = help_of(())
    first, more = (re.findall(r"^  (\w+)  +\w", part, re.MULTILINE) for part in said.partition("\nMore:")[::2])
    assert first == ["record", "render", "summary", "compare", "doctor"]
    assert sorted(first + more) == sorted(cli.commands)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_no_line_of_the_help_is_broken_off_or_too_long(words):
    for width in (WIDTH, 120):
        lines = help_of(words, width).splitlines()
        assert max(map(len, lines)) <= width
        assert not [line for line in lines[1:] if line.rstrip().endswith(("...", "-"))]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_example_of_the_help_is_accepted_by_its_command(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # what an example reads must be there
    for name in ("smi.csv", "dmon.txt", "pmon.txt", "dmesg.txt", "trace.json"):
        Path(name).touch()
    for name in (
        "gpu-runs/before",
        "gpu-runs/after",
        "gpu-runs/20261121-103501",
        "baselines",
        "fleet",
        "node-0",
        "node-1",
    ):
        Path(name).mkdir(parents=True)
    said = help_of(words).partition("Examples:")[2].replace("\\\n", "")
    examples = re.findall(r"^    gpu-report (.+?)(?:  +#.*)?$", said, re.MULTILINE)
    assert examples
    for example in examples:
        understood(shlex.split(re.split(r" (?:\||>>) ", example)[0]))


def understood(arguments: list[str]) -> None:
    """Parse a command line as click does before it runs the command; it raises where that refuses it."""
    command, name = cli, "gpu-report"
    while isinstance(command, click.Group):
        name, *arguments = arguments
        command = command.commands[name]
    command.make_context(name, arguments)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_gate_that_the_help_shows_is_accepted_by_its_command(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    gates = re.findall(r"'([a-z._]+:[^']+)'", help_of(words))
    assert bool(gates) == (words in {("check",), ("compare",)})
    assert gates_asked_for(gates, gates, None, baseline=words != ("check",))


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_help_is_in_plain_words(words):
    assert banned(help_of(words)) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_can_ask_for_completions(run_cli, shell):
    assert f"_GPU_REPORT_COMPLETE={shell}_source gpu-report" in help_of(())
    script = run_cli(env={"_GPU_REPORT_COMPLETE": f"{shell}_source", "PATH": os.environ["PATH"]})
    assert script.returncode == 0
    assert f"_GPU_REPORT_COMPLETE={shell}_complete" in script.stdout
    asked = {
        "_GPU_REPORT_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": "gpu-report su",
        "COMP_CWORD": "su" if shell == "fish" else "1",
    }
    assert "summary" in run_cli(env=asked).stdout


@pytest.mark.parametrize("sign", ["gpu_report.errors", "click.types", "gpu_report.cli.commands.record"])
def test_ctrl_c_while_the_command_line_is_imported_is_no_traceback(tmp_path, sign):
    command = [sys.executable, "-X", "importtime", "-m", "gpu_report", "summary"]
    with subprocess.Popen(
        command, env=clean_environment(), cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        while sign not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
    assert process.returncode in {-signal.SIGINT, 130}
    assert "Traceback" not in rest
