"""`--on CONDITION --run COMMAND`: the command runs once for each time that its condition comes true."""

import asyncio
import json
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside.hide_secrets import hide_in_text
from gpu_report.live.conditions import Condition, Happened, happened
from gpu_report.live.report_so_far import SoFar
from gpu_report.live.run_now import RunNow
from gpu_report.live.times import iso

LIMIT_S = 300.0  # of a command: one that stops a machine is done in seconds
MOST_OUTPUT = 4000  # characters that are kept of what it printed
VARIABLE = "GPU_REPORT_"


@dataclass
class Action:
    """A condition with its command, and the times that it ran for (`seen`: the keys of what happened)."""

    condition: Condition
    command: str
    seen: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Outcome:
    """How a command ended: `exit_code` is None where it took too long, or could not be started."""

    exit_code: int | None
    output: str
    seconds: float


class Actions:
    """All that are asked for. Commands run beside each other, each in a session of its own."""

    def __init__(self, folder: Path, actions: list[Action]) -> None:
        self._folder, self._actions = folder, actions
        self._running: set[asyncio.Task[None]] = set()
        self._has_looked = False

    def look(self, run: RunNow, so_far: SoFar | None, now_s: float) -> None:
        """Start the commands of what has happened since the last look; how a run ended before the first is old."""
        for action in self._actions:
            now = {each.key: each for each in happened(action.condition, run, so_far, now_s)}
            new = now.keys() - action.seen
            is_old = not self._has_looked and action.condition.kind in ("finished", "failed", "xid.fatal")
            if action.condition.kind == "memory":
                action.seen = set(now)  # full again after it was not is another time
            action.seen |= new
            for key in () if is_old else sorted(new):
                self._start(action, now[key], now_s)
        self._has_looked = self._has_looked or run.is_there

    def _start(self, action: Action, what: Happened, now_s: float) -> None:
        task = asyncio.get_running_loop().create_task(self._run(action, what, now_s))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def finish(self) -> None:
        """Wait for the commands that run."""
        if self._running:
            await asyncio.wait(self._running)

    async def _run(self, action: Action, what: Happened, now_s: float) -> None:
        facts = {"CONDITION": action.condition.text, "RUN": str(self._folder.absolute()), **what.facts}
        outcome = await run_command(action.command, {f"{VARIABLE}{name}": value for name, value in facts.items()})
        self._keep(action, outcome, now_s)

    def _keep(self, action: Action, outcome: Outcome, at_s: float) -> None:
        """Add a line on what was done to the run folder, without secrets; a full disk keeps none."""
        line = {
            "time": iso(at_s),
            "wall_s": round(at_s, 3),
            "condition": action.condition.text,
            "command": hide_in_text(action.command),
            "exit_code": outcome.exit_code,
            "seconds": round(outcome.seconds, 3),
            "output": hide_in_text(outcome.output),
        }
        try:
            with (self._folder / schema.ACTIONS_JSONL).open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError:
            return


async def run_command(command: str, facts: dict[str, str], limit_s: float = LIMIT_S) -> Outcome:
    """Run a command of the user's in a shell, with facts in its environment, and return how it ended; never raises."""
    began_s = time.monotonic()
    try:
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            command,
            env={**os.environ, **facts},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Outcome(None, error.strerror or str(error), time.monotonic() - began_s)
    kept, code = bytearray(), None
    try:
        async with asyncio.timeout(limit_s):
            await _read(process, kept)
            code = await process.wait()
    except TimeoutError:
        kept += f"\nended: it took more than {limit_s:.0f} s".encode()
    finally:
        _kill(process)
        await process.wait()
    return Outcome(code, kept.decode("utf-8", "replace")[-MOST_OUTPUT:], time.monotonic() - began_s)


async def _read(process: asyncio.subprocess.Process, kept: bytearray) -> None:
    """Read what a command prints to its end, and keep the end of it."""
    while process.stdout is not None and (data := await process.stdout.read(65536)):
        kept += data
        del kept[: -4 * MOST_OUTPUT]


def _kill(process: asyncio.subprocess.Process) -> None:
    """End what a command that took too long has started; one that has ended may leave others running."""
    if process.returncode is not None:
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
