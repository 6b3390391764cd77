"""The scenes of a run's intervals: what each signal is in ordinary training is worked out once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from gpu_report import schema
from gpu_report.analyse import thresholds as th
from gpu_report.analyse.inside import FROM_CALLBACKS
from gpu_report.analyse.kernel_near import kernel_events_near
from gpu_report.analyse.pace import Pace
from gpu_report.analyse.presence import Guest
from gpu_report.analyse.scene import NOTHING, Neighbour, Scene, Series, series
from gpu_report.analyse.spans import Span, Touching, as_array
from gpu_report.analyse.track import Track
from gpu_report.model import KernelEvent, Phase, Run

HOST_COLUMNS = tuple(column.name for column in schema.HOST_QUANTITIES)
GPU_COLUMNS = tuple(column.name for column in schema.GPU_QUANTITIES)


@dataclass(frozen=True)
class Beside:
    """What has been found out beside the readings: other processes, phases, and how fast training went."""

    guests: Sequence[Guest] = ()
    phases: Sequence[Phase] = ()
    pace: Pace | None = None
    firsts: Sequence[Span] = ()  # the first epochs of processes


class Scenes:
    """Makes the scene of any interval; `calm` are the spans of ordinary training."""

    def __init__(self, run: Run, tracks: Sequence[Track], calm: Sequence[Span], beside: Beside | None = None) -> None:
        beside = beside or Beside()
        self.calm = tuple(calm)
        self._guests = beside.guests
        told = (phase for phase in beside.phases if phase.source == FROM_CALLBACKS)
        self._phases = Touching(told, lambda phase: (phase.start_t_s, phase.end_t_s))
        self._kernel = Touching(run.kernel.events, lambda event: (event.t_s, event.last_t_s or event.t_s))
        self._pace = beside.pace
        self._firsts = beside.firsts
        self._workers = _loader_workers(run)
        self._run = run
        edges = as_array(calm)
        self._host = series(run.host, HOST_COLUMNS, edges)
        self._gpus: dict[int, Series] = {t.gpu: series(t.rows, GPU_COLUMNS, edges) for t in tracks}

    def of_training(self, gpu: int) -> Scene:
        """Return the scene of all ordinary training on a GPU: there is nothing else that it could be held against."""
        whole = self.of(gpu, self.calm[0][0], self.calm[-1][1])
        waited = self._pace.waiting(self.calm) if self._pace else None
        host, own = whole.host.only_calm(), whole.own.only_calm()
        return replace(whole, host=host, own=own, kernel=(), data_wait_share=waited)

    def of(self, gpu: int, start_t_s: float, end_t_s: float) -> Scene:
        """Return the scene of an interval of one GPU."""
        return Scene(
            gpu=gpu,
            start_t_s=start_t_s,
            end_t_s=end_t_s,
            host=self._host,
            own=self._gpus.get(gpu, NOTHING),  # one that was lost before its first reading has none
            cores=self._run.recording.cores_online or self._run.recording.cores,
            usable_cores=self._run.recording.usable_cores,
            kernel=kernel_events_near(self._kernel_lines(start_t_s, end_t_s), start_t_s, end_t_s, gpu),
            neighbours=_neighbours([guest for guest in self._guests if guest.gpu == gpu], start_t_s, end_t_s),
            nvml_lost=_nvml_lost(self._run, gpu, start_t_s, end_t_s),
            data_wait_share=self._pace.waiting([(start_t_s, end_t_s)]) if self._pace else None,
            loader_workers=self._workers,
            phases=_shares(self._phases(start_t_s, end_t_s), start_t_s, end_t_s),
            in_first_epoch=any(start <= start_t_s and end_t_s <= end + th.EDGE_S for start, end in self._firsts),
        )

    def _kernel_lines(self, start_t_s: float, end_t_s: float) -> Sequence[KernelEvent]:
        return self._kernel(start_t_s - th.KERNEL_BEFORE_S, end_t_s + th.KERNEL_AFTER_S)


def _shares(phases: Sequence[Phase], start_t_s: float, end_t_s: float) -> dict[str, float]:
    """Return the share of an interval by phase; a part that has a name of its own counts as that."""
    shares: dict[str, float] = {}
    for phase in phases:
        shared_s = min(phase.end_t_s, end_t_s) - max(phase.start_t_s, start_t_s)
        if shared_s > 0:
            name = phase.detail or phase.name
            shares[name] = shares.get(name, 0.0) + shared_s / (end_t_s - start_t_s)
    return shares


def _loader_workers(run: Run) -> int | None:
    """Return how many workers load for the training, over all its ranks: as told from inside, else as asked for."""
    told = [process.settings for process in run.inside if process.task == "train"]
    asked: Sequence[Mapping[str, object]] = told or [yolo.args for yolo in run.yolo_runs]
    counts = [(said.get("workers"), said.get("world_size")) for said in asked]
    each, ranks = counts[-1] if counts else (None, None)
    return each * (ranks if isinstance(ranks, int) else 1) if isinstance(each, int) else None


def _neighbours(guests: Sequence[Guest], start_t_s: float, end_t_s: float) -> tuple[Neighbour, ...]:
    """Return who else was on the GPU, with the share of the interval that they were there."""
    found = []
    for guest in guests:
        shared_s = min(guest.span[1], end_t_s) - max(guest.span[0], start_t_s)
        if shared_s > 0:
            share = min(shared_s / (end_t_s - start_t_s), 1.0)
            found.append(Neighbour(guest.pid, guest.name, guest.memory_mib, share))
    return tuple(found)


def _nvml_lost(run: Run, gpu: int, start_t_s: float, end_t_s: float) -> str:
    """Return what the driver said when it lost a GPU within an interval or shortly before, empty when it did not."""
    lost = [
        str(event.fields.get("reason", ""))
        for event in run.events
        if event.kind == "nvml_error"
        and event.gpu == gpu
        and event.fields.get("quantity") == "all"
        and start_t_s - th.KERNEL_BEFORE_S <= event.t_s <= end_t_s
    ]
    return lost[0] if lost else ""
