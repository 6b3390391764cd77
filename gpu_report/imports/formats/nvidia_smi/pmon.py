"""`nvidia-smi pmon -s um -o DT`: the processes on each GPU, once a second."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from gpu_report.imports.formats.nvidia_smi.dmon_table import COMMAND, HOW, DmonTable, header_of, read_tables
from gpu_report.imports.parsing.csv_file import numbers_of
from gpu_report.imports.parsing.each_log import read_each
from gpu_report.imports.parsing.fields import not_imported
from gpu_report.imports.parsing.readings import Found, Readings
from gpu_report.imports.selection import Selection

TOOL: Final = "nvidia-smi pmon"
_KNOWN: Final = frozenset({"date", "time", "gpu", "pid", "type", "sm", "fb", "command"})
DERIVED: Final = "Utilisation and memory of a GPU are sums over its processes: pmon says nothing of the GPU itself."


def is_log(_: Path, head: str) -> bool:
    """Tell whether a file's first lines are pmon's."""
    return {"pid", "command"} <= set(header_of(head))


def read(paths: Sequence[Path], _: Selection) -> Found:
    """Return the processes of all logs, and what they sum up to; InputError where none can be used."""
    logs, left_out = read_each(paths, lambda path: read_tables(path, "pmon", _KNOWN), HOW.format(tool="pmon"))
    tables = [table for found, _ in logs for table in found]
    unknown = {name for table in tables for name in table.columns} - _KNOWN
    problems = [*left_out, *(problem for _, said in logs for problem in said), *not_imported(TOOL, unknown)]
    processes = pd.concat([_processes(table) for table in tables], ignore_index=True)
    return Found(
        TOOL,
        HOW.format(tool="pmon"),
        [_sums(processes, sum(table.dropped for table in tables))],
        tuple(problems),
        (DERIVED,),
        in_utc=False,
        derived=True,
        processes=processes,
    )


def _processes(table: DmonTable) -> pd.DataFrame:
    """Return the rows; one of a GPU without a process has no pid."""
    cells = table.cells
    numbers = {
        name: numbers_of(cells[name]) if name in cells else np.full(len(cells), np.nan) for name in ("pid", "sm", "fb")
    }
    return pd.DataFrame(
        {
            "stamp_s": table.stamp_s,
            "gpu": table.gpu,
            "pid": numbers["pid"],
            "name": cells[COMMAND].fillna("").str.strip().to_numpy() if COMMAND in cells else "",
            "memory_used_mib": numbers["fb"],
            "gpu_util_pct": numbers["sm"],
        }
    )


def _sums(processes: pd.DataFrame, dropped: int) -> Readings:
    """Return what the processes of a GPU use together; a GPU without one is not used."""
    known = processes.assign(
        **{name: processes[name].where(processes["pid"].notna(), 0.0) for name in ("memory_used_mib", "gpu_util_pct")}
    )
    sums = known.groupby(["stamp_s", "gpu"], sort=True)[["memory_used_mib", "gpu_util_pct"]].sum(min_count=1)
    index = sums.index.to_frame()
    return Readings(
        index["stamp_s"].to_numpy(dtype=float),
        index["gpu"].to_numpy(dtype=np.int64),
        {
            "gpu_util_pct": np.minimum(sums["gpu_util_pct"].to_numpy(dtype=float), 100.0),
            "memory_used_mib": sums["memory_used_mib"].to_numpy(dtype=float),
        },
        dropped=dropped,
    )
