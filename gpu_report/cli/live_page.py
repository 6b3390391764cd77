"""What `serve` and `record --live` share: their options, and how the page is started beside a recording."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from gpu_report.cli.common import Command, say
from gpu_report.errors import UsageError
from gpu_report.live.web.listen import HOST, address_of, check_installed, environment_without_token, listen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
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
            help="The shell command for the --on before it, such as 'sudo poweroff'. It runs once for each event.",
        ),
        click.option(
            "--on",
            "conditions",
            multiple=True,
            metavar="CONDITION",
            help="When to run the command of --run: idle>15m (all GPUs idle for 15 minutes), drop>5m, memory>97%, "
            "xid.fatal, finished or failed.",
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
    if not conditions:
        raise UsageError("--run needs an --on before it, which says when")
    if len(commands) == 1:
        commands = [*commands] * len(conditions)
    if len(commands) != len(conditions):
        raise UsageError(
            f"{len(conditions)} --on and {len(commands)} --run: give each --on a --run, or all of them one"
        )
    return tuple(Action(condition_of(on), run) for on, run in zip(conditions, commands, strict=True))


def live_page(conditions: Sequence[str], commands: Sequence[str]) -> Callable[[Path], None]:
    """Return what starts `serve` for a recording that begins; UsageError now for what would keep it from that.

    It runs in a session of its own, and ends by itself after the recording.
    """
    check_installed()
    actions_of(conditions, commands)
    listening = listen(HOST, None)
    words = [word for on in conditions for word in ("--on", on)] + [word for run in commands for word in ("--run", run)]

    def start(folder: Path) -> None:
        import subprocess

        fd, since_s = listening.fileno(), f"{time.time():.3f}"
        hidden = ("--fd", str(fd), "--linger", str(LINGER_S), "--since", since_s)
        subprocess.Popen(
            [sys.executable, "-m", "gpu_report", "serve", str(folder), *hidden, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(fd,),
            start_new_session=True,
            env=environment_without_token(),
        )
        say(f"live page, until {LINGER_S / 60:.0f} minutes after the recording: {address_of(listening, None)}")
        listening.close()

    return start
