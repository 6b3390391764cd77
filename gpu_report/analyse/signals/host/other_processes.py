"""Which other processes were on a GPU of the training: when they came and went, and what they took."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isnan

import numpy as np
import pandas as pd

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.signals.host.memory_steps import memory_stays
from gpu_report.analyse.timeline.activity import FOREIGN, OWN
from gpu_report.analyse.timeline.process_samples import ProcessSample, process_samples_of, samples_by_pid
from gpu_report.analyse.timeline.thresholds import PROCESSES_EVERY_S
from gpu_report.analyse.timeseries.gpu_series import Floats, GpuSeries
from gpu_report.analyse.timeseries.intervals import Span, mask_in_any, union
from gpu_report.model import Run

UNNAMED = 0  # pid of a process that only memory tells of


@dataclass(frozen=True)
class OtherProcess:
    """A stay of a process on a GPU that is not the training's: when, its largest memory, its share of the GPU's time.

    What the driver does not say is None.
    """

    gpu: int
    pid: int
    name: str
    span: Span
    memory_mib: float | None
    util_pct: float | None

    @property
    def worked(self) -> bool:
        """Tell whether it did more than hold memory; where the driver does not say, it is taken to have worked."""
        return self.util_pct is None or self.util_pct >= th.OTHER_PROCESS_UTIL_PCT

    def share_of(self, start_t_s: float, end_t_s: float) -> float:
        """Return which share of an interval (0 to 1) it was there for; 0 of one without length."""
        length_s = end_t_s - start_t_s
        shared_s = min(self.span[1], end_t_s) - max(self.span[0], start_t_s)
        return min(max(shared_s / length_s, 0.0), 1.0) if length_s > 0 else 0.0

    @property
    def who(self) -> str:
        """Return its name and pid in words."""
        if self.pid == UNNAMED:
            return "another process"
        return f"{self.name or 'a process'} (pid {self.pid})"


def other_processes_on(run: Run, series: GpuSeries) -> tuple[OtherProcess, ...]:
    """Return the other processes of a GPU. When they came and went shows in its memory between two looks.

    Where nobody looked, memory alone tells of them.
    """
    if run.processes.empty and not run.inside:
        return tuple(
            OtherProcess(series.gpu, UNNAMED, "", stay.span, stay.memory_mib, None)
            for stay in memory_stays(run, series)
        )
    looks = list(process_samples_of(run, series.gpu))
    of_pid = samples_by_pid(looks)
    stays = (stay for pid in _pids(run, looks) for stay in _stays(of_pid[pid]))
    found = [_other_process(run, series, stay) for stay in stays]
    return tuple(other for other in found if other.span[0] < other.span[1])


def share_of_others(run: Run, series: GpuSeries, others: Sequence[OtherProcess]) -> Floats:
    """Return for each reading of a GPU which share of its work (0 to 1) was that of some processes on it.

    The driver says it every few seconds, as the mean of the time since. What it did not say is no work of theirs. All
    processes together may use more than the time there is, for kernels of several run at once.
    """
    there = union([other.span for other in others if other.gpu == series.gpu])
    theirs = {other.pid for other in others if other.gpu == series.gpu}
    rows = run.processes[run.processes["gpu"] == series.gpu]
    if not theirs:
        return np.zeros(len(series.t_s))
    is_theirs = rows["pid"].isin(theirs)
    used, ours = (_util_of(rows[mine], series.t_s) for mine in (is_theirs, ~is_theirs))
    used = np.where(mask_in_any(series.t_s, there), used, 0.0)  # which memory dates better than looks do
    whole = np.maximum(used + ours, series.util_pct.astype(float))
    share: Floats = np.divide(used, whole, out=np.zeros_like(whole), where=whole > 0)
    return share


def _util_of(rows: pd.DataFrame, t_s: Floats) -> Floats:
    """Return what processes used of a GPU together at some moments (%), 0 where nothing is known.

    A row is of the time before it; it is written where a figure changed, and at the end of a process.
    """
    looks = rows.sort_values(["pid", "t_s"], kind="stable")
    gone, pid = looks["change"] == "gone", looks["pid"]
    util_pct = looks["gpu_util_pct"].where(~gone, 0.0).groupby(pid).ffill().fillna(0.0)
    steps = util_pct.groupby(pid).diff().fillna(util_pct).to_numpy(dtype=float)
    since_s = (looks["t_s"] - np.where(gone, 0.0, PROCESSES_EVERY_S)).to_numpy(dtype=float)
    order = np.argsort(since_s, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(steps[order])])
    at: Floats = sums[np.searchsorted(since_s[order], t_s, side="right")]
    return np.maximum(at, 0.0)


def _stays(looks: Sequence[ProcessSample]) -> Iterator[list[ProcessSample]]:
    """Yield the looks at a process by stay: one that has left a GPU may open it again, hours later."""
    stay: list[ProcessSample] = []
    for look in looks:
        stay.append(look)
        if look.change == "gone":
            yield stay
            stay = []
    if stay:
        yield stay


def _other_process(run: Run, series: GpuSeries, looks: Sequence[ProcessSample]) -> OtherProcess:
    memory = max((look.memory_used_mib for look in looks if not isnan(look.memory_used_mib)), default=None)
    used = max((look.gpu_util_pct for look in looks if not isnan(look.gpu_util_pct)), default=None)
    gone = [look.t_s for look in looks if look.change == "gone"]
    came_s, went_s = looks[0].t_s, gone[-1] if gone else run.duration_s
    span = (_step(series, came_s, memory, up=True), _step(series, went_s, memory, up=False) if gone else went_s)
    if used is None and span[1] - span[0] >= th.UTIL_READ_WITHIN_S and _util_is_read(run, series.gpu):
        used = 0.0
    return OtherProcess(series.gpu, looks[0].pid, str(looks[0].name), span, memory, used)


def _util_is_read(run: Run, gpu: int) -> bool:
    """Tell whether the driver says what processes use of a GPU: it names those alone that used any of it."""
    return bool(run.processes.loc[run.processes["gpu"] == gpu, "gpu_util_pct"].notna().any())


def _pids(run: Run, looks: Sequence[ProcessSample]) -> list[int]:
    """Return whoever is not of the training, and its own processes but for its ranks and the largest one.

    A process whose owner is not known is left out.
    """
    foreign = [look.pid for look in looks if look.owner in FOREIGN]
    known = [look for look in looks if look.owner == OWN and not isnan(look.memory_used_mib)]
    own = [look.pid for look in sorted(known, key=lambda look: look.memory_used_mib)]
    mine = {*(process.pid for process in run.inside), *own[-1:]}
    return [pid for pid in dict.fromkeys([*foreign, *own]) if pid not in mine]


def _step(series: GpuSeries, look_s: float, memory_mib: float | None, *, up: bool) -> float:
    """Return when the GPU's memory stepped by about a process's before a look, else the middle of the time since."""
    since_s = look_s - PROCESSES_EVERY_S - th.LATE_LOOK_TICKS * series.tick_s
    times_s = series.samples["t_s"].to_numpy(dtype=float)
    rows = slice(*np.searchsorted(times_s, [since_s, look_s + series.tick_s], side="right").tolist())
    used, t_s = series.samples["memory_used_mib"].to_numpy(dtype=float)[rows], times_s[rows]
    if memory_mib and len(used) > 1:
        steps = np.diff(used) if up else -np.diff(used)
        at = int(np.argmax(np.nan_to_num(steps)))
        if steps[at] >= th.OTHER_PROCESS_STEP_SHARE * memory_mib:
            return float(t_s[at + 1]) if up else float(t_s[at])
    return look_s - PROCESSES_EVERY_S / 2
