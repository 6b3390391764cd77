"""What `record --profile` and `--profile-at` ask for, and how the training is asked."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from gpu_report import schema
from gpu_report.errors import UsageError

EPOCH = 2  # the first one is slow: cuDNN tries its algorithms, and caches fill
UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}
_EPOCH = re.compile(r"epoch:(\d{1,6})")
_TIME = re.compile(r"(\d{1,6}(?:\.\d+)?)([smh])")
DROP = "drop"


@dataclass(frozen=True)
class ProfilePlan:
    """`steps` from `epoch` on, or `after_s` seconds after the start, or in drops; `full` has shapes and layer names.

    With drops there is a window of `epoch`, too: of the time that the drop is compared with.
    """

    steps: int = schema.PROFILE_STEPS
    full: bool = False
    epoch: int | None = EPOCH
    after_s: float | None = None
    at_drops: bool = False

    @property
    def for_the_command(self) -> str | None:
        """Return the plan as the command's environment carries it, None where nothing is due by epochs."""
        return None if self.epoch is None else request(self.steps, self.epoch, full=self.full, reason="planned")


def plan_of(profile: str | None, at: str | None) -> ProfilePlan | None:
    """Return what the two options ask for together, None where neither was given; UsageError for what they are not."""
    if profile is None and at is None:
        return None
    steps, full = _steps(profile or str(schema.PROFILE_STEPS))
    if at is None:
        return ProfilePlan(steps, full)
    if at == DROP:
        return ProfilePlan(steps, full, at_drops=True)
    if (epoch := _EPOCH.fullmatch(at)) and int(epoch[1]) > 0:
        return ProfilePlan(steps, full, epoch=int(epoch[1]))
    if after := _TIME.fullmatch(at):
        return ProfilePlan(steps, full, epoch=None, after_s=float(after[1]) * UNITS_S[after[2]])
    raise UsageError(f"--profile-at {at}: say epoch:N, a time such as 30m, or drop")


def _steps(text: str) -> tuple[int, bool]:
    full = text == "full"
    steps = schema.PROFILE_STEPS if full else int(text) if text.isdecimal() else 0
    if not 0 < steps <= schema.MOST_PROFILE_STEPS:
        raise UsageError(f"--profile={text}: say how many steps, 1 to {schema.MOST_PROFILE_STEPS}, or full")
    return steps, full


def request(steps: int, epoch: int | None, *, full: bool, reason: str) -> str:
    """Return a request as JSON, as the training reads it."""
    return json.dumps({"steps": steps, "epoch": epoch, "full": full, "reason": reason})


def ask(folder: Path, steps: int, *, full: bool, reason: str) -> None:
    """Have the training that records into a run folder profile its next steps; OSError where that cannot be written."""
    into = folder / schema.PROFILE_DIR
    into.mkdir(exist_ok=True)
    new = into / f"{schema.PROFILE_REQUEST}.{os.getpid()}"
    new.write_text(request(steps, None, full=full, reason=reason), encoding="utf-8")
    new.replace(into / schema.PROFILE_REQUEST)
