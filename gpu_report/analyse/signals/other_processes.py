"""Which other processes were on a GPU of the training: when they came and went, and what they took."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gpu_report.analyse.signals import thresholds as th
from gpu_report.analyse.timeline.activity import FOREIGN, OWN
from gpu_report.analyse.timeline.thresholds import PROCESSES_EVERY_S
from gpu_report.analyse.timeseries.gpu_series import GpuSeries
from gpu_report.analyse.timeseries.intervals import Span
from gpu_report.model import Run


@dataclass(frozen=True)
class OtherProcess:
    """A process on a GPU that is not the training's: when, its largest memory, its share of the GPU's time.

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
        return f"{self.name or 'a process'} (pid {self.pid})"


def other_processes_on(run: Run, series: GpuSeries) -> tuple[OtherProcess, ...]:
    """Return the other processes of a GPU. When they came and went shows in its memory between two looks."""
    rows = run.processes[run.processes["gpu"] == series.gpu]
    found = [_other_process(run, series, rows[rows["pid"] == pid]) for pid in _pids(run, rows)]
    return tuple(other for other in found if other.span[0] < other.span[1])


def _other_process(run: Run, series: GpuSeries, rows: pd.DataFrame) -> OtherProcess:
    memory = max(rows["memory_used_mib"].dropna().tolist(), default=None)
    used = max(rows["gpu_util_pct"].dropna().tolist(), default=None)
    gone = rows[rows["change"] == "gone"]["t_s"].tolist()
    came_s, went_s = float(rows["t_s"].iloc[0]), gone[-1] if gone else run.duration_s
    span = (_step(series, came_s, memory, up=True), _step(series, went_s, memory, up=False) if gone else went_s)
    return OtherProcess(series.gpu, int(rows["pid"].iloc[0]), str(rows["name"].iloc[0]), span, memory, used)


def _pids(run: Run, rows: pd.DataFrame) -> list[int]:
    """Return whoever is not of the training, and its own processes but for its ranks and the largest one.

    A process whose owner is not known is left out.
    """
    foreign = rows[rows["owner"].isin(FOREIGN)]["pid"].tolist()
    own = rows[rows["owner"] == OWN].dropna(subset="memory_used_mib").sort_values("memory_used_mib")["pid"].tolist()
    mine = {*(process.pid for process in run.inside), *own[-1:]}
    return [int(pid) for pid in dict.fromkeys([*foreign, *own]) if pid not in mine]


def _step(series: GpuSeries, look_s: float, memory_mib: float | None, *, up: bool) -> float:
    """Return when the GPU's memory stepped by about a process's before a look, else the middle of the time since."""
    since_s = look_s - PROCESSES_EVERY_S - th.LATE_LOOK_TICKS * series.tick_s
    rows = series.samples[(series.samples["t_s"] > since_s) & (series.samples["t_s"] <= look_s + series.tick_s)]
    used, t_s = rows["memory_used_mib"].to_numpy(dtype=float), rows["t_s"].to_numpy(dtype=float)
    if memory_mib and len(used) > 1:
        steps = np.diff(used) if up else -np.diff(used)
        at = int(np.argmax(np.nan_to_num(steps)))
        if steps[at] >= th.OTHER_PROCESS_STEP_SHARE * memory_mib:
            return float(t_s[at + 1]) if up else float(t_s[at])
    return look_s - PROCESSES_EVERY_S / 2
