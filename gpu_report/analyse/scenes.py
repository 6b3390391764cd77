"""The scenes of a run's intervals: what each signal is in ordinary training is worked out once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gpu_report import schema
from gpu_report.analyse import thresholds as th
from gpu_report.analyse.context import Context, kernel_events_near
from gpu_report.analyse.scene import Neighbour, Scene, Series, series
from gpu_report.analyse.spans import Span, minus
from gpu_report.model import Run

OWN = "trainer"
FOREIGN = ("other", "not visible")
HOST_COLUMNS = tuple(column.name for column in schema.HOST_QUANTITIES)
GPU_COLUMNS = tuple(column.name for column in schema.GPU_QUANTITIES)


class Scenes:
    """Makes the scene of any interval; `disturbed` are the intervals that are no ordinary training."""

    def __init__(self, context: Context, disturbed: Iterable[Span]) -> None:
        self._context = context
        calm = calm_spans(context, disturbed)
        self._host = series(context.run.host, HOST_COLUMNS, calm)
        self._gpus: dict[int, Series] = {t.gpu: series(t.rows, GPU_COLUMNS, calm) for t in context.tracks}

    def of_training(self, gpu: int, start_t_s: float, end_t_s: float) -> Scene:
        """Return the scene of all ordinary training on a GPU: there is nothing else that it could be held against."""
        whole = self.of(gpu, start_t_s, end_t_s)
        return replace(whole, host=whole.host.only_calm(), own=whole.own.only_calm(), kernel=())

    def of(self, gpu: int, start_t_s: float, end_t_s: float) -> Scene:
        """Return the scene of an interval of one GPU."""
        run = self._context.run
        return Scene(
            gpu=gpu,
            start_t_s=start_t_s,
            end_t_s=end_t_s,
            host=self._host,
            own=self._gpus[gpu],
            cores=run.recording.cores,
            kernel=kernel_events_near(run.kernel.events, start_t_s, end_t_s, gpu),
            neighbours=neighbours(run, gpu, start_t_s, end_t_s),
            nvml_lost=nvml_lost(run, gpu, start_t_s, end_t_s),
        )


def calm_spans(context: Context, disturbed: Iterable[Span]) -> list[Span]:
    """Return the spans of ordinary training: train phases, or all but startup and idle, less the disturbed ones."""
    trained = [(p.start_t_s, p.end_t_s) for p in context.phases if p.name == "train"]
    resting = [*context.activity.startups, *context.activity.idle]
    spans = trained or minus([(0.0, context.run.duration_s)], resting)
    wide = [(start - th.CALM_EDGE_S, end + th.CALM_EDGE_S) for start, end in disturbed]
    inner = [(start + th.CALM_EDGE_S, end - th.CALM_EDGE_S) for start, end in spans]
    return minus([(start, end) for start, end in inner if start < end], sorted(wide))


def neighbours(run: Run, gpu: int, start_t_s: float, end_t_s: float) -> tuple[Neighbour, ...]:
    """Return the processes on a GPU that are not the training's, with the share of the interval they were there."""
    found = []
    for (pid, name, memory_mib), spans in _presences(run, gpu).items():
        shared = sum(max(0.0, min(end, end_t_s) - max(start, start_t_s)) for start, end in spans)
        if shared > 0:
            found.append(Neighbour(pid, name, memory_mib, min(shared / (end_t_s - start_t_s), 1.0)))
    return tuple(found)


def nvml_lost(run: Run, gpu: int, start_t_s: float, end_t_s: float) -> str:
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


def _presences(run: Run, gpu: int) -> dict[tuple[int, str, float | None], Sequence[Span]]:
    """Return when each foreign process was on a GPU. A look takes place every few seconds: it came a little before."""
    rows = run.processes[(run.processes["gpu"] == gpu) & run.processes["owner"].isin(FOREIGN)]
    spans: dict[tuple[int, str, float | None], Sequence[Span]] = {}
    for pid in dict.fromkeys(rows["pid"].tolist()):
        mine = rows[rows["pid"] == pid]
        gone = mine[mine["change"] == "gone"]["t_s"].tolist()
        memory = mine["memory_used_mib"].dropna().tolist()
        key = (int(pid), str(mine["name"].iloc[0]), max(memory, default=None))
        spans[key] = [(float(mine["t_s"].iloc[0]) - th.PROCESSES_EVERY_S / 2, gone[-1] if gone else run.duration_s)]
    return spans
