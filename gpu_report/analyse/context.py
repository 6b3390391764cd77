"""What every rule may look at: the run, its GPUs' tracks, and what has been found out about its time so far."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from gpu_report.analyse import thresholds as th
from gpu_report.analyse.activity import Activity, find_activity, outside
from gpu_report.analyse.boundaries import Boundaries, find_boundaries
from gpu_report.analyse.drops import Drop, find_drops
from gpu_report.analyse.energy import Energy, energy
from gpu_report.analyse.inside import InsideView, inside_view, with_inside
from gpu_report.analyse.phases import final_evaluations, find_phases, joined
from gpu_report.analyse.track import Bools, Track, tracks
from gpu_report.model import EpochRow, KernelEvent, NearbyKernelEvent, Options, Phase, Run


@dataclass(frozen=True, eq=False)
class Context:
    """A run with its time sorted out: for each track which readings are of training, and its running energy.

    `drops` are those of all GPUs: to find them is the dearest part of an analysis, and several rules look at them.
    """

    run: Run
    options: Options
    tracks: tuple[Track, ...]
    usable: tuple[Bools, ...]
    energies: tuple[Energy, ...]
    activity: Activity
    boundaries: Boundaries
    phases: tuple[Phase, ...]
    inside: InsideView
    drops: tuple[Drop, ...]

    def epoch_at(self, t_s: float) -> EpochRow | None:
        """Return the epoch that a moment lies in, None outside all of them.

        One that was told from inside lasts to the end of its checkpoint, one seen from outside to its row.
        """
        ends = self.boundaries.all
        at = bisect_right(ends, t_s, key=lambda boundary: boundary.end_t_s)
        return ends[at].row if at < len(ends) and ends[at].row.start_t_s <= t_s else None

    def phase_at(self, t_s: float) -> Phase | None:
        """Return the phase that a moment lies in, None where it is not known."""
        at = bisect_right(self.phases, t_s, key=lambda phase: phase.start_t_s) - 1
        return self.phases[at] if at >= 0 and t_s < self.phases[at].end_t_s else None

    def place_at(self, t_s: float) -> tuple[int | None, str | None]:
        """Return the number of the epoch and the name of the phase that a moment lies in, each None where unknown."""
        epoch, phase = self.epoch_at(t_s), self.phase_at(t_s)
        return (epoch.epoch if epoch else None), (phase.name if phase else None)


def build_context(run: Run, options: Options) -> Context:
    """Return the context of a run: what YOLO told where it did, else what the files and the GPUs tell."""
    found, inside = tracks(run), inside_view(run)
    seen = find_activity(run, found)
    awake = [seen.usable(track) for track in found]
    outside_ends = find_boundaries(run.epoch_rows, found, awake)
    outside_phases = find_phases(run, seen, outside_ends, found, awake)
    activity = inside.activity(seen, run.duration_s, others=_others(run, inside))
    boundaries = with_inside(outside_ends, inside)
    phases = joined(inside, outside_phases, activity, run.duration_s)
    final = final_evaluations(phases, boundaries)
    usable = tuple(activity.usable(track) & outside(track, final) for track in found)
    drops = tuple(drop for track, use in zip(found, usable, strict=True) for drop in find_drops(track, use, options))
    return Context(run, options, found, usable, tuple(map(energy, found)), activity, boundaries, phases, inside, drops)


def _others(run: Run, inside: InsideView) -> bool:
    """Tell whether a YOLO run was watched that told nothing from inside."""
    told = {boundary.row.run for boundary in inside.boundaries} | {process.run for process in run.inside}
    return any(yolo.number not in told for yolo in run.yolo_runs)


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
    last = event.last_t_s if event.last_t_s is not None else event.t_s
    if event.t_s <= end_s and last >= start_s:
        return 0.0
    return last - start_s if last < start_s else event.t_s - end_s
