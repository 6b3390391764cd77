"""The processes on a GPU as the recorder saw them, look by look: plain values, for of most runs there are few."""

from collections.abc import Iterable
from typing import NamedTuple

from gpu_report.model import Run


class Look(NamedTuple):
    """A row of the table of processes (see model.Run); what the driver did not say is NaN."""

    t_s: float
    gpu: int
    pid: int
    name: str
    memory_used_mib: float
    change: str
    owner: str
    gpu_util_pct: float


def looks_of(run: Run, gpu: int | None = None) -> list[Look]:
    """Return the looks at the processes of a GPU, or of all, in order of time.

    They are made anew each time: of a week of eight GPUs all would take hundreds of MB.
    """
    columns = (run.processes[name].to_numpy() for name in Look._fields)
    if gpu is not None:
        mine = run.processes["gpu"].to_numpy() == gpu
        columns = (column[mine] for column in columns)
    return list(map(Look._make, zip(*(column.tolist() for column in columns), strict=True)))


def by_pid(looks: Iterable[Look]) -> dict[int, list[Look]]:
    """Return the looks at each process, the process first that was seen first."""
    found: dict[int, list[Look]] = {}
    for look in looks:
        found.setdefault(look.pid, []).append(look)
    return found
