"""What a log says once it is read, whichever tool wrote it: rows of readings, and what goes with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Device = Mapping[str, str | float | None]

DEVICE_FIELDS: Final = (
    "memory_total_mib",
    "power_limit_w",
    "max_sm_clock_mhz",
    "max_memory_clock_mhz",
    "max_pcie_link_generation",
    "max_pcie_link_width",
    "gpu_max_pcie_link_generation",
)


@dataclass(frozen=True)
class ImportedEvent:
    """Something for events.jsonl, at wall and monotonic seconds."""

    kind: str
    wall_s: float
    mono_s: float
    fields: Mapping[str, object]


EVERYTHING = "all"  # in place of a quantity: the GPU was gone


@dataclass(frozen=True)
class Failure:
    """Cells of one quantity of one GPU that hold no number: why, and the rows (of the table) they stand in.

    Of EVERYTHING it is the row behind which, or the rows in which, nothing of the GPU could be read.
    """

    gpu: int
    quantity: str
    reason: str
    rows: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Readings:
    """The rows of a log that have a time and a GPU: `stamp_s` is the stamp as if it were UTC, in seconds.

    `quantities` are columns of samples.csv, NaN for what was not read. `devices` say of each GPU what does not change.
    """

    stamp_s: Floats
    gpu: npt.NDArray[np.int64]
    quantities: Mapping[str, Floats]
    failures: tuple[Failure, ...] = ()
    devices: Mapping[int, Device] = field(default_factory=dict)
    dropped: int = 0
    names_gpus: bool = True


@dataclass(frozen=True, eq=False)
class Found:
    """All logs of one tool, read. `how` says how to log what can be imported.

    `in_utc` tells stamps in UTC from those of some zone that the log does not name. `processes` has the columns
    stamp_s, gpu, pid (NaN: a look that saw none), name, memory_used_mib and gpu_util_pct, `host` stamp_s and columns of
    host.csv, each in order of time. `notes` are to stand in the report. `interval_s` is for rows that do not stand for
    the time to the next one. `derived` rows count where no other log has any. `keeps_last_xid` is of a tool that has
    the last Xid error. `happenings` are kinds of events, their stamp and fields. `yolo` is the folder with YOLO's files
    where the logs know it, `trained_in` that of logs that say when epochs ended.
    """

    tool: str
    how: str
    tables: Sequence[Readings]
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    in_utc: bool = True
    interval_s: float | None = None
    derived: bool = False
    processes: pd.DataFrame | None = None
    host: pd.DataFrame | None = None
    host_name: str | None = None
    keeps_last_xid: bool = False
    happenings: Sequence[tuple[str, float, Mapping[str, object]]] = ()
    yolo: Path | None = None
    trained_in: Path | None = None
