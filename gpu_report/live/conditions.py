"""`--on CONDITION`: what a run may come to, and the facts of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from gpu_report.errors import UsageError
from gpu_report.live.alarms import falls, idle_since_s, memory_share
from gpu_report.live.report_so_far import SoFar
from gpu_report.live.run_now import RunNow

Kind = Literal["idle", "drop", "memory", "xid.fatal", "finished", "failed"]
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
SHORTEST_S = 10.0  # what is shorter is no drop, and idle between two epochs
_LASTING = re.compile(r"(idle|drop)>(\d{1,6}(?:\.\d+)?)([smh])")
_SHARE = re.compile(r"memory>(\d{1,3}(?:\.\d+)?)%")
PLAIN: Final[dict[str, Kind]] = {"xid.fatal": "xid.fatal", "finished": "finished", "failed": "failed"}
EXAMPLES = "idle>15m, drop>5m, memory>97%, xid.fatal, finished or failed"


@dataclass(frozen=True)
class Condition:
    """A condition as it was written; `least` is in seconds for idle and drop, a share (0 to 1) for memory."""

    text: str
    kind: Kind
    least: float = 0.0


@dataclass(frozen=True)
class Happened:
    """A condition has come true: `key` is what tells this time from another, `facts` what its command is told."""

    key: str
    facts: dict[str, str] = field(default_factory=dict)


def condition_of(text: str) -> Condition:
    """Return the condition that a text means; UsageError for none."""
    plain = text.replace(" ", "")
    if lasting := _LASTING.fullmatch(plain):
        seconds = float(lasting[2]) * UNITS_S[lasting[3]]
        if seconds < SHORTEST_S:
            raise UsageError(f"--on {text}: say {SHORTEST_S:.0f}s or more")
        return Condition(plain, "idle" if lasting[1] == "idle" else "drop", seconds)
    if share := _SHARE.fullmatch(plain):
        return Condition(plain, "memory", float(share[1]) / 100)
    if plain in PLAIN:
        return Condition(plain, PLAIN[plain])
    raise UsageError(f"--on {text} is no condition: say {EXAMPLES}")


def happened(condition: Condition, run: RunNow, so_far: SoFar | None, now_s: float) -> Iterator[Happened]:
    """Yield what meets a condition at this moment: nothing of now where no recorder says what is now."""
    if condition.kind in ("finished", "failed"):
        yield from _ended(run, failed=condition.kind == "failed")
    elif condition.kind == "xid.fatal":
        for when in so_far.fatal_xids if so_far is not None else ():
            yield Happened(f"xid-{when}", {"SINCE": when})
    elif run.state(now_s) == "recording":
        yield from {"idle": _idle, "drop": _drop, "memory": _memory}[condition.kind](condition, run, now_s)


def _idle(condition: Condition, run: RunNow, now_s: float) -> Iterator[Happened]:
    since_s = idle_since_s([gpu for gpu in run.gpus if run.is_of_now(gpu, now_s)])
    if since_s is not None and now_s - since_s >= condition.least:
        yield Happened(f"idle-{since_s:.0f}", {"SECONDS": f"{now_s - since_s:.0f}"})


def _drop(condition: Condition, run: RunNow, now_s: float) -> Iterator[Happened]:
    for fallen in falls(run, now_s, condition.least):
        since_s, level = fallen[0].fell_since_s or now_s, max(gpu.level_pct or 0.0 for gpu in fallen)
        gpus = ",".join(str(index) for index in sorted(gpu.index for gpu in fallen))
        facts = {"GPU": gpus, "SECONDS": f"{now_s - since_s:.0f}", "LEVEL_PCT": f"{level:.0f}"}
        yield Happened(f"drop-{since_s:.0f}", facts)


def _memory(condition: Condition, run: RunNow, now_s: float) -> Iterator[Happened]:
    for gpu in run.gpus:
        share = memory_share(run, gpu) if run.is_of_now(gpu, now_s) else None
        if share is not None and share > condition.least:
            yield Happened(f"memory-{gpu.index}", {"GPU": str(gpu.index), "MEMORY_PCT": f"{100 * share:.1f}"})


def _ended(run: RunNow, *, failed: bool) -> Iterator[Happened]:
    """Yield the end of the recording, or of a training that is watched without a command."""
    events, training = run.events, run.training
    code, name = events.exit_code, events.exit_signal
    if events.ended_s is not None and events.ended_by == "command":
        has_failed = bool(code) or name is not None
    elif training is not None and training.ended is not None:
        has_failed = training.ended == "exception"
    else:
        return
    if has_failed == failed:
        facts = {"EXIT_CODE": "" if code is None else str(code), "SIGNAL": name or ""}
        yield Happened(f"ended-{events.started_s or 0:.0f}", facts)
