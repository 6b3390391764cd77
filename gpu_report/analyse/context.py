"""What every rule may look at: the run, its GPUs' tracks, and what has been found out about its time so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.activity import Activity, find_activity
from gpu_report.analyse.boundaries import Boundary, find_boundaries
from gpu_report.analyse.phases import find_phases
from gpu_report.analyse.track import Track, tracks
from gpu_report.model import EpochRow, KernelEvent, NearbyKernelEvent, Options, Phase, Run


@dataclass(frozen=True, eq=False)
class Context:
    """A run with its time sorted out."""

    run: Run
    options: Options
    tracks: tuple[Track, ...]
    activity: Activity
    boundaries: tuple[Boundary, ...]
    phases: tuple[Phase, ...]

    def epoch_at(self, t_s: float) -> EpochRow | None:
        """Return the epoch that a moment lies in, None outside all of them."""
        return next((r for r in self.run.epoch_rows if r.start_t_s <= t_s < r.row_t_s), None)

    def phase_at(self, t_s: float) -> Phase | None:
        """Return the phase that a moment lies in, None where it is not known."""
        return next((p for p in self.phases if p.start_t_s <= t_s < p.end_t_s), None)


def build_context(run: Run, options: Options) -> Context:
    """Return the context of a run."""
    found = tracks(run)
    activity = find_activity(run, found)
    boundaries = find_boundaries(run.epoch_rows, found, [activity.usable(track) for track in found])
    return Context(run, options, found, activity, boundaries, find_phases(run, activity, boundaries))


def kernel_events_near(
    events: Sequence[KernelEvent], start_s: float, end_s: float, gpu: int | None
) -> tuple[NearbyKernelEvent, ...]:
    """Return the kernel events in a window and shortly before it, nearest first, the same GPU's before another's."""
    near = [
        NearbyKernelEvent(event, _offset(event, start_s, end_s))
        for event in events
        if event.t_s <= end_s + th.KERNEL_AFTER_S and (event.last_t_s or event.t_s) >= start_s - th.KERNEL_BEFORE_S
    ]
    near.sort(key=lambda n: (abs(n.offset_s), n.event.gpu not in {gpu, None}, n.event.t_s))
    return tuple(near[: th.KERNEL_LINES_SHOWN])


def _offset(event: KernelEvent, start_s: float, end_s: float) -> float:
    if start_s <= event.t_s <= end_s:
        return 0.0
    return event.t_s - start_s if event.t_s < start_s else event.t_s - end_s
