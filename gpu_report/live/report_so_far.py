"""The analysis of what was recorded so far, and the report of it: made by processes of their own, as often as it pays.

Neither pandas nor the analysis is loaded here: who only looks on takes little memory.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpu_report.catalogue import cause_words
from gpu_report.iso_time import iso_utc, wall_s

LIMIT_S = 600.0  # of one analysis: a month of readings takes half a minute
NICENESS = 10  # loaders' workers come first
# Of a core, for analysing again and again what grows: one of 1 s each 200 s.
BUDGET_SHARE = 0.005
# Where something goes wrong: why is worth more then.
URGENT_SHARE = 0.1
# A report that somebody asks for while the run goes on may take so much.
ASKED_SHARE = 0.1
FIRST_S = 20.0  # after the beginning there is nothing to be said yet
FRESH_S = 5.0  # a report that is no older is shown again: several people may look
LARGEST_SUMMARY = 64 * 2**20
SHOWN_FINDINGS = 20
LONGEST_TEXT = 2000  # characters


@dataclass(frozen=True)
class SoFar:
    """What the report says of the run up to `as_of_s`; `fatal_xids` are when such were reported (wall seconds)."""

    as_of_s: float
    verdict: tuple[str, ...]
    findings: tuple[dict[str, Any], ...]
    fatal_xids: tuple[float, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as /gpu-status says it."""
        return {
            "as_of": iso_utc(self.as_of_s),
            "provisional": True,
            "verdict": list(self.verdict),
            "findings": list(self.findings),
        }


class Reports:
    """Makes analyses and reports of a run folder, one at a time."""

    def __init__(self, folder: Path, price_per_hour: float | None) -> None:
        self._folder = folder
        self._price = () if price_per_hour is None else ("--price-per-hour", str(price_per_hour))
        self._lock = asyncio.Lock()
        self._next_s, self._next_urgent_s = time.monotonic() + FIRST_S, 0.0
        self._rendered_s, self._render_took_s = float("-inf"), 0.0
        self._page = Path(tempfile.mkdtemp(prefix="gpu-report-live-")) / "report.html"
        self._final_failed = False
        self.is_final = False  # the page is the report of the whole run
        self.so_far: SoFar | None = None
        self.error = ""

    @property
    def is_busy(self) -> bool:
        """Tell whether one is being made."""
        return self._lock.locked()

    @property
    def wants_final(self) -> bool:
        """Tell whether the report of the whole run is still to be made; one that failed is made when somebody asks."""
        return not (self.is_final or self.is_busy or self._final_failed)

    def reopen(self) -> None:
        """Take note that the recording goes on: no report is final."""
        self.is_final = self._final_failed = False

    def is_due(self, *, urgent: bool) -> bool:
        """Tell whether it is time to analyse again; `urgent` where something is going wrong."""
        now_s = time.monotonic()
        return not self.is_busy and now_s >= (self._next_urgent_s if urgent else self._next_s)

    async def analyse(self, *, urgent: bool) -> bool:
        """Analyse what there is so far; return whether that could be done."""
        async with self._lock:
            began_s, as_of_s = time.monotonic(), time.time()
            said = await self._run(("summary", str(self._folder), "--format", "json", *self._price))
            took_s = time.monotonic() - began_s
            self._next_s = time.monotonic() + max(took_s / BUDGET_SHARE, FIRST_S)
            if urgent:
                self._next_urgent_s = time.monotonic() + took_s / URGENT_SHARE
            so_far = None if said is None else _so_far(as_of_s, said)
            self.so_far = so_far or self.so_far
            return so_far is not None

    async def page(self, *, is_final: bool) -> Path | None:
        """Return the report of what there is, None where it could not be made (`error` says why).

        That of a run that goes on is made anew where that takes a tenth of the time at most, the final one once.
        """
        async with self._lock:
            age_s = time.monotonic() - self._rendered_s
            is_fresh = not is_final and age_s < max(self._render_took_s / ASKED_SHARE, FRESH_S)
            if (self.is_final or is_fresh) and self._page.exists():
                return self._page
            began_s = time.monotonic()
            self._page.parent.mkdir(exist_ok=True)  # a temporary folder may be cleaned up meanwhile
            made = await self._run(("render", str(self._page), str(self._folder), *self._price))
            self._final_failed = is_final and made is None
            if made is None:
                return None
            self._rendered_s, self._render_took_s = time.monotonic(), time.monotonic() - began_s
            self.is_final = is_final
            return self._page

    async def _run(self, words: Sequence[str]) -> bytes | None:
        """Run a command of ours at low priority; return what it printed, None where it failed."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "gpu_report",
            *words,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        try:
            out, errors = await asyncio.wait_for(process.communicate(), LIMIT_S)
        except TimeoutError:
            self.error = f"the analysis took more than {LIMIT_S:.0f} s"
            return None
        finally:
            _kill(process)
            await process.wait()
        if process.returncode:
            self.error = errors.decode("utf-8", "replace").strip()[-LONGEST_TEXT:]
            return None
        self.error = ""
        return out if len(out) <= LARGEST_SUMMARY else None

    def close(self) -> None:
        """Remove what was made."""
        shutil.rmtree(self._page.parent, ignore_errors=True)


def _kill(process: asyncio.subprocess.Process) -> None:
    """End a process that has not ended by itself."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _so_far(as_of_s: float, said: bytes) -> SoFar | None:
    """Return what a summary says, None for what is none."""
    try:
        summary = json.loads(said)
        verdict = tuple(str(each["text"])[:LONGEST_TEXT] for each in summary["verdict"])
        unexpected = [each for each in summary["findings"] if not each["expected"]]
        events = summary["kernel"]["events"]
    except (ValueError, KeyError, TypeError):
        return None
    fatal = [e.get("time") for e in events if e.get("severity") == "critical" and e.get("code") is not None]
    times = tuple(at_s for at_s in map(wall_s, fatal) if at_s is not None)
    return SoFar(as_of_s, verdict, tuple(map(_finding, unexpected[:SHOWN_FINDINGS])), times)


def _finding(said: dict[str, Any]) -> dict[str, Any]:
    cause = said.get("cause") or {}
    return {
        **{key: said.get(key) for key in ("id", "rule", "severity", "gpus", "start", "duration_s", "summary")},
        "cause": cause_words(str(cause.get("name"))) if cause else None,
        "why": cause.get("explanation"),
        "where": [{key: line.get(key) for key in ("function", "file", "line")} for line in said.get("where", ())[:1]],
        "advice": [str(each.get("text"))[:LONGEST_TEXT] for each in said.get("advice", ())[:1]],
    }
