"""Which programs of others used the CPU (`others.csv`), put on the run's clock."""

from pathlib import Path
from typing import Final

import numpy as np

from gpu_report.load.csv_file import Words
from gpu_report.load.limits import SHORT, Limits
from gpu_report.load.problems import too_many
from gpu_report.load.run_clock import RunClock, plausible
from gpu_report.load.samples import are_pids, load_optional, shortened
from gpu_report.model import OtherProgram

LONGEST_TEXT: Final = 100  # characters: a program's name has 15, a user's 32
LARGEST_CPU_PCT: Final = 1e6  # of a core: no machine has 10,000
LONGEST_S: Final = 86_400.0  # between two looks: with 3,000 processes they are 41 s apart
NUMBERS: Final = ["seconds", "pid", "processes", "cpu_pct", "on_trainer_cores_pct"]
TEXTS: Final = ["name", "user"]


def load_other_programs(
    path: Path, clock: RunClock, end_t_s: float, limits: Limits = SHORT
) -> tuple[tuple[OtherProgram, ...], tuple[str, ...]]:
    """Return what programs of others used between looks, in order of time, and what could not be read."""
    columns, words, problems = load_optional(path, NUMBERS, TEXTS, clock)
    ends, seconds, pids, processes, cpu_pct, shared_pct = (
        columns[name].astype(np.float64, copy=False) for name in ("t_s", *NUMBERS)
    )
    known = plausible(ends) & (ends > 0) & (seconds > 0) & (seconds <= LONGEST_S) & are_pids(pids)
    known &= are_pids(processes) & (processes > 0) & (cpu_pct > 0) & (cpu_pct <= LARGEST_CPU_PCT)
    starts = np.maximum(ends - seconds, 0.0)
    rows = np.flatnonzero(known & (starts < end_t_s))
    rows = rows[np.argsort(ends[rows], kind="stable")]
    if len(rows) > limits.other_programs:
        problems.append(too_many(f"{path.name} has {len(rows):,} rows", limits.other_programs))
        rows = rows[: limits.other_programs]
    shares = [share / 100 if 0 <= share <= 100 else None for share in shared_pct[rows].tolist()]
    whole = (pids[rows].astype(np.int64).tolist(), processes[rows].astype(np.int64).tolist())
    texts = (_one_line(words[name][rows]) for name in TEXTS)
    times = starts[rows].tolist(), np.minimum(ends[rows], end_t_s).tolist()
    return tuple(map(OtherProgram, *times, *texts, *whole, cpu_pct[rows].tolist(), shares)), tuple(problems)


def _one_line(words: Words) -> list[str]:
    """Return texts with a blank for whatever is blank in them: a program may call itself anything."""
    return [" ".join(word.split()) for word in shortened(words, LONGEST_TEXT)]
