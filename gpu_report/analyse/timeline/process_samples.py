"""The processes on a GPU as the recorder saw them, look by look: plain values, for of most runs there are few."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple
from weakref import WeakKeyDictionary

from gpu_report.model import Run

AT_ONCE = 10_000  # looks: 3 MB

# Of a run whose looks are few all of them, for several rules ask: pandas takes a while for each column.
_few: WeakKeyDictionary[Run, list["ProcessSample"]] = WeakKeyDictionary()


class ProcessSample(NamedTuple):
    """A row of the table of processes (see model.Run); what the driver did not say is NaN."""

    t_s: float
    gpu: int
    pid: int
    name: str
    memory_used_mib: float
    change: str
    owner: str
    gpu_util_pct: float


def process_samples_of(run: Run, gpu: int | None = None) -> Iterator[ProcessSample]:
    """Yield the looks at the processes of a GPU, or of all, in order of time.

    Many are made anew each time, some at a time: all of a week of eight GPUs take hundreds of MB.
    """
    if len(run.processes) > AT_ONCE:
        yield from _made(run, gpu)
        return
    if run not in _few:
        _few[run] = list(_made(run, None))
    yield from (look for look in _few[run] if gpu is None or look.gpu == gpu)


def _made(run: Run, gpu: int | None) -> Iterator[ProcessSample]:
    columns = [run.processes[name].to_numpy() for name in ProcessSample._fields]
    if gpu is not None:
        mine = columns[ProcessSample._fields.index("gpu")] == gpu
        columns = [column[mine] for column in columns]
    for at in range(0, len(columns[0]), AT_ONCE):
        some = (column[at : at + AT_ONCE].tolist() for column in columns)
        yield from map(ProcessSample._make, zip(*some, strict=True))


def samples_by_pid(looks: Iterable[ProcessSample]) -> dict[int, list[ProcessSample]]:
    """Return the looks at each process, the process first that was seen first."""
    found: dict[int, list[ProcessSample]] = {}
    for look in looks:
        found.setdefault(look.pid, []).append(look)
    return found
