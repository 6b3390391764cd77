"""What the processes of a training waited for (`waits.csv`), put on the run's clock."""

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from gpu_report.load.limits import SHORT, Limits
from gpu_report.load.problems import too_many
from gpu_report.load.run_clock import RunClock, plausible
from gpu_report.load.samples import are_pids, load_optional
from gpu_report.model import ProcessWait

ROLES: Final = ("main", "worker")
LONGEST_TEXT: Final = 1000  # characters of a path
TEXTS: Final = ["role", "state", "channel", "call", "file", "filesystem"]


def load_waits(
    path: Path, clock: RunClock, end_t_s: float, limits: Limits = SHORT
) -> tuple[tuple[ProcessWait, ...], tuple[str, ...]]:
    """Return the waits in order of time, each as long as it was seen to last, and what could not be read."""
    columns, words, problems = load_optional(path, ["pid", "seconds"], TEXTS, clock)
    starts, seconds = (columns[name].astype(np.float64, copy=False) for name in ("t_s", "seconds"))
    known = plausible(starts) & are_pids(columns["pid"]) & (seconds >= 0) & (starts < end_t_s)
    texts = {name: words[name].str.slice(0, LONGEST_TEXT) for name in TEXTS}
    frame = pd.DataFrame({"t_s": starts, "pid": columns["pid"], "seconds": seconds, **texts})
    frame = frame[known & frame["role"].isin(ROLES)].sort_values(["t_s", "seconds"], kind="stable")
    frame = frame.drop_duplicates(["pid", "t_s"], keep="last")  # a wait that went on was told again
    if len(frame) > limits.waits:
        problems.append(too_many(f"{path.name} has {len(frame):,} waits", limits.waits))
        frame = frame.head(limits.waits)
    ends = np.minimum(frame["t_s"] + frame["seconds"], end_t_s)
    rows = zip(frame["t_s"], ends, frame["pid"], *(frame[name] for name in TEXTS), strict=True)
    return tuple(ProcessWait(start, end, int(pid), *texts) for start, end, pid, *texts in rows), tuple(problems)
