"""What the profiler is asked for: in the command's environment, or in the run folder meanwhile."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

VARIABLE = "GPU_REPORT_PROFILE"  # a plan in JSON, made when the command started
FOLDER, REQUEST = "profile", "request.json"  # in the run folder: what is asked for meanwhile
MOST_STEPS = 64


class ProfilerPlan(NamedTuple):
    """What is asked for: `steps` from `epoch` on (None: now), why, and whether with shapes and layer names."""

    steps: int
    epoch: int | None
    full: bool
    reason: str


def plan_of(text: str | None) -> ProfilerPlan | None:
    """Return the plan in a text from outside, None where it holds none."""
    try:
        said = json.loads(text or "")
        steps, epoch = int(said["steps"]), said.get("epoch")
        reason = str(said.get("reason", "asked"))[:40]
        return ProfilerPlan(
            min(max(steps, 1), MOST_STEPS), None if epoch is None else int(epoch), bool(said.get("full")), reason
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def is_recorded(folder: str) -> bool:
    """Tell whether a recorder holds the run folder: it has a lock on its samples."""
    try:
        import fcntl  # noqa: PLC0415 - not there on Windows

        with open(os.path.join(folder, "samples.csv"), "rb") as file:  # noqa: PTH118, PTH123 - as in writer.py
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (OSError, ImportError):
        return False
    return False


def written_ns(path: str) -> int:
    """Return when a request was written (ns), 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116 - as in writer.py
    except OSError:
        return 0


def request_in(path: str) -> ProfilerPlan | None:
    """Return what a request asks for, None where it cannot be read."""
    try:
        with open(path, encoding="utf-8") as file:  # noqa: PTH123 - as in writer.py
            return plan_of(file.read(4096))
    except (OSError, UnicodeDecodeError):
        return None
