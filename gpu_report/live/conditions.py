"""`--on CONDITION`: what a run may come to, and the facts of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

from gpu_report.errors import UsageError
from gpu_report.iso_time import iso_utc
from gpu_report.live.alarms import falls, idle, memory_share
from gpu_report.live.reading.run_now import RunNow
from gpu_report.live.report_so_far import SoFar

Kind = Literal["idle", "drop", "memory", "xid.fatal", "finished", "failed"]
LESS_FULL_SHARE = 0.02  # of a card: a memory must have become so much less full before it is full again
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
    """A condition has come true: `key` is what tells this time from another, `facts` what its command is told.

    `at_s` is when it happened (wall seconds), None for what goes on. It `begins` unless it only goes on being so.
    """

    key: str
    facts: dict[str, str] = field(default_factory=dict)
    at_s: float | None = None
    begins: bool = True


def condition_of(text: str) -> Condition:
    """Return the condition that a text means; UsageError for none."""
    plain = text.replace(" ", "")
    if lasting := _LASTING.fullmatch(plain):
        seconds = float(lasting[2]) * UNITS_S[lasting[3]]
        if seconds < SHORTEST_S:
            raise UsageError(f"--on {text}: say {SHORTEST_S:.0f}s or more")
        return Condition(plain, "idle" if lasting[1] == "idle" else "drop", seconds)
    if share := _SHARE.fullmatch(plain):
        if not 0 < float(share[1]) < 100:
            raise UsageError(f"--on {text}: say more than 0 % and less than 100 %")
        return Condition(plain, "memory", float(share[1]) / 100)
    if plain in PLAIN:
        return Condition(plain, PLAIN[plain])
    raise UsageError(f"--on {text} is no condition: say {EXAMPLES}")


def happened(condition: Condition, run: RunNow, so_far: SoFar | None, now_s: float) -> Iterator[Happened]:
    """Yield what meets a condition at this moment: nothing of now where no recorder says what is now."""
    if condition.kind in ("finished", "failed"):
        yield from _ended(run, failed=condition.kind == "failed")
    elif condition.kind == "xid.fatal":
        for at_s in so_far.fatal_xids if so_far is not None else ():
            yield Happened(f"xid-{at_s:.3f}", {"SINCE": iso_utc(at_s) or ""}, at_s)
    elif run.state(now_s) == "recording":
        yield from {"idle": _idle, "drop": _drop, "memory": _memory}[condition.kind](condition, run, now_s)


def _idle(condition: Condition, run: RunNow, now_s: float) -> Iterator[Happened]:
    """Yield an idleness that was sampled for so long: what came after the last sample nobody knows."""
    rest = idle(run, now_s)
    if rest is not None and rest.lasts_s >= condition.least:
        yield Happened(f"idle-{rest.since_s:.0f}", {"SECONDS": f"{rest.lasts_s:.0f}"})


def _drop(condition: Condition, run: RunNow, now_s: float) -> Iterator[Happened]:
    for fall in falls(run, now_s, condition.least):
        gpus = ",".join(str(index) for index in sorted(gpu.index for gpu in fall.gpus))
        facts = {"SECONDS": f"{fall.lasts_s:.0f}", "LEVEL_PCT": f"{fall.level_pct:.0f}"}
        yield Happened(f"drop-{fall.since_s:.0f}", {"GPU": gpus, **facts})


def _memory(condition: Condition, run: RunNow, now_s: float) -> Iterator[Happened]:
    for gpu in run.gpus:
        share = memory_share(run, gpu) if run.is_of_now(gpu, now_s) else None
        if share is not None and share > condition.least - LESS_FULL_SHARE:
            facts = {"GPU": str(gpu.index), "MEMORY_PCT": f"{100 * share:.1f}"}
            yield Happened(f"memory-{gpu.index}", facts, begins=share > condition.least)


def _ended(run: RunNow, *, failed: bool) -> Iterator[Happened]:
    """Yield the end of the command; where none was recorded, that of the training that is watched."""
    events, training = run.events, run.training
    code, name = events.exit_code, events.exit_signal
    if events.ended_s is not None and events.ended_by == "command":
        has_failed, at_s, key = bool(code) or name is not None, events.ended_s, f"command-{events.ended_s:.0f}"
    elif not events.has_command and training is not None and training.ended_s is not None:
        has_failed, at_s, key = training.ended == "exception", training.ended_s, f"training-{training.begun_s:.0f}"
    else:
        return
    if has_failed == failed:
        yield Happened(key, {"EXIT_CODE": "" if code is None else str(code), "SIGNAL": name or ""}, at_s)
