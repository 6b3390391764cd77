"""From looks at the processes on GPUs, as other tools take them, to the rows of processes.csv."""

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd

from gpu_report import schema

CHANGED_PCT: Final = 20.0  # utilisation that differs by more is written, as the recorder does
LARGEST_PID: Final = 2**22  # the kernel's own limit (PID_MAX_LIMIT)
COLUMNS: Final = [column.name for column in schema.PROCESSES_COLUMNS]


def process_rows(looks: pd.DataFrame) -> pd.DataFrame:
    """Return when processes appeared, changed and went.

    `looks` has wall_s, mono_s, gpu, pid, name, memory_used_mib and gpu_util_pct: a row is a process that a look saw, or
    with pid NaN a look that saw none. A process is gone at the first look at its GPU that does not see it.
    """
    rows = [row for gpu, mine in looks.groupby("gpu", sort=True) for row in _of_gpu(int(str(gpu)), mine)]
    frame = pd.DataFrame(rows, columns=COLUMNS)
    return frame.sort_values(["mono_s", "gpu"], kind="stable", ignore_index=True)


def _of_gpu(gpu: int, looks: pd.DataFrame) -> Iterator[tuple[object, ...]]:
    moments, first = np.unique(looks["mono_s"].to_numpy(), return_index=True)
    walls = looks["wall_s"].to_numpy()[first]
    seen = looks[looks["pid"].between(1, LARGEST_PID)].drop_duplicates(["mono_s", "pid"])
    for key, mine in seen.groupby("pid", sort=True):
        pid = int(float(str(key)))
        at = np.searchsorted(moments, mine["mono_s"].to_numpy())
        names = mine["name"].tolist()
        readings = zip(mine["memory_used_mib"].tolist(), mine["gpu_util_pct"].tolist(), strict=True)
        before, written = -2, (np.nan, np.nan)
        for look, name, reading in zip(at.tolist(), names, readings, strict=True):
            if before >= 0 and look > before + 1:
                yield (walls[before + 1], moments[before + 1], gpu, pid, name, *_GONE)
            is_new = look != before + 1
            if is_new or _differs(reading, written):
                change = "appeared" if is_new else "changed"
                yield (walls[look], moments[look], gpu, pid, name, reading[0], change, "unknown", reading[1])
                written = reading
            before = look
        if before + 1 < len(moments):
            yield (walls[before + 1], moments[before + 1], gpu, pid, names[-1], *_GONE)


_GONE: Final = (np.nan, "gone", "unknown", np.nan)


def _differs(reading: tuple[float, float], written: tuple[float, float]) -> bool:
    memory, util = reading
    return (memory == memory and memory != written[0]) or abs(util - written[1]) > CHANGED_PCT  # noqa: PLR0124 (NaN)
