"""The scenes of a run's intervals: what each signal is in ordinary training is worked out once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpu_report import schema
from gpu_report.analyse import thresholds as th
from gpu_report.analyse.activity import Activity
from gpu_report.analyse.inside import FROM_CALLBACKS
from gpu_report.analyse.kernel_near import kernel_events_near
from gpu_report.analyse.presence import Guest
from gpu_report.analyse.scene import Neighbour, Scene, Series, series
from gpu_report.analyse.spans import Span, minus
from gpu_report.analyse.track import Track
from gpu_report.model import Phase, Run

HOST_COLUMNS = tuple(column.name for column in schema.HOST_QUANTITIES)
GPU_COLUMNS = tuple(column.name for column in schema.GPU_QUANTITIES)


class Scenes:
    """Makes the scene of any interval; `calm` are the spans of ordinary training."""

    def __init__(self, run: Run, tracks: Sequence[Track], guests: Sequence[Guest], calm: Sequence[Span]) -> None:
        self.calm = tuple(calm)
        self._run = run
        self._guests = guests
        self._host = series(run.host, HOST_COLUMNS, calm)
        self._gpus: dict[int, Series] = {t.gpu: series(t.rows, GPU_COLUMNS, calm) for t in tracks}

    def of_training(self, gpu: int) -> Scene:
        """Return the scene of all ordinary training on a GPU: there is nothing else that it could be held against."""
        whole = self.of(gpu, self.calm[0][0], self.calm[-1][1])
        return replace(whole, host=whole.host.only_calm(), own=whole.own.only_calm(), kernel=())

    def of(self, gpu: int, start_t_s: float, end_t_s: float) -> Scene:
        """Return the scene of an interval of one GPU."""
        return Scene(
            gpu=gpu,
            start_t_s=start_t_s,
            end_t_s=end_t_s,
            host=self._host,
            own=self._gpus[gpu],
            cores=self._run.recording.cores,
            kernel=kernel_events_near(self._run.kernel.events, start_t_s, end_t_s, gpu),
            neighbours=_neighbours([guest for guest in self._guests if guest.gpu == gpu], start_t_s, end_t_s),
            nvml_lost=_nvml_lost(self._run, gpu, start_t_s, end_t_s),
        )


def calm_spans(
    phases: Sequence[Phase], activity: Activity, duration_s: float, disturbed: Iterable[Span]
) -> tuple[Span, ...]:
    """Return the spans of ordinary training: train phases, or all but startup and idle, less the disturbed ones."""
    trained = [_inner((p.start_t_s, p.end_t_s), told=p.source == FROM_CALLBACKS) for p in phases if p.name == "train"]
    spans = trained or [_inner(span) for span in minus([(0.0, duration_s)], [*activity.startups, *activity.idle])]
    wide = [(start - th.CALM_EDGE_S, end + th.CALM_EDGE_S) for start, end in disturbed]
    return tuple(minus([(start, end) for start, end in spans if start < end], sorted(wide)))


def _inner(span: Span, *, told: bool = False) -> Span:
    """Return a span without its edges, whose rows belong half to what was before and after."""
    edge_s = th.CALM_TOLD_EDGE_S if told else th.CALM_EDGE_S
    return span[0] + edge_s, span[1] - edge_s


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
