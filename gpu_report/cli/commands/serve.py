"""`serve`: a live page of a run while it is recorded, and commands that run when something happens."""

from __future__ import annotations

import signal
import socket
import time
from pathlib import Path

import click

from gpu_report.cli.common import CountRange, NamedPath, folder_of, option_of_price, say
from gpu_report.cli.help_text import examples
from gpu_report.cli.job_folders import refuse_job
from gpu_report.cli.live_page import action_options, actions_of
from gpu_report.errors import InputError, UsageError
from gpu_report.live.web.listen import HOST, PORT, TOKEN_VARIABLE, address_of, check_installed, listen

MIN_TOKEN = 8  # characters


@click.command(
    epilog=examples(
        "gpu-report serve          # the newest run, on http://127.0.0.1:9000/",
        "gpu-report serve --on 'idle>15m' --run 'sudo poweroff'",
        'gpu-report serve --host 0.0.0.0 --token "$(openssl rand -hex 16)"',
    )
)
@click.argument("run", type=NamedPath(), required=False)
@click.option(
    "--port", type=CountRange(0, 65535), default=None, metavar="PORT", help=f"Default: {PORT}, or the next free one."
)
@click.option("--host", default=HOST, metavar="ADDRESS", help=f"Where to listen. Default: {HOST}, this machine alone.")
@click.option(
    "--token",
    envvar=TOKEN_VARIABLE,
    default=None,
    metavar="TOKEN",
    help=f"Needed to open the page. Required with another --host. Also read from {TOKEN_VARIABLE}.",
)
@action_options
@option_of_price
@click.option("--fd", type=int, default=None, hidden=True, help="A socket that listens already.")
@click.option("--since", type=float, default=None, hidden=True, help="What happened before is old (wall seconds).")
@click.option("--linger", type=float, default=None, hidden=True, help="End so many seconds after the recording.")
def serve(  # noqa: PLR0913, PLR0917 - one parameter an option of the command line
    run: Path | None,
    port: int | None,
    host: str,
    token: str | None,
    conditions: tuple[str, ...],
    commands: tuple[str, ...],
    price_per_hour: float | None,
    fd: int | None,
    since: float | None,
    linger: float | None,
) -> None:
    """Show a run in a browser while it is recorded.

    RUN is a run folder. Default: the newest run under ./gpu-runs. The page follows the recording. Once that has ended,
    it is the report. Programs read /gpu-status (JSON) and /metrics (Prometheus).
    """
    check_installed()
    _check_token(host, token)
    actions = actions_of(conditions, commands)
    folder = run if fd is not None and run is not None else _folder(run)
    listening = socket.socket(fileno=fd) if fd is not None else listen(host, port)
    if fd is None:
        say(f"{folder} is shown at {address_of(listening, token)} (Ctrl-C ends it)")
    from gpu_report.live.web.server import ServeOptions
    from gpu_report.live.web.server import serve as serve_run

    if fd is not None:  # of `record`, which has the signals blocked that end this
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
    began_s = time.time() if since is None else since
    serve_run(ServeOptions(folder, token, price_per_hour, actions, linger, began_s), listening)


def _folder(run: Path | None) -> Path:
    """Return the run folder, the newest one where none is named; InputError for what is none."""
    refuse_job(run)
    folder = folder_of(run)
    if not folder.is_dir():
        raise InputError(f"{folder} is no run folder: name one that `gpu-report record` writes")
    return folder


def _check_token(host: str, token: str | None) -> None:
    from gpu_report.live.web.access import is_loopback

    if token is not None and not (token.isascii() and token.isprintable() and set(token).isdisjoint(' ;,"\\')):
        raise UsageError("--token has characters that no cookie may have: take letters, digits, - and _")
    if token is not None and len(token) < MIN_TOKEN:
        raise UsageError(f"--token has {len(token)} characters: give it {MIN_TOKEN} or more")
    if token is None and not is_loopback(host):
        raise UsageError(f"--host {host} lets others look: add --token TOKEN, which they must show")
