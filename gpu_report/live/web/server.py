"""The server of the live page: a socket, and a process that answers on it until it is stopped, or the run is over."""

import asyncio
import contextlib
import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from gpu_report.live.actions import Action, Actions
from gpu_report.live.follower import Follower
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.report_so_far import Reports
from gpu_report.live.web.access import AccessGuard
from gpu_report.live.web.app import Page

NICENESS = 5  # the training comes first
LINGER_EVERY_S = 1.0
GRACE_S = 1  # for who still watches when the server ends; whole seconds


@dataclass(frozen=True)
class ServeOptions:
    """What to serve: `linger_s` after the recording's end, or its recorder's, the server ends; None: never.

    What happened before `since_s` (wall seconds) starts no command.
    """

    folder: Path
    token: str | None = None
    price_per_hour: float | None = None
    actions: tuple[Action, ...] = ()
    linger_s: float | None = None
    since_s: float = 0.0


def serve(options: ServeOptions, listening: socket.socket) -> None:
    """Answer on a socket until a signal, or until the run has been over for long enough."""
    with contextlib.suppress(OSError):
        os.nice(NICENESS)
    asyncio.run(_serve(options, listening))


async def _serve(options: ServeOptions, listening: socket.socket) -> None:
    run = RunNow(options.folder)
    reports = Reports(options.folder, options.price_per_hour)
    actions = Actions(options.folder, list(options.actions), options.since_s)
    follower = Follower(run, reports, actions, options.price_per_hour)
    server = uvicorn.Server(_config(AccessGuard(Page(follower).app(), options.token)))
    ending = asyncio.create_task(_end_in_time(run, server, options.linger_s))
    await server.serve(sockets=[listening])
    ending.cancel()


def _config(app: AccessGuard) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        loop="asyncio",
        log_level="critical",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        lifespan="on",
    )


async def _end_in_time(run: RunNow, server: uvicorn.Server, linger_s: float | None) -> None:
    """End the server once nothing has been recorded for so long."""
    over_since_s: float | None = None
    while linger_s is not None:
        is_over = run.state(time.time()) != "recording"
        if not is_over:
            over_since_s = None
        elif over_since_s is None:
            over_since_s = time.monotonic()
        elif time.monotonic() - over_since_s >= linger_s:
            server.should_exit = True
        await asyncio.sleep(LINGER_EVERY_S)
