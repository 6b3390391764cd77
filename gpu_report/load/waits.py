"""What the processes of a training waited for (`waits.csv`), put on the run's clock."""

from pathlib import Path
from typing import Final

import numpy as np

from gpu_report.load.limits import SHORT, Limits
from gpu_report.load.problems import too_many
from gpu_report.load.run_clock import RunClock, plausible
from gpu_report.load.samples import are_pids, is_one_of, load_optional, shortened
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
    rows = np.flatnonzero(known & is_one_of(words["role"], ROLES))
    rows = rows[np.lexsort((seconds[rows], starts[rows]))]
    pids = columns["pid"][rows].astype(np.int64)
    told = dict(zip(zip(pids.tolist(), starts[rows].tolist(), strict=True), rows.tolist(), strict=True))
    rows = rows[np.isin(rows, list(told.values()))]  # a wait that went on was told again
    if len(rows) > limits.waits:
        problems.append(too_many(f"{path.name} has {len(rows):,} waits", limits.waits))
        rows = rows[: limits.waits]
    ends = np.minimum(starts[rows] + seconds[rows], end_t_s)
    numbers = (starts[rows].tolist(), ends.tolist(), columns["pid"][rows].astype(np.int64).tolist())
    texts = (shortened(words[name][rows], LONGEST_TEXT) for name in TEXTS)
    return tuple(map(ProcessWait, *numbers, *texts)), tuple(problems)
