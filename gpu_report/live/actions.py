"""`--on CONDITION --run COMMAND`: the command runs once for each time that its condition comes true."""

import asyncio
import contextlib
import json
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from gpu_report import schema
from gpu_report.inside.on_path.gpu_report_inside.secrets.hide import hide_in_text
from gpu_report.iso_time import iso_utc
from gpu_report.live.conditions import Condition, Happened, happened
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.report_so_far import SoFar
from gpu_report.live.web.listen import environment_without_token

LIMIT_S = 300.0  # of a command: one that stops a machine is done in seconds
MOST_OUTPUT = 4000  # characters that are kept of what it printed
VARIABLE = "GPU_REPORT_"
ENDED_EVERY_S = 0.05
FINISH_S = 10.0  # for commands that run when the page is ended
REST_S = 1.0  # for the last of what it printed


@dataclass
class Action:
    """A condition with its command, and the times that it ran for (`seen`: the keys of what happened)."""

    condition: Condition
    command: str
    seen: set[str] = field(default_factory=set)
    task: asyncio.Task[None] | None = None

    @property
    def runs(self) -> bool:
        """Tell whether the command runs; it is not started a second time beside itself."""
        return self.task is not None and not self.task.done()


@dataclass(frozen=True)
class Outcome:
    """How a command ended: `exit_code` is None where it took too long, or could not be started."""

    exit_code: int | None
    output: str
    seconds: float


class Actions:
    """All that are asked for. Commands run beside each other, each in a session of its own."""

    def __init__(self, folder: Path, actions: list[Action], since_s: float = 0.0) -> None:
        """Take what is asked for; what happened before `since_s` (wall seconds) is old."""
        self._folder, self._actions, self._since_s = folder, actions, since_s

    def look(self, run: RunNow, so_far: SoFar | None, now_s: float) -> None:
        """Start the commands of what has happened since the last look."""
        for action in self._actions:
            now = {each.key: each for each in happened(action.condition, run, so_far, now_s)}
            if action.condition.kind == "memory" and run.state(now_s) == "recording":
                action.seen &= now.keys()  # full again after it was not is another time
            for what in sorted(now.values(), key=lambda each: each.key):
                if what.key not in action.seen and what.begins and not action.runs:
                    action.seen.add(what.key)
                    if what.at_s is None or what.at_s >= self._since_s:
                        action.task = asyncio.get_running_loop().create_task(self._run(action, what, now_s))

    async def finish(self) -> None:
        """Give the commands that run a moment to end, and end them."""
        running = [action.task for action in self._actions if action.task is not None and action.runs]
        if running:
            _, late = await asyncio.wait(running, timeout=FINISH_S)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _run(self, action: Action, what: Happened, now_s: float) -> None:
        facts = {"CONDITION": action.condition.text, "RUN": str(self._folder.absolute()), **what.facts}
        outcome = await run_command(action.command, {f"{VARIABLE}{name}": value for name, value in facts.items()})
        self._keep(action, outcome, now_s)

    def _keep(self, action: Action, outcome: Outcome, at_s: float) -> None:
        """Add a line on what was done to the run folder, without secrets; a full disk keeps none."""
        line = {
            "time": iso_utc(at_s),
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
            env={**environment_without_token(), **facts},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return Outcome(None, error.strerror or str(error), time.monotonic() - began_s)
    kept, code = bytearray(), None
    reading = asyncio.create_task(_read(process, kept))
    try:
        async with asyncio.timeout(limit_s):
            code = await _end_of(process)
        await asyncio.wait([reading], timeout=REST_S)  # what it left running may hold its output open
    except TimeoutError:
        _kill(process)
        await asyncio.wait([reading], timeout=REST_S)
        kept += f"\nended: it took more than {limit_s:.0f} s".encode()
    except asyncio.CancelledError:
        _kill(process)
        raise
    finally:
        reading.cancel()
    return Outcome(code, kept.decode("utf-8", "replace")[-MOST_OUTPUT:], time.monotonic() - began_s)


async def _end_of(process: asyncio.subprocess.Process) -> int:
    """Wait for a process alone: its own `wait` also waits for whoever holds its output open."""
    while process.returncode is None:
        await asyncio.sleep(ENDED_EVERY_S)
    return process.returncode


async def _read(process: asyncio.subprocess.Process, kept: bytearray) -> None:
    """Read what a command prints to its end, and keep the end of it."""
    while process.stdout is not None and (data := await process.stdout.read(65536)):
        kept += data
        del kept[: -4 * MOST_OUTPUT]


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a command that took too long, with what it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
