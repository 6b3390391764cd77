"""What `serve` and `record --live` share: their options, and how the page is started beside a recording."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from gpu_report.cli.common import Command, say
from gpu_report.errors import UsageError
from gpu_report.live.listen import HOST, address_of, check_installed, listen

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gpu_report.live.actions import Action

LINGER_S = 600.0  # after a recording's end: open pages turn into the report, and somebody may still come


def action_options(command: Command) -> Command:
    """Add --on and --run."""
    for option in (
        click.option(
            "--run",
            "commands",
            multiple=True,
            metavar="COMMAND",
            help="The shell command for the --on before it; docs/live.md lists the variables that it finds.",
        ),
        click.option(
            "--on",
            "conditions",
            multiple=True,
            metavar="CONDITION",
            help="When to run a command: idle>15m, drop>5m, memory>97%, xid.fatal, finished or failed.",
        ),
    ):
        command = option(command)
    return command


def actions_of(conditions: Sequence[str], commands: Sequence[str]) -> tuple[Action, ...]:
    """Return what to do on what, a command for each condition or one for all; UsageError for what does not match."""
    from gpu_report.live.actions import Action
    from gpu_report.live.conditions import condition_of

    if not conditions and not commands:
        return ()
    if len(commands) == 1:
        commands = [*commands] * len(conditions)
    if not conditions or len(commands) != len(conditions):
        raise UsageError(
            f"{len(conditions)} --on and {len(commands)} --run: give each --on a --run, or all of them one"
        )
    return tuple(Action(condition_of(on), run) for on, run in zip(conditions, commands, strict=True))


def start_beside(folder: Path, conditions: Sequence[str], commands: Sequence[str]) -> None:
    """Start `serve` for a recording that begins, in a session of its own; it ends by itself after the recording."""
    import subprocess

    check_installed()
    actions_of(conditions, commands)  # what is wrong is said before the training starts
    listening = listen(HOST, None)
    words = [word for on in conditions for word in ("--on", on)] + [word for run in commands for word in ("--run", run)]
    fd = listening.fileno()
    subprocess.Popen(
        [sys.executable, "-m", "gpu_report", "serve", str(folder), "--fd", str(fd), "--linger", str(LINGER_S), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(fd,),
        start_new_session=True,
    )
    say(f"live page: {address_of(listening, None)}")
    listening.close()
